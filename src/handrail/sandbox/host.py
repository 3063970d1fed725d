"""The machine and the person that commands run for."""

from collections.abc import Callable, Mapping

import msgspec


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
