"""A control group of its own for a command, where this machine lets us make one: the kernel then limits memory and
processes of the whole tree itself. Watching goes on all the same; it is what most machines have."""

import contextlib
import os
import time
from typing import Self

from handrail.process.bounds import TreeLimits

_JOIN = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
"""A shell joins the group and becomes the program, so nothing that the program starts is outside of it."""
_EVENTS = (("memory", "memory.events", "oom_kill"), ("processes", "pids.events", "max"))
_REMOVE_SECONDS = 1.0


class ControlGroup:
    """One command's group. It is made at once, and removed at the end of the `with` block; the command is over by then.

    Where none can be made it does nothing: the command starts outside of any.
    """

    def __init__(self, limits: TreeLimits, parent: str | None) -> None:
        self._path = _made(limits, parent) if parent is not None else None

    def wrap_argv(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """What to start in the place of a program so that it starts inside."""
        return argv if self._path is None else ("/bin/sh", "-c", _JOIN, self._path, *argv)

    def list_fired_limits(self) -> list[str]:
        """The limits that the kernel held somebody to."""
        if self._path is None:
            return []
        return [name for name, file, key in _EVENTS if _counted(f"{self._path}/{file}", key)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            _remove(self._path)


def _made(limits: TreeLimits, parent: str) -> str | None:
    path = os.path.join(parent, f"handrail-{os.urandom(8).hex()}")
    try:
        os.mkdir(path)
        _write(f"{path}/memory.max", limits.memory)
        _write(f"{path}/pids.max", limits.threads)
    except OSError:
        _remove(path)
        return None
    return path


def _remove(path: str) -> None:
    """The kernel needs a moment to forget the processes that were in it."""
    until = time.monotonic() + _REMOVE_SECONDS
    while os.path.isdir(path) and time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.rmdir(path)
            return
        time.sleep(0.001)


def _write(path: str, value: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def _counted(path: str, key: str) -> bool:
    lines = (line.split() for line in _read(path).splitlines())
    return any(words[0] == key and int(words[1]) > 0 for words in lines if len(words) == 2)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
