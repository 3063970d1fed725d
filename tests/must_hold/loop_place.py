"""Where the session of twelve calls is played and killed: its folders, and the processes that play it."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from loop_outcome import tree
from loop_script import SESSION, prepare

KILLED = -9
REFUSED = 2
VICTIM = Path(__file__).with_name("loop_victim.py")
RIVAL = Path(__file__).with_name("loop_rival.py")


class Place:
    """A workspace and a state folder for one session, and the processes that play it."""

    def __init__(self, folder: Path, players: "Players") -> None:
        self.workspace, self.state = folder / "workspace", folder / "state"
        self.workspace.mkdir(parents=True)
        prepare(self.workspace, SESSION)
        self.before = tree(self.workspace)
        self._players = players

    def play(self, last: int = 0, meanwhile: Callable[[int], None] | None = None) -> int:
        """Plays on, to the moment of a number, or to the end; how the process ended."""
        return self._players.play(self.workspace, self.state, last, meanwhile)

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
        command = [sys.executable, VICTIM, folder / "warm"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def play(self, workspace: Path, state: Path, last: int, meanwhile: Callable[[int], None] | None = None) -> int:
        """How the process ended; `meanwhile` is called with its id."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{workspace} {state} {last}\n")
        stdin.flush()
        process = int(stdout.readline())
        if meanwhile is not None:
            meanwhile(process)
        return int(stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def left_in(folder: Path) -> list[str]:
    """The processes at work in a folder, by what they are; those that have just been ended are given the time to go."""
    until = time.monotonic() + 30.0
    while (found := [words for place, words in _processes() if place.startswith(str(folder))]) and (
        time.monotonic() < until
    ):
        time.sleep(0.01)
    return found


def wait_for_command(folder: Path, words: str) -> None:
    """Until a command of that folder runs this."""
    until = time.monotonic() + 60.0
    while not any(place == str(folder) and words in said for place, said in _processes()):
        assert time.monotonic() < until, f"nothing runs {words!r} in {folder}"


def _processes() -> Iterator[tuple[str, str]]:
    """Where each process is, and its command line."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                place = os.readlink(f"/proc/{name}/cwd")
                yield place, Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
