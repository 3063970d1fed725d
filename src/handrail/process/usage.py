"""Memory and processes of a tree, held against its limits."""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from handrail.kernel.procfs import list_descendants, read_entry

# § [process.census] Counts the processes of a tree, the memory they have, and the bytes they wrote.

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MIN_COUNTED_BYTES = 4096
"""Bytes that a file or folder counts at least, so that counting ends for empty ones too."""
# Its own pages, and those that it shares with its children, or has of a file that is nowhere but in memory.
_ROUGH = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_EXACT = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)


class UsageSample:
    """Processes of one moment; those that go meanwhile count for nothing."""

    def __init__(self, folder: int | None, processes: list[int]) -> None:
        self._folder = folder
        self._processes = processes
        self.count = len(processes)
        self.memory = sum(self._memory_of(process) for process in processes)
        """Bytes, and never too few: what a fork shares is counted for each."""

    def exact_memory(self) -> int:
        """The same with shared pages counted once: a walk through all of them, milliseconds per gigabyte."""
        return sum(self._exact_memory_of(process) for process in self._processes)

    def _memory_of(self, process: int) -> int:
        return self._sum(process, _ROUGH, "status") or 0

    def _exact_memory_of(self, process: int) -> int:
        found = self._sum(process, _EXACT, "smaps_rollup")
        return self._memory_of(process) if found is None else found

    def _sum(self, process: int, lines: re.Pattern[bytes], name: str) -> int | None:
        """What the lines of a file say; a process that has lost its first thread tells it by another one."""
        found = _kilobytes(lines, self._read(process, name))
        if found is not None:
            return found
        told = (_kilobytes(lines, self._read(process, f"task/{thread}/{name}")) for thread in self._threads(process))
        return next((size for size in told if size is not None), None)

    def _threads(self, process: int) -> list[int]:
        try:
            tasks = os.open(self._path(process, "task"), _FOLDER, dir_fd=self._folder)
        except OSError:  # it is gone
            return []
        try:
            return _numbers(tasks)
        finally:
            os.close(tasks)

    def _read(self, process: int, name: str) -> bytes:
        return read_entry(self._path(process, name), self._folder)

    def _path(self, process: int, name: str) -> str:
        return f"{process}/{name}" if self._folder is not None else f"/proc/{process}/{name}"


def sample_namespace(proc: int) -> UsageSample:
    """Those that a sandbox's own /proc shows, but for its first, which is the sandbox's."""
    return UsageSample(proc, [process for process in _numbers(proc) if process != 1])


def sample_descendants(root: int) -> UsageSample:
    """Those that descend from a process: children that lost their parent are a supervisor's own again."""
    try:
        found = list_descendants(root)
    except OSError:  # there is no descriptor left to look with
        found = []
    return UsageSample(None, [process.number for process in found])


def count_bytes_below(folders: Iterable[str], most: int, *, whole: bool = False) -> int:
    """Bytes that files and folders below some folders take on disk; once above `most`, the rest is not counted.

    `whole`: a sparse file counts with its full size. Folders that cannot be opened do not count, nor does what was
    deleted and is still open. The folders may change meanwhile.
    """
    total, todo, linked = 0, list(folders), set[int]()
    while todo and total <= most:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if total > most:
                    break
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        todo.append(entry.path)
                    elif not stat.S_ISREG(status.st_mode) or status.st_ino in linked:
                        continue
                    elif status.st_nlink > 1:
                        linked.add(status.st_ino)
                    total += max(status.st_blocks * 512, status.st_size if whole else 0, _MIN_COUNTED_BYTES)
    return total


def _kilobytes(lines: re.Pattern[bytes], data: bytes) -> int | None:
    """The sum of such lines, in bytes; None where there is none."""
    found = lines.findall(data)
    return sum(map(int, found)) * 1024 if found else None


def _numbers(folder: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdecimal()]
    except OSError:  # the sandbox is gone
        return []


# § [process.watching] How much memory and how many processes a command's tree has, and how much it wrote, looked at
# § from outside. Memory is what the processes have mapped and no disk has: pages of programs and files are not
# § counted, nor are files in a tmpfs, and others that are nowhere but in memory, which no process has mapped.

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
