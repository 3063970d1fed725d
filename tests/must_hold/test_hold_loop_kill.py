"""kill -9 of the loop at every moment that counts: it goes on from the journal alone, the same comes of it, and nothing
is done twice. A call that was cut off says so, and its effect is there wholly or not at all."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_outcome import EFFECTS, Outcome, but_for_undo, outcome, without
from loop_place import KILLED, REFUSED, RIVAL, Place, Players, left_in, wait_for_command

from handrail.sandbox.bubblewrap import find_bubblewrap

PAIRS = 80
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")


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
        made = "Its change was applied:" in words
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
        assert place.play(number) == KILLED
        cut_off = place.begun()
        try:
            assert place.play() == 0
            seen[check(place, whole, cut_off)] += 1
        except AssertionError as error:
            raise AssertionError(f"killed at moment {number}, {moments[number - 1]}") from error
    assert left_in(tmp_path) == []
    note(f"{len(moments)} moments, killed at {seen.total()}: {dict(seen)}")
    assert {"between calls", "write: not made", "edit: made", "exec: made", "exec: not made"} <= set(seen)


def test_killed_again_while_it_recovers_it_goes_on_all_the_same(
    tmp_path: Path,
    players: Players,
    undisturbed: tuple[Outcome, list[str]],
    count: Callable[[int], int],
    note: Callable[[str], None],
) -> None:
    whole, moments = undisturbed
    inside = [number for number, name in enumerate(moments, start=1) if not name.startswith("between")]
    draw, seen = random.Random(7), Counter[str]()
    for number in range(count(PAIRS)):
        place = Place(tmp_path / str(number), players)
        first, second = draw.choice(inside), draw.randrange(1, 40)
        assert place.play(first) == KILLED
        cut_off = place.begun()
        if place.play(second) == KILLED:
            cut_off += [call for call in place.begun() if call not in cut_off]
            assert place.play() == 0
        else:
            seen["over by then"] += 1
        try:
            check(place, whole, cut_off)
        except AssertionError as error:
            raise AssertionError(f"killed at moment {first}, {moments[first - 1]}, then at {second}") from error
        seen[f"{len(cut_off)} cut off"] += 1
    assert left_in(tmp_path) == []
    note(f"{count(PAIRS)} pairs of kills: {dict(seen)}")


def test_a_command_that_runs_when_its_loop_is_killed_ends_and_leaves_nothing(
    tmp_path: Path, players: Players, undisturbed: tuple[Outcome, list[str]]
) -> None:
    place = Place(tmp_path, players)
    (place.workspace / "go").unlink()  # the command has changed its file by the time it waits for this one

    def kill(process: int) -> None:
        wait_for_command(place.workspace, "sleep 0.01")
        os.kill(process, signal.SIGKILL)

    assert place.play(meanwhile=kill) == KILLED
    cut_off = place.begun()
    assert left_in(place.workspace) == []
    (place.workspace / "go").touch()
    assert place.play() == 0
    assert check(place, undisturbed[0], cut_off) == "exec: not made"


def test_of_two_that_resume_at_once_one_goes_on_and_the_other_says_who(
    tmp_path: Path, players: Players, undisturbed: tuple[Outcome, list[str]]
) -> None:
    whole, moments = undisturbed
    place = Place(tmp_path, players)
    begun = next(number for number, name in enumerate(moments, start=1) if name.startswith("write: after journal"))
    assert place.play(begun) == KILLED
    cut_off = place.begun()
    command = [sys.executable, RIVAL, place.workspace, place.state]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"at work\n"
        assert place.play() == REFUSED
        assert f"is in use in process {first.pid}" in (place.state / "refused.txt").read_text()
        first.communicate(b"go on\n")
    assert first.returncode == 0
    check(place, whole, cut_off)
