"""How much memory and how many processes a command's tree has, and how much it wrote, looked at from outside.

Memory is what the processes have mapped and no disk has: pages of programs and files are not counted, nor are files in
a tmpfs, and others that are nowhere but in memory, which no process has mapped.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from handrail.process.census import UsageSample, count_bytes_below, sample_descendants, sample_namespace

_USUAL_PAUSE_SECONDS = 0.1
_NEAR_PAUSE_SECONDS = 0.02
"""Seconds between looks: usually, and where more than half of a limit is used."""
_SHARE = 50
"""A look may take one part in so many of the time."""
_MAX_PAUSE_SECONDS = 2.0
"""But nobody gets more time than this by making looks slow."""


class TreeLimits(Protocol):
    """Limits of a process tree as a whole."""

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
        """The folders that are watched for that."""
        ...


class UsageMonitor:
    """Looks now and then; says which limit the tree is over."""

    def __init__(
        self, limits: TreeLimits, *, program: int, own_processes: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._program = program
        self._own_processes = own_processes
        self._clock = clock
        self._inside = -1
        self.next_look = clock() + _USUAL_PAUSE_SECONDS

    def look(self, first: int | None) -> Literal["memory", "processes", "disk"] | None:
        """Looks at the tree whose first process that is; sets when to look again."""
        began = self._clock()
        census = self._census(first)
        written = count_bytes_below(self._limits.uppers, self._limits.disk)
        over = (self._over(census) if census else None) or ("disk" if written > self._limits.disk else None)
        now = self._clock()
        near = (census is not None and self._is_near(census)) or written * 2 > self._limits.disk
        self.next_look = now + max(
            _NEAR_PAUSE_SECONDS if near else _USUAL_PAUSE_SECONDS, min((now - began) * _SHARE, _MAX_PAUSE_SECONDS)
        )
        return over

    def close(self) -> None:
        """Lets go of the sandbox's /proc; can be repeated."""
        inside, self._inside = self._inside, -1
        if inside >= 0:
            os.close(inside)

    def _census(self, first: int | None) -> UsageSample | None:
        if not self._own_processes:
            return sample_descendants(self._program)
        if self._inside < 0 and first is not None:
            self._inside = _open_inside(first)
        return sample_namespace(self._inside) if self._inside >= 0 else None

    def _over(self, census: UsageSample) -> Literal["memory", "processes"] | None:
        if census.count > self._limits.processes:
            return "processes"
        # Pages that a fork shares are in the sum once for each process: counted exactly only where it matters.
        if census.memory > self._limits.memory and census.exact_memory() > self._limits.memory:
            return "memory"
        return None

    def _is_near(self, census: UsageSample) -> bool:
        return census.count * 2 > self._limits.processes or census.memory * 2 > self._limits.memory


def _open_inside(first: int) -> int:
    """The /proc of the sandbox; -1 as long as the sandbox is not complete, when it would still be our own."""
    try:
        descriptor = os.open(f"/proc/{first}/root/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1
    if os.fstat(descriptor).st_dev == os.stat("/proc").st_dev or not os.access("1", os.F_OK, dir_fd=descriptor):
        os.close(descriptor)
        return -1
    return descriptor
