"""What git knows of the workspace, read from its files: git itself would run what a repository configures."""

import contextlib
import os
from collections.abc import Iterable
from functools import lru_cache

from handrail.policy.git_settings import disable_drivers
from handrail.policy.network.git_config import list_included_paths
from handrail.protocol.error import ToolError

_OWN_CONFIGS = ("/etc/gitconfig", "/usr/local/etc/gitconfig", "~/.gitconfig", "~/.config/git/config")
_MAX_CONFIGS_BYTES, _MIN_COUNTED_BYTES = 16 << 20, 4096  # bytes, of all files and of each
_MAX_INDEX_BYTES = 256 << 20
_LENGTH = 0x0FFF
"""The bits of an entry's flags that hold the length of its name."""


def list_tracked(paths: Iterable[str], roots: Iterable[str]) -> frozenset[str]:
    """Those of the files, by absolute paths in the roots, that the repository around them tracks; of folders, those in
    which it tracks something."""
    within = tuple(roots)
    return frozenset(path for path in paths if _is_tracked(path, within))


def build_driver_settings(configs: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Settings, name and value, that disable the filters and text converters of these git configurations, of the
    machine's, the user's and those that they include. ToolError where they are too many to read."""
    paths = [*map(os.path.expanduser, _OWN_CONFIGS), *configs]
    found, left = dict[str, str](), _MAX_CONFIGS_BYTES
    for path in paths:  # it grows meanwhile
        text = _text(path, left)
        left -= max(len(text), _MIN_COUNTED_BYTES)
        if left <= 0:
            raise ToolError("LIMIT_EXCEEDED", "The workspace has too much git configuration to check. git was not run.")
        found |= disable_drivers(text)
        named = (os.path.join(os.path.dirname(path), os.path.expanduser(one)) for one in list_included_paths(text))
        paths += [one for one in map(os.path.normpath, named) if one not in paths]
    return tuple(sorted(found.items()))


def _text(path: str, most: int) -> str:
    def opened(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK)

    with contextlib.suppress(OSError, ValueError), open(path, "rb", opener=opened) as file:
        return os.fsdecode(file.read(most) or b"")
    return ""  # git cannot read it either


def _is_tracked(path: str, roots: tuple[str, ...]) -> bool:
    folder = path
    while folder not in roots and folder != "/":
        folder = os.path.dirname(folder)
        index = os.path.join(folder, ".git", "index")
        if (found := _state(index)) is not None:
            return _holds(_content(index, found), os.fsencode(os.path.relpath(path, folder)))
    return False


def _holds(index: bytes, name: bytes) -> bool:
    """Whether an entry has this name, or one in that folder: its length stands before it, a NUL behind. Indexes of
    version 4 shorten names, so that only some are found in those."""
    place = index.find(name)
    while place >= 0:
        length = min(index.find(b"\0", place) - place, _LENGTH)
        is_whole = index[place + len(name) : place + len(name) + 1] in {b"\0", b"/"}
        if is_whole and int.from_bytes(index[place - 2 : place], "big") & _LENGTH == length:
            return True
        place = index.find(name, place + 1)
    return False


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_size


@lru_cache(maxsize=4)
def _content(path: str, _state: tuple[int, int, int]) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(_MAX_INDEX_BYTES)
    except OSError:
        return b""
