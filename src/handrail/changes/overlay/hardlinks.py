"""Files with several names in an overlay: which of them are to be names of one file again."""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from handrail.changes.overlay.compare import OverlayDifference
from handrail.changes.overlay.walk import OverlayEntry, open_overlay_file, open_overlay_folder
from handrail.policy.names import find_protection
from handrail.workspace.file_state import FileContents, FileId, read_contents

_INDEX = "index"
"""Where overlayfs has files with several names, in the folder that it works in."""


class HardLinks:
    """The names that the files of one overlay have, and those that the files beneath it had."""

    def __init__(self) -> None:
        self._now: dict[FileId, list[str]] = {}
        self._before: dict[str, FileId] = {}
        """Of the names that were there, and are files in the overlay too."""
        self._several: set[str] = set()
        """The names that were there of files that have others."""
        self._count: dict[FileId, int] = {}
        """How many names these files had, in the overlay or elsewhere."""

    def note(self, met: OverlayEntry) -> None:
        """Takes a name in, whether or not it is different."""
        if met.lower is not None and met.lower.status.st_nlink > 1:
            self._several.add(met.path)
        if met.upper is None or met.upper.is_folder:
            return
        if met.upper.status.st_nlink > 1:
            self._now.setdefault(_file(met.upper.status), []).append(met.path)
        if met.lower is not None and (met.lower.status.st_nlink > 1 or met.upper.status.st_nlink > 1):
            self._before[met.path] = _file(met.lower.status)
            self._count[self._before[met.path]] = met.lower.status.st_nlink

    def linked(self, found: list[OverlayDifference]) -> Iterator[OverlayDifference]:
        """The differences, with what their names share."""
        first = {name: self._first(names) for names in self._now.values() if len(names) > 1 for name in names}
        apart = self._apart(found)
        for one in found:
            placement, to = one.placement, first.get(one.path)
            if to is not None and to != one.path and not (self._shared(one.path, to) and _stays(one)):
                hides = _hides(one.path, to)
                placement = replace(placement, linked_to=None if hides else os.fsencode(to), force_copy=hides)
            if placement.in_place and self._before.get(one.path) in apart:
                placement = replace(placement, in_place=False)
            one = one._replace(placement=placement)  # noqa: PLW2901
            yield one._replace(shared=one.path in self._several and _stays(one))

    def changed_without_name(self, work: str, found: list[OverlayDifference]) -> bool:
        """Whether a file with several names was changed under one that is gone by now. A real file would have become
        another one under its other names too; the overlay has the result in its index alone, where no name leads."""
        went = {one.before.hash for one in found if one.before is not None and one.path in self._several}
        return not {contents.hash for contents in _nameless(work)} <= went

    def written_through(self, found: list[OverlayDifference]) -> dict[FileId, tuple[OverlayDifference, int]]:
        """The files that stay themselves, and have names that no difference is about: these change too. Each with one
        of its differences, and how many names it has."""
        stay = [one for one in found if one.placement.in_place or _is_mode_only(one)]
        files = {self._before[one.path]: one for one in stay if one.path in self._before}
        known = Counter(self._before.get(one.path) for one in found)
        return {file: (one, self._count[file]) for file, one in files.items() if self._count[file] > known[file]}

    def _first(self, names: list[str]) -> str:
        """The name that the others are added to: one that was there before, if there is one."""
        return next((name for name in names if name in self._before), names[0])

    def _shared(self, one: str, other: str) -> bool:
        before = self._before.get(one)
        return before is not None and before == self._before.get(other)

    def _apart(self, found: list[OverlayDifference]) -> set[FileId]:
        """Files whose names were given different contents. An overlay that does not keep the names of a file together
        lets that happen; then each name is to have what the command saw there."""
        contents: dict[FileId, set[str]] = {}
        for one in found:
            file = self._before.get(one.path)
            if file is not None and one.placement.in_place and one.after is not None:
                contents.setdefault(file, set()).add(one.after.hash)
        return {file for file, hashes in contents.items() if len(hashes) > 1}


def _stays(one: OverlayDifference) -> bool:
    """Whether the file itself is the one that was there: it is written through, or has another mode."""
    same = one.before is not None and one.after is not None and one.before.hash == one.after.hash
    return one.placement.in_place or same


def _is_mode_only(one: OverlayDifference) -> bool:
    """Whether a file gets another mode, which it has under all of its names."""
    before, after = one.before, one.after
    return before is not None and after is not None and after.kind == "file" and before.hash == after.hash


def _hides(path: str, to: str) -> bool:
    """Whether one of two names says that it steers tools and the other does not: whoever writes to that one later would
    write the first. So they become two files."""
    return (find_protection(to) is None) != (find_protection(path) is None)


def _file(status: os.stat_result) -> FileId:
    return status.st_dev, status.st_ino


def _nameless(work: str) -> Iterator[FileContents]:
    with contextlib.suppress(FileNotFoundError), open_overlay_folder(os.path.join(work, _INDEX)) as index:
        for name in os.listdir(index):
            status = os.stat(name, dir_fd=index, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                with open(open_overlay_file(name, index), "rb", buffering=0) as file:
                    yield read_contents(file.fileno(), status.st_size)
