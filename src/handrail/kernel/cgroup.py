"""Control groups of commands."""

import contextlib
import os
import time
from collections.abc import Sequence
from functools import cache
from typing import Protocol, Self

# § [process.bounds] What is held against a tree while it runs; `Limits` has it, and so has what a keeper is told.


class TreeLimits(Protocol):
    """Of the whole tree together."""

    @property
    def memory(self) -> int:
        """Bytes."""
        ...

    @property
    def processes(self) -> int:
        """How many at a time."""
        ...

    @property
    def disk(self) -> int:
        """Bytes that it may write to `uppers`."""
        ...

    @property
    def uppers(self) -> Sequence[str]:
        """Folders that are watched for that."""
        ...

    @property
    def threads(self) -> int:
        """How many at a time."""
        ...


# § [kernel.cgroup] Control groups of commands.

# § [process.control_group] A control group of its own for a command, where this machine lets us make one: the
# § kernel then limits memory and processes of the whole tree itself. Watching goes on all the same; it is what most
# § machines have.

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


# § [sandbox.probing.control_groups] Whether control groups (version 2) can be made here for commands.

_MOUNT = "/sys/fs/cgroup"
_NEEDED = frozenset({"memory", "pids"})


@cache
def find_parent_group(mount: str = _MOUNT) -> str | None:
    """The group in which we may make others: the one that holds our own. None where it is not ours to change, or does
    not pass on what is needed."""
    own = _own_group()
    parent = os.path.dirname(mount + own.rstrip("/")) if own != "/" else mount
    passed_on = _read(f"{parent}/cgroup.subtree_control").split()
    writable = os.access(parent, os.W_OK) and os.access(f"{parent}/cgroup.procs", os.W_OK)
    return parent if writable and _NEEDED.issubset(passed_on) else None


def _own_group() -> str:
    lines = _read("/proc/self/cgroup").splitlines()
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
