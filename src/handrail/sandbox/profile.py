"""What a command may see and use."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from handrail.settings.model import Limits as Chosen
from handrail.settings.units import parse_seconds, parse_size

# § [sandbox.limits] How much a command may use.

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


# § [sandbox.confinement] What one command may see and do: everything a tier needs to know to confine it.

CommandOrigin = Literal["proven", "unasked", "approved"]
"""Why a command runs. `proven`: policy has shown that it only looks. `unasked`: a mode, rule or grant lets it run.
`approved`: a person said yes to this very call."""


class SandboxProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One command's part of the world. Paths are absolute and have no link in them."""

    origin: CommandOrigin
    cwd: str
    """Where it starts: in one of the roots."""
    read_only: tuple[str, ...]
    """Roots that it sees and cannot change; of a proven command these are all of them."""
    writable: tuple[str, ...] = ()
    """Roots that it may change; the innermost root that holds a path counts."""
    read_only_paths: tuple[str, ...] = ()
    """Files and folders in writable roots that it may read and not change: they decide what it may do."""
    hidden_files: tuple[str, ...] = ()
    """Files in the roots that an empty file lies over: credentials, sockets."""
    hidden_folders: tuple[str, ...] = ()
    """Folders in the roots that an empty folder lies over."""
    variables: tuple[tuple[str, str], ...] = ()
    """What it gets besides, name and value, as a person wrote it for this program alone: a key, where it needs one."""
    git_settings: tuple[tuple[str, str], ...] = ()
    """Settings for git, name and value, where it only looks: they disable the programs that the roots configure."""
    limits: ResourceLimits = ResourceLimits()
    proxy: str = ""
    """A unix socket that leads to a proxy: all of the network that it has. Empty: it has none."""
    listed: tuple[str, ...] = ()
    """What that proxy lets through, as it was written: a listed loopback address is this machine's, not its own."""

    @property
    def roots(self) -> tuple[str, ...]:
        """All of them, whatever the command may do there."""
        return tuple(sorted((*self.read_only, *self.writable)))

    @property
    def is_read_only(self) -> bool:
        """Whether it is shown nothing that it could change, and may open no socket."""
        return self.origin == "proven"


# § [sandbox.host] The machine and the person that commands run for.


class SandboxHost(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox is built from, besides the command: the same for all commands of a session."""

    home: str
    environ: Mapping[str, str]
    """The runtime's own environment: what commands get is chosen from it."""
    state: str
    """The state folder: no command sees it, but for the session's own folder of files."""
    toolchains: tuple[str, ...] = ()
    """Folders and files that settings add to those that are shown read-only."""
    variables: tuple[str, ...] = ()
    """Names of variables that settings add to those that are passed on."""


HostLookup = Callable[[], SandboxHost]
