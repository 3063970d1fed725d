"""kill -9 of `handrail acp` and of `handrail mcp --http` at every moment that counts, by root and by an ordinary user,
in every tier: what the client was told is so, nothing is done twice, and what waits can still be answered."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from face_clients import FACES, Editor, GoneError
from face_script import APPENDS, CALLS, DONE, prepare, words_for
from loop_place import KILLED, left_in
from test_hold_start_kill import is_true_soon, with_word
from tests.escape.starting import ordinary_number, python_for

from handrail.sandbox.bubblewrap import find_bubblewrap

VICTIM = Path(__file__).with_name("face_victim.py")
REPOSITORY = Path(__file__).parents[2]
PLACES = [("ordinary", 1), ("ordinary", 2), ("ordinary", 3), ("root", 3)]
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")


class Victims:
    """A process of one user that forks one for every play."""

    def __init__(self, user: str) -> None:
        self.number = ordinary_number() if user == "ordinary" and os.geteuid() == 0 else None
        python = python_for(self.number)
        if not python:
            pytest.skip("no Python with our libraries can be run by an ordinary user here")
        self.folder = Path(tempfile.mkdtemp(prefix="handrail-faces-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.own(self.folder)
        paths = [REPOSITORY, REPOSITORY / "src", REPOSITORY / "tests", *(one for one in sys.path if "-packages" in one)]
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": ":".join(map(str, paths))}
        identity = {} if self.number is None else {"user": self.number, "group": self.number, "extra_groups": []}
        self._process = subprocess.Popen(
            [python, VICTIM, self.folder / "warm"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env=environment, **identity,
        )  # fmt: skip

    def own(self, folder: Path) -> None:
        """Makes it theirs."""
        for path in (folder, *folder.rglob("*")) if self.number is not None else ():
            os.chown(path, self.number, self.number)

    def do(self, task: dict[str, Any], meanwhile: Callable[[int], None] = id) -> int:
        """Has one of them do it; how its process ended. `meanwhile` is called with its id."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{json.dumps(task)}\n")
        stdin.flush()
        meanwhile(int(stdout.readline()))
        return int(stdout.readline())

    def close(self) -> None:
        self._process.communicate()
        shutil.rmtree(self.folder)


class Place:
    """A workspace, a state folder and a client of one face."""

    def __init__(self, victims: Victims, face: str, tier: int, name: str) -> None:
        self._victims, self._face = victims, face
        self.folder = victims.folder / name
        prepare(self.folder, tier)
        victims.own(self.folder)
        self.client = FACES[face](self.folder)

    def serve(self, number: int = 0) -> int:
        """Serves the client until it is done, or to the moment of a number; how the process ended."""
        path = self.folder / "socket"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listening, ExitStack() as to_the_end:
            listening.bind(str(path))
            path.chmod(0o666)
            listening.listen()

            def meanwhile(process: int) -> None:
                wire = to_the_end.enter_context(listening.accept()[0])
                with suppress(GoneError), _ended_by_an_error(process):
                    self.client.work(wire)
                    if self._face == "http":
                        os.kill(process, signal.SIGTERM)
                wire.shutdown(socket.SHUT_WR)

            task = {"do": "serve", "folder": str(self.folder), "number": number}
            return self._victims.do({**task, "words": words_for(self._face, self.folder)}, meanwhile)

    def look(self, *, answers: bool = False, ends: bool = False) -> Any:
        """What the next process finds in the session."""
        task = {"do": "look", "folder": str(self.folder), "session": self.client.session}
        code = self._victims.do({**task, "answers": answers, "ends": ends})
        assert code == 0, (self.folder / "trouble.txt").read_text()
        return json.loads((self.folder / "looked.json").read_bytes())

    def moments(self) -> list[str]:
        """Those of a play to its end."""
        return json.loads((self.folder / "moments.json").read_text())


@contextmanager
def _ended_by_an_error(process: int) -> Generator[None]:
    try:
        yield
    except GoneError:
        raise
    except BaseException:
        os.kill(process, signal.SIGKILL)
        raise


@pytest.fixture(scope="module")
def victims_of() -> Iterator[Callable[[str], Victims]]:
    found: dict[str, Victims] = {}

    def victims_of(user: str) -> Victims:
        return found.get(user) or found.setdefault(user, Victims(user))

    yield victims_of
    for one in found.values():
        one.close()


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(("user", "tier"), PLACES)
def test_killed_at_any_moment_a_face_has_told_the_truth_and_does_nothing_twice(
    victims_of: Callable[[str], Victims], face: str, user: str, tier: int, deep: bool, note: Callable[[str], None]
) -> None:
    if user == "root" and not deep:
        pytest.skip("what root does is killed every day by the other tests")
    victims, seen = victims_of(user), Counter[str]()
    for number in moments_of(victims, face, tier) if deep else todays(face, tier):
        place = Place(victims, face, tier, f"{face}-{tier}-{number}")
        try:
            seen[killed_at(place, number)] += 1
        except AssertionError as error:
            raise AssertionError(f"killed at moment {number} in {place.folder}") from error
        shutil.rmtree(place.folder)
    note(f"{face} by {user} in tier {tier}: {dict(seen)}")


def moments_of(victims: Victims, face: str, tier: int) -> range:
    """The numbers of all that a play has which nobody kills."""
    whole = Place(victims, face, tier, f"{face}-{tier}-whole")
    assert whole.serve() == 0
    check(whole)
    return range(1, len(whole.moments()) + 1)


def todays(face: str, tier: int) -> list[int]:
    """One of the numbers that there are in every play."""
    return [random.Random(f"{face} {tier}").randrange(10, 170)]


def killed_at(place: Place, number: int) -> str:
    """What the next process makes of it."""
    code = place.serve(number)
    if code != KILLED:
        assert code == 0
        check(place)
        return "over by then"
    elsewhere = number % 2 == 1 and place.client.session is not None
    waited = place.look(answers=True)["waited"] if elsewhere else 0
    assert place.serve() == 0
    cut_off = check(place)
    return f"{'answered elsewhere, ' if waited else ''}{cut_off} cut off"


def check(place: Place) -> int:
    """That all is as the client was told; how many calls were cut off."""
    found, client = place.look(ends=True), place.client
    assert left_in(place.folder) == []
    assert is_true_soon(lambda: not with_word(str(place.folder)))
    calls = found["calls"]
    results = {one["id"]: one["result"] for one in calls}
    assert None not in results.values()
    assert (len(results), found["waiting"], found["problems"]) == (len(calls), [], [])
    assert found["audited"] == sorted(results)
    assert {one: results[one]["ok"] for one in client.told} == client.told
    if isinstance(client, Editor):
        assert [(one["name"], one["args"]) for one in calls] == CALLS
        assert found["said"] == [DONE]
        assert DONE in client.words  # once more, where it was cut off in the middle of that
    else:
        assert {path.parent.name for path in place.folder.glob("state/workspaces/*/*/journal.db")} == {client.session}
        check_repeated(calls, found["granted"], found["processes"])
    for name, arguments in CALLS:
        same = [one["result"] for one in calls if (one["name"], one["args"]) == (name, arguments)]
        made, times = sum(map(is_made, same)), effect_of(arguments, found["files"])
        unknown = sum(not is_made(one) and "Nothing was changed" not in one["content"] for one in same)
        if "content" in arguments:
            made = min(made, 1)  # the same text twice is one file
        assert times <= made + unknown, (arguments, times, same)
        assert times >= made or "background" in arguments, (arguments, times, same)  # that may not be so far yet
    return sum(one["result"]["error"] is not None for one in calls)


def check_repeated(calls: list[Any], granted: list[str], processes: list[Any]) -> None:
    """Of a client that calls again: what somebody said yes to ran once at most, and what goes on is known."""
    assert len(granted) == len(set(granted))
    allowed = [one["args"] for one in calls if one["id"] in granted]
    for arguments in allowed:
        assert allowed.count(arguments) == 1
        assert sum(is_made(one["result"]) for one in calls if one["args"] == arguments) <= 1
    begun = {
        one["result"]["data"]["sessionId"] for one in calls if one["args"].get("background") and one["result"]["ok"]
    }
    assert begun <= {one["id"] for one in processes if one["state"] == "running"}


def is_made(result: Any) -> bool:
    """Whether a result says that the call had its effect."""
    return result["ok"] or "Its change was applied:" in result["content"]


def effect_of(arguments: dict[str, Any], files: dict[str, str]) -> int:
    """How often a call had its effect."""
    if "content" in arguments:
        return int(files.get(arguments["path"]) == arguments["content"])
    if "newText" in arguments:
        return files[arguments["path"]].count("more\n")
    return files.get(APPENDS[arguments["command"]], "").count("\n")
