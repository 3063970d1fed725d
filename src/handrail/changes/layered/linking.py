"""Files with several names in a layer: which of them are to be names of one file again."""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from handrail.changes.layered.comparing import Difference
from handrail.changes.layered.walking import Met

_File = tuple[int, int]
"""What tells a file apart: its device and its number."""


class Names:
    """The names that the files of one layer have, and those that the files beneath it had."""

    def __init__(self) -> None:
        self._now: dict[_File, list[str]] = {}
        self._before: dict[str, _File] = {}
        """Of the names that were there, and are files in the layer too."""

    def note(self, met: Met) -> None:
        """Takes a name in, whether or not it is different."""
        if met.now is None or met.now.is_folder:
            return
        if met.now.status.st_nlink > 1:
            self._now.setdefault(_file(met.now.status), []).append(met.path)
        if met.before is not None and (met.before.status.st_nlink > 1 or met.now.status.st_nlink > 1):
            self._before[met.path] = _file(met.before.status)

    def linked(self, found: list[Difference]) -> Iterator[Difference]:
        """The differences, with what their names share."""
        first = {name: self._first(names) for names in self._now.values() if len(names) > 1 for name in names}
        apart = self._apart(found)
        for one in found:
            manner, to = one.manner, first.get(one.path)
            if to is not None and to != one.path and not (self._shared(one.path, to) and _stays(one)):
                manner = replace(manner, linked_to=os.fsencode(to))
            if manner.in_place and self._before.get(one.path) in apart:
                manner = replace(manner, in_place=False)
            yield one if manner is one.manner else one._replace(manner=manner)

    def _first(self, names: list[str]) -> str:
        """The name that the others are added to: one that was there before, if there is one."""
        return next((name for name in names if name in self._before), names[0])

    def _shared(self, one: str, other: str) -> bool:
        before = self._before.get(one)
        return before is not None and before == self._before.get(other)

    def _apart(self, found: list[Difference]) -> set[_File]:
        """Files whose names were given different contents. A layer that does not keep the names of a file together
        lets that happen; then each name is to have what the command saw there."""
        contents: dict[_File, set[str]] = {}
        for one in found:
            file = self._before.get(one.path)
            if file is not None and one.manner.in_place and one.after is not None:
                contents.setdefault(file, set()).add(one.after.hash)
        return {file for file, hashes in contents.items() if len(hashes) > 1}


def _stays(one: Difference) -> bool:
    """Whether the file itself is the one that was there: it is written through, or has another mode."""
    same = one.before is not None and one.after is not None and one.before.hash == one.after.hash
    return one.manner.in_place or same


def _file(status: os.stat_result) -> _File:
    return status.st_dev, status.st_ino
