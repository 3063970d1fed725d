"""The profile of a command: the files, network, resources it may use."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

import msgspec

from handrail.settings.model import Limits
from handrail.settings.units import parse_seconds, parse_size
from handrail.workspace.roots import is_inside

MEGABYTE = 1 << 20
GIGABYTE = 1 << 30
_THREADS_PER_PROCESS = 4
_MAX_HIDDEN_FILES = 50

CommandOrigin = Literal["proven", "unasked", "approved"]
"""Why a command runs. `proven`: policy has shown that it is read-only. `unasked`: a mode, rule or grant allows it.
`approved`: a person approved this call."""


class SandboxHost(msgspec.Struct, frozen=True, kw_only=True):
    """The machine and user that the commands of a session run for."""

    home: str
    environ: Mapping[str, str]
    """The environment of handrail itself. The variables of commands are chosen from it."""
    state: str
    """The state folder. No command sees it, except the folder of files of its own session."""
    toolchains: tuple[str, ...] = ()
    """Folders and files that settings show read-only."""
    variables: tuple[str, ...] = ()
    """Names of variables that settings pass on."""


HostLookup = Callable[[], SandboxHost]


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one command, in bytes, seconds and counts."""

    seconds: float = 120.0
    """Wall-clock time."""
    output: int = 4 * MEGABYTE
    """Output kept in memory: its beginning and its end."""
    spilled: int = 64 * MEGABYTE
    """Output kept on disk if there is more."""
    memory: int = 4 * GIGABYTE
    """Of the whole process tree."""
    processes: int = 512
    file_size: int = 2 * GIGABYTE
    """Of each file that the command writes."""
    disk: int = GIGABYTE
    """Of everything it writes to `uppers`."""
    uppers: tuple[str, ...] = ()
    """The watched upper folders of an overlay."""

    @property
    def threads(self) -> int:
        """Of the whole process tree. The kernel counts threads, users count processes."""
        return self.processes * _THREADS_PER_PROCESS


@lru_cache(maxsize=16)
def build_limits(settings: Limits, timeout_ms: int | None = None) -> ResourceLimits:
    """The limits of the settings. The timeout of a call comes first."""
    return ResourceLimits(
        seconds=parse_seconds(settings.exec) if timeout_ms is None else timeout_ms / 1000,
        output=parse_size(settings.output),
        memory=parse_size(settings.memory),
        processes=settings.processes,
        file_size=parse_size(settings.file_size),
        disk=parse_size(settings.preview),
    )


class SandboxProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What one command may see and do. Paths are absolute, without links."""

    origin: CommandOrigin
    cwd: str
    """The working directory, in one of the roots."""
    read_only: tuple[str, ...]
    """Roots that the command cannot change. For a proven command these are all roots."""
    writable: tuple[str, ...] = ()
    """Roots that the command may change. For each path, the innermost root counts."""
    read_only_paths: tuple[str, ...] = ()
    """Files and folders in writable roots that the command cannot change: they decide what it may do."""
    hidden_files: tuple[str, ...] = ()
    """Files in the roots that an empty file covers: credentials, sockets."""
    hidden_folders: tuple[str, ...] = ()
    """Folders in the roots that an empty folder covers."""
    variables: tuple[tuple[str, str], ...] = ()
    """More variables, name and value, that the user configured for this program alone. They may be secrets."""
    is_preview: bool = False
    """Whether the command runs before its approval. Then the caches of Python are not written."""
    git_settings: tuple[tuple[str, str], ...] = ()
    """git settings of a read-only command, name and value. They disable the programs that the roots configure."""
    limits: ResourceLimits = ResourceLimits()
    proxy: str = ""
    """The unix socket of the proxy, which is the only network of the command. Empty: no network."""
    listed: tuple[str, ...] = ()
    """The hosts that the proxy allows, as written. A listed loopback address is the machine's, not the command's."""

    sockets: bool = False
    """Whether a read-only command may send requests to loopback addresses."""
    joined: bool = False
    """Whether it shares the network of the session's background processes. Otherwise it has its own."""

    @property
    def roots(self) -> tuple[str, ...]:
        return tuple(sorted((*self.read_only, *self.writable)))

    @property
    def is_read_only(self) -> bool:
        return self.origin == "proven"


def drop_missing(profile: SandboxProfile) -> SandboxProfile:
    """The profile without paths that are gone. bubblewrap would create them on the real disk."""
    read_only = tuple(path for path in profile.read_only_paths if _read_kind(path) not in {0, stat.S_IFLNK})
    listed = {*profile.hidden_files, *profile.hidden_folders}
    hidden = {os.path.realpath(path) if _read_kind(path) == stat.S_IFLNK else path for path in listed}
    # The target of a link may lie outside of the roots.
    inside = sorted(path for path in hidden if path in listed or any(is_inside(path, root) for root in profile.roots))
    kinds = {path: _read_kind(path) for path in inside}
    files = tuple(path for path, kind in kinds.items() if kind not in {0, stat.S_IFDIR})
    folders = tuple(path for path, kind in kinds.items() if kind == stat.S_IFDIR)
    return msgspec.structs.replace(profile, read_only_paths=read_only, hidden_files=files, hidden_folders=folders)


def collapse_hidden(profile: SandboxProfile, most: int = _MAX_HIDDEN_FILES) -> SandboxProfile:
    """Hide the folders that contain most hidden files, if there are more than `most` such files.

    The setup time of bubblewrap grows quadratically with the number of mounts. A folder stays visible if it contains
    a root, the working directory or a path that the command must see.
    """
    files = profile.hidden_files
    if len(files) <= most:
        return profile
    needed = (*profile.roots, *profile.read_only_paths, profile.cwd)
    folders: list[str] = []
    for folder, _ in Counter(path.rpartition("/")[0] for path in files).most_common():
        if len(files) <= most:
            break
        if not any(is_inside(path, folder) for path in needed):
            folders.append(folder)
            files = tuple(path for path in files if not is_inside(path, folder))
    hidden = (path for path in profile.hidden_folders if not any(is_inside(path, folder) for folder in folders))
    return msgspec.structs.replace(profile, hidden_files=files, hidden_folders=(*hidden, *folders))


def _read_kind(path: str) -> int:
    """The kind of a file. 0: it is gone."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0
