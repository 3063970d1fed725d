"""Control groups (version 2), which limit the resources of a whole command.

Few machines let a user create them, so usage is also watched from outside.
"""

import contextlib
import os
import time
from functools import cache
from typing import Self

_MOUNT = "/sys/fs/cgroup"
_CONTROLLERS = frozenset({"memory", "pids"})
_JOIN = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
"""A shell joins the group and becomes the program, so the program starts nothing outside the group."""
_EVENTS = (("memory", "memory.events", "oom_kill"), ("processes", "pids.events", "max"))
_REMOVE_SECONDS = 1.0


class ControlGroup:
    """The group of one command. It is created at once and removed at the end of the `with` block.

    The command must have ended by then. If no group can be created, the command starts outside of any.
    """

    def __init__(self, parent: str | None, *, memory: int, threads: int) -> None:
        self._path = _create_group(parent, memory, threads) if parent is not None else None

    def wrap_argv(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command line that starts a program inside the group."""
        return argv if self._path is None else ("/bin/sh", "-c", _JOIN, self._path, *argv)

    def list_fired_limits(self) -> list[str]:
        """The limits that the kernel enforced on the command."""
        if self._path is None:
            return []
        return [name for name, file, key in _EVENTS if _has_counted(f"{self._path}/{file}", key)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            _remove_group(self._path)


@cache
def find_parent_group(mount: str = _MOUNT) -> str | None:
    """Where groups of commands are created. None: not writable, or memory and pids are not delegated."""
    lines = _read("/proc/self/cgroup").splitlines()
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    parent = os.path.dirname(mount + own.rstrip("/")) if own != "/" else mount
    delegated = _read(f"{parent}/cgroup.subtree_control").split()
    writable = os.access(parent, os.W_OK) and os.access(f"{parent}/cgroup.procs", os.W_OK)
    return parent if writable and _CONTROLLERS.issubset(delegated) else None


def _create_group(parent: str, memory: int, threads: int) -> str | None:
    path = os.path.join(parent, f"handrail-{os.urandom(8).hex()}")
    try:
        os.mkdir(path)
        _write(f"{path}/memory.max", memory)
        _write(f"{path}/pids.max", threads)
    except OSError:
        _remove_group(path)
        return None
    return path


def _remove_group(path: str) -> None:
    """The kernel refuses for a moment after the last process of the group has ended."""
    until = time.monotonic() + _REMOVE_SECONDS
    while os.path.isdir(path) and time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.rmdir(path)
            return
        time.sleep(0.001)


def _has_counted(path: str, key: str) -> bool:
    lines = (line.split() for line in _read(path).splitlines())
    return any(words[0] == key and int(words[1]) > 0 for words in lines if len(words) == 2)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, value: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))
