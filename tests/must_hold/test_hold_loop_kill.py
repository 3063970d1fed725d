"""kill -9 of the loop at every moment that counts: it goes on from the journal alone, the same comes of it, and nothing
is done twice. A call that was cut off says so, and its effect is there wholly or not at all."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_outcome import EFFECTS, Outcome, but_for_undo, outcome, without
from loop_outcome import tree as files_of
from loop_script import SESSION, prepare
from test_hold_exec_kill import gone_within

from handrail.sandbox.namespaces.bubblewrap import find_bubblewrap

KILLED = -9
VICTIM = Path(__file__).with_name("loop_victim.py")
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")


class Place:
    """A workspace and a state folder for one session, and the processes that play it."""

    def __init__(self, folder: Path, players: "Players") -> None:
        self.workspace, self.state = folder / "workspace", folder / "state"
        self.workspace.mkdir(parents=True)
        prepare(self.workspace, players.mark)
        self.before = files_of(self.workspace)
        self._players = players

    def play(self, last: int = 0) -> int:
        """Plays on, to the moment of a number, or to the end; how the process ended."""
        return self._players.play(self.workspace, self.state, last)

    def moments(self) -> list[str]:
        """Those of the last play that came to its end."""
        return json.loads((self.state / "moments.json").read_text())

    def begun(self) -> list[str]:
        """The calls that have begun and have no result, by what the journal says now."""
        found = list(self.state.glob(f"workspaces/*/{SESSION}/journal.db"))
        if not found:
            return []
        connection = sqlite3.connect(found[0])
        try:
            return [row[0] for row in connection.execute("SELECT id FROM call WHERE state = 'started'")]
        except sqlite3.OperationalError:  # killed before there were tables
            return []
        finally:
            connection.close()


class Players:
    """A process that forks one for every play."""

    def __init__(self, folder: Path) -> None:
        self.mark = f"played-by-{os.getpid()}"
        command = [sys.executable, VICTIM, folder / "warm"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def play(self, workspace: Path, state: Path, last: int) -> int:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{workspace} {state} {last}\n")
        stdin.flush()
        return int(stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def players(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Players]:
    found = Players(tmp_path_factory.mktemp("players"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def undisturbed(players: Players, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, list[str]]:
    """A play that nobody kills, and its moments."""
    place = Place(tmp_path_factory.mktemp("undisturbed"), players)
    assert place.play() == 0
    return outcome(place.workspace, place.state), place.moments()


def check(place: Place, whole: Outcome, cut_off: list[str]) -> str:
    """What a killed session came to, once it has gone on to its end, is what an undisturbed one came to."""
    found = outcome(place.workspace, place.state)
    interrupted = [number for number in EFFECTS if found.code(number) == "INTERRUPTED"]
    assert [found.ids[number] for number in interrupted] == cut_off
    files, strict = whole.files, (lambda plain: plain) if not interrupted else but_for_undo
    story = "between calls"
    for number in interrupted:
        words = found.results[number]["content"]
        made = "Its change was made" in words
        assert made != ("Nothing was changed" in words)
        files = files if made else without(files, EFFECTS[number], place.before)
        story = f"{found.results[number]['name']}: {'made' if made else 'not made'}"
    assert found.files == files
    assert others(strict(found.results), interrupted) == others(strict(whole.results), interrupted)
    assert strict(said(found.talk, found, interrupted)) == strict(said(whole.talk, whole, interrupted))
    return story


def others(results: list[Any], interrupted: list[int]) -> list[Any]:
    return [result for number, result in enumerate(results) if number not in interrupted]


def said(talk: list[Any], of: Outcome, interrupted: list[int]) -> list[Any]:
    """The talk without the results that were cut off."""
    words = {of.results[number]["content"] for number in interrupted}
    return [
        {**one, "results": [result for result in one["results"] if result["content"] not in words]}
        if one["kind"] == "results"
        else one
        for one in talk
    ]


def kind_of(moment: str) -> str:
    """In which call, and before or after what kind of thing."""
    inside, side, thing = moment.replace(":", "").split(" ")[:3]
    return f"{inside} {side} {thing if thing in {'journal', 'changes', 'audit'} else 'step'}"


def todays(moments: list[str], deep: bool, seed: int) -> list[int]:
    """The numbers of the moments to be killed at: all in a deep run; otherwise one of each kind, and a tenth in all."""
    numbers = list(range(1, len(moments) + 1))
    if deep:
        return numbers
    draw = random.Random(seed)
    draw.shuffle(numbers)
    first = {kind_of(moments[number - 1]): number for number in numbers}
    more = [number for number in numbers if number not in first.values()]
    return sorted([*first.values(), *more[: max(0, len(moments) // 10 - len(first))]])


def test_killed_at_any_moment_the_session_goes_on_to_the_same_end(
    tmp_path: Path,
    players: Players,
    undisturbed: tuple[Outcome, list[str]],
    deep: bool,
    note: Callable[[str], None],
) -> None:
    whole, moments = undisturbed
    seen: Counter[str] = Counter()
    for number in todays(moments, deep, seed=12):
        place = Place(tmp_path / str(number), players)
        ended = place.play(number)
        cut_off = place.begun()
        if ended == KILLED:
            assert place.play() == 0, f"after a kill at moment {number}, {moments[number - 1]}"
        try:
            seen[check(place, whole, cut_off) if ended == KILLED else "came too late"] += 1
        except AssertionError as error:
            raise AssertionError(f"killed at moment {number}, {moments[number - 1]}") from error
    assert gone_within(players.mark, 5.0)
    note(f"{len(moments)} moments, killed at {seen.total()}: {dict(seen)}")
    assert {"between calls", "write: not made", "edit: made", "exec: made", "exec: not made"} <= set(seen)
