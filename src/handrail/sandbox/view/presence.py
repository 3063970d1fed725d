"""Compares what is to be sealed and hidden with what is there: bubblewrap makes what is missing, on the real disk."""

import os
import stat
from collections.abc import Iterator

import msgspec

from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.view.mounts import is_within


def drop_missing(profile: SandboxProfile) -> SandboxProfile:
    """The same profile if everything is as it says; else one without what is gone, each thing as what it is."""
    if all(_as_expected(profile)):
        return profile
    sealed = tuple(path for path in profile.read_only_paths if _mode(path) and not stat.S_ISLNK(_mode(path)))
    hidden = {_past_links(path) for path in (*profile.hidden_files, *profile.hidden_folders)}
    inside = sorted(path for path in hidden if _mode(path) and _is_in_root(path, profile))
    folders = tuple(path for path in inside if stat.S_ISDIR(_mode(path)))
    files = tuple(path for path in inside if path not in folders)
    return msgspec.structs.replace(profile, read_only_paths=sealed, hidden_files=files, hidden_folders=folders)


def _as_expected(profile: SandboxProfile) -> Iterator[bool]:
    for path in profile.read_only_paths:
        yield stat.S_IFMT(_mode(path)) not in {0, stat.S_IFLNK}
    for path in profile.hidden_files:
        yield stat.S_IFMT(_mode(path)) not in {0, stat.S_IFLNK, stat.S_IFDIR}
    for path in profile.hidden_folders:
        yield stat.S_ISDIR(_mode(path))


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _past_links(path: str) -> str:
    return os.path.realpath(path) if stat.S_ISLNK(_mode(path)) else path


def _is_in_root(path: str, profile: SandboxProfile) -> bool:
    return any(is_within(path, root) for root in (*profile.read_only, *profile.writable))
