"""The ignore files between a root and the folder that is searched. ripgrep would read those above the root too, so it
reads none of them, and what they say is applied to its results."""

import os
from collections.abc import Iterator

from handrail.workspace.ignore_files import FILES, STRONG
from handrail.workspace.search.engine import Where

_LARGEST = 1 << 16
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def has_rules_above(where: Where) -> bool:
    """Whether there are such files."""
    return any(_is_there(where.root, f"{way}{name}") for way in _ways(where) for name in FILES)


def takes_back_above(where: Where) -> bool:
    """Whether they may take back what files below the folder pass over: then ripgrep must not go by those either."""
    return any(_has_exception(where.root, f"{way}{name}") for way in _ways(where) for name in STRONG)


def _ways(where: Where) -> Iterator[str]:
    """The folders above the one that is searched, each as the way from the root to it."""
    way = "" if where.relative == "." else where.relative
    while way:
        way = way.rpartition("/")[0]
        yield f"{way}/" if way else ""


def _is_there(root: int, path: str) -> bool:
    try:
        os.stat(path, dir_fd=root, follow_symlinks=False)
    except OSError:
        return False
    return True


def _has_exception(root: int, path: str) -> bool:
    try:
        descriptor = os.open(path, _READ, dir_fd=root)
    except OSError:
        return False
    try:
        return any(line.lstrip().startswith(b"!") for line in os.read(descriptor, _LARGEST).split(b"\n"))
    except OSError:
        return False
    finally:
        os.close(descriptor)
