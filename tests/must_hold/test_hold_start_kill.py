"""kill -9 while commands start: once the next session is open, no process of theirs is left."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import start_victim

from handrail import Handrail
from handrail.settings import Settings

KILLS, EVERY_DAY = 500, 3


class Victims:
    """Sessions of other processes, to be killed."""

    def __init__(self, workspace: Path, state: Path) -> None:
        self.mark = f"m{os.urandom(8).hex()}"
        self._workspace, self._state, self._number = workspace, state, 0
        words = [sys.executable, start_victim.__file__, workspace, state]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def kill_waiting(self) -> None:
        """Kills one while bubblewrap's process inside waits for the one outside."""
        victim = self._started("wait")
        assert is_true_soon(lambda: sum(b"bwrap\0" in words_of(process) for process in self.left()) == 2)
        self._kill(victim)

    def kill_starting(self, seconds: float) -> int:
        """Kills one so long after it began to start commands; how many processes of theirs were there right then."""
        victim = self._started("start")
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        return self._kill(victim)

    def _started(self, what: str) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._number += 1
        self.process.stdin.write(f"s{self._number} {self.mark} {what}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def _kill(self, victim: int) -> int:
        os.kill(victim, signal.SIGKILL)
        there = len(self.left())
        # It leaves copies of itself that are not bubblewrap yet, and hold its locks.
        assert is_true_soon(lambda: not os.path.exists(f"/proc/{victim}"))
        assert is_true_soon(lambda: with_word(f"{start_victim.__file__}\0{self._workspace}\0") == [self.process.pid])
        return there

    def open_next(self) -> None:
        """Opens another session, which runs nothing."""
        Handrail(self._workspace, session="next", state_dir=self._state, settings=Settings()).close()

    def left(self) -> list[int]:
        """Processes of their commands."""
        return with_word(self.mark)


@pytest.fixture
def victims(tmp_path: Path, workspace: Path) -> Iterator[Victims]:
    made = Victims(workspace, tmp_path / "state")
    with made.process:
        yield made
        made.process.communicate()
    for process in made.left():
        os.kill(process, signal.SIGKILL)


def test_what_waits_for_a_killed_runtime_is_ended_by_the_next_session(victims: Victims) -> None:
    victims.kill_waiting()
    # The process inside is left; none is where a session of another run, which ends it too, was opened just now.
    assert is_true_soon(lambda: len(victims.left()) < 2)
    victims.open_next()
    assert victims.left() == []


def test_a_living_session_keeps_what_it_starts_when_another_one_was_killed(
    victims: Victims, tmp_path: Path, workspace: Path
) -> None:
    with Handrail(workspace, mode="full", state_dir=tmp_path / "state", settings=Settings()) as rail:
        rail.exec("true")
        victims.kill_waiting()
        victims.open_next()
        assert rail.exec("bash -c 'echo lives'").content == "lives\n"


def test_no_process_is_left_after_kills_while_commands_start(
    victims: Victims, deep: bool, note: Callable[[str], None]
) -> None:
    draw, kills, there = random.Random(8), KILLS if deep else EVERY_DAY, list[int]()
    for _ in range(kills):
        there.append(victims.kill_starting(0.03 * draw.random()))
        victims.open_next()
        # Those that had not become bubblewrap yet see that nobody is there, and end by themselves.
        assert is_true_soon(lambda: not victims.left()), victims.left()
    met = sum(map(bool, there))
    note(f"{kills} kills, {met} while commands had processes, at most {max(there)} at once: none is left")
    assert not deep or met > kills // 20, "hardly a kill came while commands started"


def with_word(word: str) -> list[int]:
    """The processes that have a word in their command line."""
    numbers = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return [number for number in numbers if word.encode() in words_of(number)]


def words_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def is_true_soon(asked: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60.0
    while not (found := asked()) and time.monotonic() < until:
        time.sleep(0.005)
    return found
