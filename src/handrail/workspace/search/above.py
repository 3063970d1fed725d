"""The ignore files between a root and the folder that is searched. ripgrep would read those above the root too, so it
reads none of them, and what they say is applied to its results. Those of the folder itself it reads, unless they are
links, which it would follow wherever they lead, or FIFOs, for which it would wait."""

import os
import stat
from collections.abc import Iterator

from handrail.workspace.ignore_files import FILES, STRONG
from handrail.workspace.search.engine import SearchScope

_MAX_IGNORE_FILE_BYTES = 1 << 16
_HERE = (*STRONG, ".gitignore")
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def has_rules_above(where: SearchScope) -> bool:
    """Whether there are such files."""
    return any(_is_there(where.root, f"{way}{name}") for way in _ways(where) for name in FILES)


def has_exceptions_above(where: SearchScope) -> bool:
    """Whether they may take back what files below the folder pass over: then ripgrep must not go by those either."""
    return any(_has_exception(where.root, f"{way}{name}") for way in _ways(where) for name in STRONG)


def has_odd_rules(where: SearchScope) -> bool:
    """Whether an ignore file of the folder is no regular file: then ripgrep must read none."""
    return any(_kind(where.folder, name) not in {None, stat.S_IFREG} for name in _HERE)


def has_odd_repository(where: SearchScope) -> bool:
    """Whether git's own list would be looked for elsewhere than in the folder's `.git`, as in a linked work tree."""
    for name in (".git", ".git/info"):
        kind = _kind(where.folder, name)
        if kind != stat.S_IFDIR:
            return kind is not None
    return _kind(where.folder, ".git/info/exclude") not in {None, stat.S_IFREG}


def _ways(where: SearchScope) -> Iterator[str]:
    """The folders above the one that is searched, each as the way from the root to it."""
    way = "" if where.relative == "." else where.relative
    while way:
        way = way.rpartition("/")[0]
        yield f"{way}/" if way else ""


def _is_there(root: int, path: str) -> bool:
    return _kind(root, path) is not None


def _kind(folder: int, path: str) -> int | None:
    try:
        return stat.S_IFMT(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return None


def _has_exception(root: int, path: str) -> bool:
    try:
        descriptor = os.open(path, _READ, dir_fd=root)
    except OSError:
        return False
    try:
        return any(line.lstrip().startswith(b"!") for line in os.read(descriptor, _MAX_IGNORE_FILE_BYTES).split(b"\n"))
    except OSError:
        return False
    finally:
        os.close(descriptor)
