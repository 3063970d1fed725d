"""What one command may see and do: everything a tier needs to know to confine it."""

from typing import Literal

import msgspec

from handrail.sandbox.limits import ResourceLimits

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
