"""Files with several names in a layer: which of them are to be names of one file again."""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from handrail.changes.layered.comparing import Difference
from handrail.changes.layered.contents import Contents, contents_of
from handrail.changes.layered.opening import open_file, opened_folder
from handrail.changes.layered.walking import Met
from handrail.policy.names import protection
from handrail.workspace.other_names import File

_INDEX = "index"
"""Where overlayfs has files with several names, in the folder that it works in."""


class Names:
    """The names that the files of one layer have, and those that the files beneath it had."""

    def __init__(self) -> None:
        self._now: dict[File, list[str]] = {}
        self._before: dict[str, File] = {}
        """Of the names that were there, and are files in the layer too."""
        self._several: set[str] = set()
        """The names that were there of files that have others."""
        self._count: dict[File, int] = {}
        """How many names these files had, in the layer or elsewhere."""

    def note(self, met: Met) -> None:
        """Takes a name in, whether or not it is different."""
        if met.before is not None and met.before.status.st_nlink > 1:
            self._several.add(met.path)
        if met.now is None or met.now.is_folder:
            return
        if met.now.status.st_nlink > 1:
            self._now.setdefault(_file(met.now.status), []).append(met.path)
        if met.before is not None and (met.before.status.st_nlink > 1 or met.now.status.st_nlink > 1):
            self._before[met.path] = _file(met.before.status)
            self._count[self._before[met.path]] = met.before.status.st_nlink

    def linked(self, found: list[Difference]) -> Iterator[Difference]:
        """The differences, with what their names share."""
        first = {name: self._first(names) for names in self._now.values() if len(names) > 1 for name in names}
        apart = self._apart(found)
        for one in found:
            manner, to = one.manner, first.get(one.path)
            if to is not None and to != one.path and not (self._shared(one.path, to) and _stays(one)):
                hides = _hides(one.path, to)
                manner = replace(manner, linked_to=None if hides else os.fsencode(to), apart=hides)
            if manner.in_place and self._before.get(one.path) in apart:
                manner = replace(manner, in_place=False)
            one = one._replace(manner=manner)  # noqa: PLW2901
            yield one._replace(shared=one.path in self._several and _stays(one))

    def changed_without_name(self, work: str, found: list[Difference]) -> bool:
        """Whether a file with several names was changed under one that is gone by now. A real file would have become
        another one under its other names too; the layer has what it became in its index alone, where no name leads."""
        went = {one.before.hash for one in found if one.before is not None and one.path in self._several}
        return not {contents.hash for contents in _nameless(work)} <= went

    def written_through(self, found: list[Difference]) -> dict[File, tuple[Difference, int]]:
        """The files that stay themselves, and have names that no difference is about: these change too. Each with one
        of its differences, and how many names it has."""
        stay = [one for one in found if one.manner.in_place or _is_mode_only(one)]
        files = {self._before[one.path]: one for one in stay if one.path in self._before}
        known = Counter(self._before.get(one.path) for one in found)
        return {file: (one, self._count[file]) for file, one in files.items() if self._count[file] > known[file]}

    def _first(self, names: list[str]) -> str:
        """The name that the others are added to: one that was there before, if there is one."""
        return next((name for name in names if name in self._before), names[0])

    def _shared(self, one: str, other: str) -> bool:
        before = self._before.get(one)
        return before is not None and before == self._before.get(other)

    def _apart(self, found: list[Difference]) -> set[File]:
        """Files whose names were given different contents. A layer that does not keep the names of a file together
        lets that happen; then each name is to have what the command saw there."""
        contents: dict[File, set[str]] = {}
        for one in found:
            file = self._before.get(one.path)
            if file is not None and one.manner.in_place and one.after is not None:
                contents.setdefault(file, set()).add(one.after.hash)
        return {file for file, hashes in contents.items() if len(hashes) > 1}


def _stays(one: Difference) -> bool:
    """Whether the file itself is the one that was there: it is written through, or has another mode."""
    same = one.before is not None and one.after is not None and one.before.hash == one.after.hash
    return one.manner.in_place or same


def _is_mode_only(one: Difference) -> bool:
    """Whether a file gets another mode, which it has under all of its names."""
    before, after = one.before, one.after
    return before is not None and after is not None and after.kind == "file" and before.hash == after.hash


def _hides(path: str, to: str) -> bool:
    """Whether one of two names says that it steers tools and the other does not: whoever writes to that one later would
    write the first. So they become two files."""
    return (protection(to) is None) != (protection(path) is None)


def _file(status: os.stat_result) -> File:
    return status.st_dev, status.st_ino


def _nameless(work: str) -> Iterator[Contents]:
    with contextlib.suppress(FileNotFoundError), opened_folder(os.path.join(work, _INDEX)) as index:
        for name in os.listdir(index):
            status = os.stat(name, dir_fd=index, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                with open(open_file(name, index), "rb", buffering=0) as file:
                    yield contents_of(file.fileno(), status.st_size)
