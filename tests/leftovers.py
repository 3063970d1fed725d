"""Sees from outside whether anything of a command is left, without trusting names.

Three things give a process away: it holds the command's FIFO open; it is one of those that said who they are there,
or in the same space of process numbers; or it has the command's mark in its environment, or its folder to work in.
"""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

MARK = "COMMAND_MARK"
"""The variable that marks a command's processes."""


class Left(NamedTuple):
    """A process that should be gone."""

    number: int
    name: str
    why: str


class Watch:
    """One command's processes, from before it starts. It makes its FIFO, `alive` in the workspace, by itself."""

    def __init__(self, workspace: Path, mark: str) -> None:
        self.fifo = workspace / "alive"
        self._workspace, self._mark = str(workspace), f"{MARK}={mark}".encode()
        self._said: set[tuple[str, str, str]] = set()
        self._spaces: set[str] = set()
        self.trouble: list[str] = []
        """What a process of the tree could not do as planned."""
        self._ready, self._let_go, self._over = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for left in self.found():
            with contextlib.suppress(ProcessLookupError):
                os.kill(left.number, signal.SIGKILL)
        self._over.set()
        self._thread.join(10)

    @property
    def said(self) -> int:
        """How many processes there were."""
        return len(self._said)

    def wait_ready(self, seconds: float) -> bool:
        """Whether everybody of the tree was up in time."""
        return self._ready.wait(seconds)

    def left_after(self, seconds: float) -> list[Left]:
        """What is left when the time is over; returns at once when nothing is."""
        until = time.monotonic() + seconds
        while self._said and not self._let_go.is_set() and time.monotonic() < until:
            self._let_go.wait(0.05)
        while (found := self.found()) and time.monotonic() < until:
            time.sleep(0.01)
        if not found and self._said and not self._let_go.is_set():
            return [Left(0, "?", "somebody holds the FIFO open")]
        return found

    def found(self) -> list[Left]:
        """Every process of the command that is there now."""
        own = os.readlink("/proc/self/ns/pid")
        return list(self._scan(self._spaces - {own}))

    def _scan(self, spaces: set[str]) -> Iterator[Left]:
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    why = self._why(f"/proc/{entry}", spaces)
                    if why and is_alive(f"/proc/{entry}"):
                        yield Left(int(entry), Path(f"/proc/{entry}/comm").read_text().strip(), why)
                except (FileNotFoundError, ProcessLookupError):
                    continue  # it has just gone

    def _why(self, folder: str, spaces: set[str]) -> str | None:
        status = Path(f"{folder}/status").read_text(errors="replace")
        numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [""])
        try:
            space = os.readlink(f"{folder}/ns/pid")  # other commands count their processes from 1 too
            if (numbers[-1], started(folder), space) in self._said:
                return "it said so"
            if space in spaces:
                return "it counts processes with the command"
            if os.readlink(f"{folder}/cwd").startswith(self._workspace):
                return "it works in the workspace"
            if self._mark in Path(f"{folder}/environ").read_bytes().split(b"\0"):
                return "it has the command's mark"
        except PermissionError:
            pass  # another user's
        return None

    def _listen(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(FileNotFoundError):
                reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
                self._listen_to(reader)
                os.close(reader)
                return
            time.sleep(0.002)

    def _listen_to(self, reader: int) -> None:
        poll, rest = select.poll(), b""
        poll.register(reader, select.POLLIN)
        while not self._over.is_set():
            events = poll.poll(50)
            data = os.read(reader, 1 << 16) if events and events[0][1] & select.POLLIN else b""
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(line.decode())
            if not data and events and events[0][1] & select.POLLHUP:
                self._let_go.set()
                return

    def _take(self, line: str) -> None:
        if line == "ready":
            self._ready.set()
        elif line.startswith("trouble"):
            self.trouble.append(line)
        else:
            number, start, space = line.split()
            self._said.add((number, start, space))
            self._spaces.add(space)


def marked(mark: str) -> list[int]:
    """The processes that have a mark in their environment."""
    entry, found = f"{MARK}={mark}".encode(), list[int]()
    for number in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if entry in Path(f"/proc/{number}/environ").read_bytes().split(b"\0"):
                found.append(int(number))
    return found


def started(folder: str) -> str:
    """When a process began, in the kernel's ticks: with its number, that names it for good."""
    return Path(f"{folder}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]


def is_alive(folder: str) -> bool:
    """Whether any of its threads still runs; the first may have ended before the others."""
    states = (Path(f"{folder}/task/{task}/stat").read_text(errors="replace") for task in os.listdir(f"{folder}/task"))
    return any(state.rpartition(")")[2].split()[0] not in "ZX" for state in states)
