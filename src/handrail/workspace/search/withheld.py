"""Counts the names that policy withholds, without looking into any file: the count must tell nothing of their contents.

An ordered search sees a part of the tree, and this walks the same part again. It is cheaper than to make ripgrep log
what it passes over, which costs two milliseconds at the start, as long as the part is small.
"""

import os
from collections.abc import Iterator
from functools import lru_cache

from handrail.policy.names import is_credential
from handrail.policy.secret_globs import secret_globs
from handrail.workspace.ignore import ALWAYS
from handrail.workspace.search.beneath import open_beneath
from handrail.workspace.search.engine import Stop, Where, in_order
from handrail.workspace.search.glob import Matches, matcher
from handrail.workspace.search.kept import Ignored, excluder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


def withheld_until(where: Where, last: bytes | None, stop: Stop, *, kernel: bool) -> set[bytes]:
    """The withheld names that an ordered search passes on its way to `last`; None for all of them."""
    passed_over = Passing(where, kernel=kernel)
    end = None if last is None else in_order(last)
    found: set[bytes] = set()
    for path, is_folder in _walk(where.folder, passed_over, kernel=kernel):
        if stop() or (end is not None and in_order(path) > end):
            break
        if is_covered(path) and passed_over.counts(path, folder=is_folder):
            found.add(path)
    return found


def is_covered(path: bytes) -> bool:
    """Whether ripgrep was kept from a name; the count is the same whichever way it is taken."""
    name = path.rpartition(b"/")[2].lower()
    return any(matches(name) for matches in _secrets())


@lru_cache(maxsize=1)
def _secrets() -> tuple[Matches, ...]:
    return tuple(map(matcher, secret_globs()))


class Passing:
    """What a search is kept from by anything but policy."""

    def __init__(self, where: Where, *, kernel: bool) -> None:
        self._include = matcher(where.include) if where.include is not None else None
        self._excluded = excluder(where.exclude)
        self._ignored = Ignored(where, kernel=kernel)

    def counts(self, path: bytes, *, folder: bool) -> bool:
        """Whether a name would have been searched, were it not withheld."""
        wanted = folder or self._include is None or self._include(path)
        return wanted and not self.skips(path, folder=folder)

    def skips(self, path: bytes, *, folder: bool) -> bool:
        """Whether ignore rules or globs pass a name over."""
        if folder and os.path.basename(path) in _ALWAYS:
            return True
        return self._ignored(path, folder=folder) or (self._excluded is not None and self._excluded(path))


_ALWAYS = frozenset(name.encode() for name in ALWAYS)


def _walk(root: int, passing: Passing, *, kernel: bool, folder: bytes = b"") -> Iterator[tuple[bytes, bool]]:
    """Names in order, each folder before what is in it. What is withheld or passed over is not entered."""
    for name, is_folder in _names(root, folder, kernel=kernel):
        path = folder + name
        yield path, is_folder
        if is_folder and not is_credential(_name(path)) and not passing.skips(path, folder=True):
            yield from _walk(root, passing, kernel=kernel, folder=path + b"/")


def _names(root: int, folder: bytes, *, kernel: bool) -> list[tuple[bytes, bool]]:
    try:
        descriptor = open_beneath(root, os.fsdecode(folder) or ".", _FOLDER, kernel=kernel)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as entries:
            return sorted((os.fsencode(entry.name), _is_folder(entry)) for entry in entries if _is_seen(entry))
    finally:
        os.close(descriptor)


def _name(path: bytes) -> str:
    return os.fsdecode(path.rpartition(b"/")[2])


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _is_seen(entry: os.DirEntry[str]) -> bool:
    """Links and devices are not searched."""
    return _is_folder(entry) or entry.is_file(follow_symlinks=False)
