"""Counts the names that policy withholds, without looking into any file: the count must tell nothing of their contents.

An ordered search sees a part of the tree, and this walks the same part again. It is cheaper than to make ripgrep log
what it passes over, which costs two milliseconds at the start, as long as the part is small.
"""

import os
from collections.abc import Iterator
from functools import lru_cache

from handrail.policy.names import is_credential
from handrail.policy.secret_globs import list_secret_globs
from handrail.workspace.search.beneath import open_beneath
from handrail.workspace.search.engine import SearchScope, Stop, to_sort_key
from handrail.workspace.search.glob import Matches, build_matcher
from handrail.workspace.search.kept import GlobFilter

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


def collect_withheld_names(where: SearchScope, last: bytes | None, stop: Stop) -> set[bytes]:
    """The withheld names that an ordered search passes on its way to `last`; None for all of them."""
    chosen = GlobFilter(where)
    end = None if last is None else to_sort_key(last)
    found: set[bytes] = set()
    for path, is_folder in _walk(where, chosen):
        if stop() or (end is not None and to_sort_key(path) > end):
            break
        if is_covered(path) and chosen(path, folder=is_folder):
            found.add(path)
    return found


def is_covered(path: bytes) -> bool:
    """Whether ripgrep was kept from a name; the count is the same whichever way it is taken."""
    name = path.rpartition(b"/")[2].lower()
    return any(matches(name) for matches in _secrets())


@lru_cache(maxsize=1)
def _secrets() -> tuple[Matches, ...]:
    return tuple(map(build_matcher, list_secret_globs()))


def _walk(where: SearchScope, chosen: GlobFilter) -> Iterator[tuple[bytes, bool]]:
    """Names in order, each folder before what is in it. What is withheld or passed over is not entered."""
    levels = [(b"", iter(_names(where, b"")))]
    while levels:
        folder, names = levels[-1]
        entry = next(names, None)
        if entry is None:
            levels.pop()
            continue
        name, is_folder = entry
        path = folder + name
        yield path, is_folder
        if is_folder and not is_credential(os.fsdecode(path)) and chosen(path, folder=True):
            inside = path + b"/"
            levels.append((inside, iter(_names(where, inside))))


def _names(where: SearchScope, folder: bytes) -> list[tuple[bytes, bool]]:
    try:
        descriptor = open_beneath(where, os.fsdecode(folder) or ".", _FOLDER)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as entries:
            return sorted((os.fsencode(entry.name), _is_own_folder(entry)) for entry in entries if _is_seen(entry))
    finally:
        os.close(descriptor)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _is_seen(entry: os.DirEntry[str]) -> bool:
    """Links and devices are not searched."""
    return _is_own_folder(entry) or entry.is_file(follow_symlinks=False)
