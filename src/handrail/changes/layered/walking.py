"""Walks through a layer and what is beneath it, side by side."""

import errno
import os
from collections.abc import Iterator
from typing import NamedTuple

from handrail.changes.layered.beneath import Beneath, Place, beneath
from handrail.changes.layered.marks import is_opaque, is_whiteout
from handrail.changes.layered.opening import opened_folder
from handrail.sandbox.layer.layer import Overlaid

DEEPEST = 100
"""Folders in folders that are walked: each holds descriptors open. What is deeper nobody made to keep it."""
SWAPPED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ESTALE})
"""What the system says when something is another thing than it was a moment ago."""


class Met(NamedTuple):
    """A path at which the layer says something. Its descriptors are open only until the next one is asked for."""

    path: str
    """Below the root, and behind what the walk begins with."""
    now: Place | None
    """What the layer has there; None where it took it away."""
    before: Place | None
    """What is beneath; None where nothing was."""
    made: bool = False
    """Whether it is known to be made here: it is in a folder that is new."""
    around: int = 0
    """When entries came or went in the folder beneath, where it has none of this name; 0 where there is no folder."""


class Walk:
    """One walk through what lies over a root."""

    def __init__(self, over: Overlaid, start: str = "") -> None:
        """`start`: what every path begins with."""
        self._over = over
        self._start = start
        self.unreadable: list[str] = []
        """Paths beneath that cannot be looked into."""
        self.swapped: list[str] = []
        """Paths beneath that others changed while they were looked at."""
        self.too_deep: list[str] = []

    def paths(self) -> Iterator[Met]:
        """Every path that the layer says something about, a folder before what is in it."""
        over = self._over
        with opened_folder(over.upper) as upper, beneath(over.root, over.below) as below:
            yield from self._folder(upper, below, self._start, replaced=is_opaque(upper))

    def _folder(self, upper: int, below: Beneath | None, at: str, *, replaced: bool) -> Iterator[Met]:
        """`replaced`: the folder is another one than that beneath: what is only there is gone."""
        seen: set[str] = set()
        made = replaced or below is None
        with os.scandir(upper) as entries:
            found = sorted(entries, key=_name_of)
        for entry in found:
            name = entry.name
            now = Place(upper, name, entry.stat(follow_symlinks=False), ours=True)
            before = below.find(name) if below is not None else None
            seen.add(name)
            if is_whiteout(upper, name, now.status):
                yield from self._gone(below, before, at + name)
                continue
            around = below.changed() if below is not None and before is None else 0
            yield Met(at + name, now, before, made, around)
            yield from self._inside(now, below if before is not None else None, before, at + name, made=made)
        if replaced and below is not None:
            for name in sorted(set(below.names()) - seen):
                yield from self._gone(below, below.find(name), at + name)

    def _inside(
        self, now: Place, below: Beneath | None, before: Place | None, path: str, *, made: bool
    ) -> Iterator[Met]:
        if now.is_folder:
            if self._is_too_deep(path):
                return
            inner = self._entered(below, now.name, path) if before is not None and before.is_folder else None
            try:
                with opened_folder(now.name, now.folder) as upper:
                    yield from self._folder(upper, inner, f"{path}/", replaced=made or is_opaque(upper))
            finally:
                if inner is not None:
                    inner.close()
        elif before is not None and before.is_folder:
            yield from self._content_gone(below, now.name, path)

    def _gone(self, below: Beneath | None, before: Place | None, path: str) -> Iterator[Met]:
        if before is not None:
            yield Met(path, None, before)
            if before.is_folder:
                yield from self._content_gone(below, before.name, path)

    def _content_gone(self, below: Beneath | None, name: str, path: str) -> Iterator[Met]:
        inner = self._entered(below, name, path)
        if inner is not None:
            with inner:
                for each in sorted(inner.names()):
                    yield from self._gone(inner, inner.find(each), f"{path}/{each}")

    def _entered(self, below: Beneath | None, name: str, path: str) -> Beneath | None:
        try:
            return below.enter(name) if below is not None and not self._is_too_deep(path) else None
        except OSError as error:
            if error.errno not in {errno.EACCES, *SWAPPED}:
                raise
            (self.unreadable if error.errno == errno.EACCES else self.swapped).append(path)
            return None

    def _is_too_deep(self, path: str) -> bool:
        if path.count("/") - self._start.count("/") < DEEPEST:
            return False
        if path not in self.too_deep:
            self.too_deep.append(path)
        return True


def _name_of(entry: "os.DirEntry[str]") -> str:
    return entry.name
