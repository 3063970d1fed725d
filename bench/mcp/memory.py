"""What a process has in memory, as the kernel counts it; pages that it shares with others are counted whole."""

from pathlib import Path
from typing import NamedTuple


class Memory(NamedTuple):
    """In megabytes."""

    resident: float
    most: float
    """The most that was resident at any time."""


def memory_of(pid: int) -> Memory:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Memory(_megabytes(lines["VmRSS"]), _megabytes(lines["VmHWM"]))


def _megabytes(count: str) -> float:
    return int(count.removesuffix("kB")) * 1024 / 1e6
