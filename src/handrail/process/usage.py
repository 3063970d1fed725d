"""Resource usage of a process tree, held against its limits.

Memory is what the processes have mapped and no disk has. Pages of programs and files do not count, nor do files in a
tmpfs that no process has mapped.
"""

import contextlib
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

from handrail.kernel.procfs import list_descendants, read_entry

_PAUSE_SECONDS = 0.1
_NEAR_PAUSE_SECONDS = 0.02
"""Pause between looks if more than half of a limit is used."""
_MAX_SHARE = 50
"""A look may take one part in so many of the time."""
_MAX_PAUSE_SECONDS = 2.0
"""A command gains no more time than this by making looks slow."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MIN_COUNTED_BYTES = 4096
"""Bytes that a file or folder counts at least, so that counting many empty ones ends too."""
# Anonymous pages and pages of files that are only in memory. Rss counts shared pages for each process.
_RSS = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_PSS = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_MAX_COUNTER_BYTES = 1 << 16
_UNROUTED = (b"IpOutNoRoutes", b"UdpNoPorts", b"Ip6OutNoRoutes", b"Udp6NoPorts")
"""Counters of connections without a route, and of packets to a resolver on loopback, where nothing listens."""


class TreeLimits(Protocol):
    """Limits of a process tree: bytes of memory, processes at a time, bytes written to the `uppers` folders."""

    @property
    def memory(self) -> int: ...
    @property
    def processes(self) -> int: ...
    @property
    def disk(self) -> int: ...
    @property
    def uppers(self) -> Sequence[str]: ...


class UsageMonitor:
    def __init__(
        self, limits: TreeLimits, *, program: int, own_processes: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._program = program
        self._own_processes = own_processes
        self._clock = clock
        self._proc = -1
        self.next_look = clock() + _PAUSE_SECONDS

    def look(self, first: int | None) -> Literal["memory", "processes", "disk"] | None:
        """The limit that the tree exceeds. `first` is the command's first process. Sets `next_look`."""
        limits, began = self._limits, self._clock()
        sample = self._take_sample(first)
        written = count_bytes_below(limits.uppers, limits.disk)
        exceeded = self._find_exceeded(sample) or ("disk" if written > limits.disk else None)
        is_near = sample.count * 2 > limits.processes or sample.memory * 2 > limits.memory or written * 2 > limits.disk
        now = self._clock()
        pause = _NEAR_PAUSE_SECONDS if is_near else _PAUSE_SECONDS
        self.next_look = now + max(pause, min((now - began) * _MAX_SHARE, _MAX_PAUSE_SECONDS))
        return exceeded

    def close(self) -> None:
        proc, self._proc = self._proc, -1
        if proc >= 0:
            os.close(proc)

    def _take_sample(self, first: int | None) -> "UsageSample":
        if not self._own_processes:
            return sample_descendants(self._program)
        if self._proc < 0 and first is not None:
            self._proc = _open_proc(first)
        proc = f"/proc/self/fd/{self._proc}"
        return UsageSample(proc, [number for number in _list_numbers(proc) if number != 1])  # 1 is the sandbox's own

    def _find_exceeded(self, sample: "UsageSample") -> Literal["memory", "processes"] | None:
        if sample.count > self._limits.processes:
            return "processes"
        if sample.memory > self._limits.memory and sample.exact_memory() > self._limits.memory:
            return "memory"
        return None


def _open_proc(first: int) -> int:
    """The sandbox's /proc. -1: the sandbox is not complete, and this would still be the machine's."""
    try:
        descriptor = os.open(f"/proc/{first}/root/proc", _FOLDER)
    except OSError:
        return -1
    if os.fstat(descriptor).st_dev == os.stat("/proc").st_dev or not os.access("1", os.F_OK, dir_fd=descriptor):
        os.close(descriptor)
        return -1
    return descriptor


class NetworkCounters:
    """Counts the connections that a sandbox's own network has no route for.

    The kernel counts from zero for each network. The files stay readable after the end of the sandbox.
    """

    def __init__(self) -> None:
        self._files: list[int] = []
        self._is_open = False

    def open(self, process: int) -> None:
        """Opens the counters of the network of a process, the first time."""
        if self._is_open:
            return
        self._is_open = True
        with contextlib.suppress(OSError):
            for name in ("snmp", "snmp6"):
                self._files.append(os.open(f"/proc/{process}/net/{name}", os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> bool | None:
        """Whether a connection was tried. None: the counters were not opened."""
        try:
            texts = [os.pread(file, _MAX_COUNTER_BYTES, 0) for file in self._files]
            return any(map(count_unrouted, texts)) if texts else None
        finally:
            while self._files:
                os.close(self._files.pop())


def count_unrouted(text: bytes) -> int:
    """The sum of the counters in /proc/net/snmp, two lines a protocol, or /proc/net/snmp6, one line a counter."""
    rows = [line.split() for line in text.splitlines()]
    values = {row[0]: row[1] for row in rows if len(row) > 1}
    for names, numbers in itertools.pairwise(rows):
        if names[0] == numbers[0]:
            values |= {names[0][:-1] + name: number for name, number in zip(names[1:], numbers[1:], strict=True)}
    return sum(int(values.get(name, 0)) for name in _UNROUTED)


def sample_descendants(root: int) -> "UsageSample":
    """The descendants of a process. A supervisor adopts those that lost their parent."""
    try:
        descendants = list_descendants(root)
    except OSError:  # no free descriptor
        descendants = []
    return UsageSample("/proc", [process.number for process in descendants])


class UsageSample:
    """Processes at one moment, below a /proc. Those that end count for nothing."""

    def __init__(self, proc: str, processes: list[int]) -> None:
        self._proc = proc
        self._processes = processes
        self.count = len(processes)
        self.memory = sum(self._sum(process, _RSS, "status") or 0 for process in processes)
        """Bytes. Never too few: pages that a fork shares count for each process."""

    def exact_memory(self) -> int:
        """Bytes, with shared pages counted once. Takes milliseconds per gigabyte."""
        total = 0
        for process in self._processes:
            exact = self._sum(process, _PSS, "smaps_rollup")
            total += exact if exact is not None else self._sum(process, _RSS, "status") or 0
        return total

    def _sum(self, process: int, lines: re.Pattern[bytes], name: str) -> int | None:
        """The sum of a file's lines, in bytes. If the first thread has ended, the file of another thread has them."""
        folder = f"{self._proc}/{process}"
        threads = (f"{folder}/task/{thread}" for thread in _list_numbers(f"{folder}/task"))
        for place in itertools.chain((folder,), threads):
            if sizes := lines.findall(read_entry(f"{place}/{name}")):
                return sum(map(int, sizes)) * 1024
        return None


def _list_numbers(folder: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdecimal()]
    except OSError:  # the process or the sandbox has ended
        return []


def count_bytes_below(folders: Iterable[str], most: int, *, whole: bool = False) -> int:
    """Bytes that the files and folders below some folders take on disk. Counting stops above `most`.

    `whole`: sparse files count with their full size. Folders that cannot be opened do not count, nor do deleted files
    that are still open. The folders may change meanwhile.
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
