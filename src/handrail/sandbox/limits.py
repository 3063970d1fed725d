"""How much a command may use."""

import msgspec

from handrail.settings.model import Limits as Chosen
from handrail.settings.units import parse_seconds, parse_size

MEGABYTE = 1 << 20
GIGABYTE = 1 << 30
_THREADS_OF_A_PROCESS = 4


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one command; bytes, seconds and counts."""

    seconds: float = 120.0
    """Of the clock on the wall."""
    output: int = 4 * MEGABYTE
    """Of what it prints: kept in memory, the beginning and the end."""
    spilled: int = 64 * MEGABYTE
    """Of what it prints: kept on disk where that is more."""
    memory: int = 4 * GIGABYTE
    """Of the whole tree together."""
    processes: int = 512
    file_size: int = 2 * GIGABYTE
    """Of any file that it writes."""
    disk: int = GIGABYTE
    """Of everything it writes to `uppers` together."""
    uppers: tuple[str, ...] = ()
    """The upper folders of an overlay that are watched for that; none where nothing is."""

    @property
    def threads(self) -> int:
        """Of the whole tree together: the kernel counts threads, people count processes."""
        return self.processes * _THREADS_OF_A_PROCESS


def build_limits(chosen: Chosen, timeout_ms: int | None = None) -> ResourceLimits:
    """The limits in force; what the call says of time goes before what settings say."""
    return ResourceLimits(
        seconds=parse_seconds(chosen.exec) if timeout_ms is None else timeout_ms / 1000,
        output=parse_size(chosen.output),
        memory=parse_size(chosen.memory),
        processes=chosen.processes,
        file_size=parse_size(chosen.file_size),
        disk=parse_size(chosen.preview),
    )
