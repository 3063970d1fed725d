"""Looks through a root: every path that is there is either marked, or lies in one that is told as not covered.

No link is followed, whatever is renamed meanwhile: paths are opened beneath the root's descriptor.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from handrail.changes.snapshots.marks import PathStat, to_path_stat
from handrail.changes.snapshots.patience import (
    MAX_FILE_BYTES,
    MAX_SNAPSHOT_PATHS,
    SnapshotDeadline,
    SnapshotError,
    SnapshotLimitError,
)
from handrail.changes.snapshots.tidying import tidy_path
from handrail.policy.names import is_credential
from handrail.workspace.resolve import LIST_FOLDER, open_beneath
from handrail.workspace.roots import Root

REPOSITORY = ".git"
OTHER = "neither file, link nor folder"


class Scan(NamedTuple):
    """What is in a root, by paths below it."""

    marks: dict[str, PathStat]
    uncovered: dict[str, str]
    """Paths that are there and were not looked at or into, each with the reason in words."""
    seen: dict[str, PathStat]
    """What these are themselves, as far as somebody looked."""


def scan(
    root: Root,
    patience: SnapshotDeadline,
    *,
    left_out: Mapping[str, str],
    others: Collection[str] = (),
    kernel: bool,
    everything: bool = False,
    tidy: bool = False,
    start: str = "",
    most: int = MAX_SNAPSHOT_PATHS,
) -> Scan:
    """Everything below a root, or below a folder in it. `left_out`: what is not looked at, with the reason. `others`:
    roots in it, which are looked at on their own. `everything`: also repositories, credentials and large files. `tidy`:
    what nobody could look at, or bring back, is opened to its owner or removed on the way."""
    found = Scan({}, {}, {})
    waiting = [start]
    while waiting:
        patience.check()
        folder = waiting.pop()
        entries = _entries(root, folder, found, kernel=kernel)
        if not everything and folder and any(name == REPOSITORY for name, _ in entries):
            found.marks.pop(folder, None)
            found.uncovered[folder] = "a repository of its own"
            continue
        for name, met in entries:
            path = f"{folder}/{name}" if folder else name
            if path in others:
                continue
            mark = tidy_path(root, path, met, kernel=kernel) if tidy and path not in left_out else met
            if mark is None:
                continue
            why = left_out.get(path) or describe_uncovered(path, mark, everything=everything)
            if why:
                found.uncovered[path], found.seen[path] = why, mark
                continue
            found.marks[path] = mark
            if mark.kind == "folder":
                waiting.append(path)
        if len(found.marks) > most:
            raise SnapshotLimitError
    return found


def describe_uncovered(path: str, mark: PathStat, *, everything: bool = False) -> str:
    """Why a path is not covered, in words; empty where it is."""
    if not everything and path == REPOSITORY:
        return "the repository itself"
    if not everything and is_credential(path):
        return "a credential"
    if mark.kind == "other":
        return OTHER
    is_large = not everything and mark.kind == "file" and mark.size > MAX_FILE_BYTES
    return f"larger than {MAX_FILE_BYTES >> 20} MB" if is_large else ""


def _entries(root: Root, folder: str, found: Scan, *, kernel: bool) -> list[tuple[str, PathStat]]:
    """What is in a folder; nothing where nobody can tell, and then it is told as not covered: what shows up in it later
    may have been there all the time."""
    try:
        descriptor = open_beneath(root.descriptor, folder or ".", LIST_FOLDER, kernel=kernel)
        try:
            return list(_marked(descriptor))
        finally:
            os.close(descriptor)
    except OSError as error:
        if not folder:
            raise SnapshotError(f"the workspace cannot be looked into ({error.strerror})") from None
        found.uncovered[folder] = "a folder that cannot be read"
        return []


def _marked(descriptor: int) -> Iterator[tuple[str, PathStat]]:
    with os.scandir(descriptor) as entries:
        for entry in entries:
            try:
                yield entry.name, to_path_stat(entry.stat(follow_symlinks=False))
            except FileNotFoundError:  # gone meanwhile
                continue
