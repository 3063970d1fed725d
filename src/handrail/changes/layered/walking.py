"""Walks through an overlay and what is beneath it, side by side."""

import errno
import os
from collections.abc import Iterator
from typing import NamedTuple

from handrail.changes.layered.beneath import DirEntry, LowerDir, open_lower_dir
from handrail.changes.layered.marks import is_opaque, is_whiteout
from handrail.changes.layered.opening import open_overlay_folder
from handrail.sandbox.layer.layer import OverlayMount

MAX_OVERLAY_DEPTH = 100
"""Folders in folders that are walked: each holds descriptors open. Nobody makes deeper ones on purpose."""
SWAPPED_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ESTALE})
"""What the system says when something is another thing than it was a moment ago."""


class OverlayEntry(NamedTuple):
    """A path at which the overlay says something. Its descriptors are open only until the next one is asked for."""

    path: str
    """Below the root, and behind what the walk begins with."""
    upper: DirEntry | None
    """What the overlay has there; None where it took it away."""
    lower: DirEntry | None
    """What is beneath; None where nothing was."""
    made: bool = False
    """Whether it is known to be made here: it is in a folder that is new."""
    parent_ctime: int = 0
    """When entries came or went in the folder beneath, where it has none of this name; 0 where there is no folder."""


class OverlayWalk:
    """One walk through what lies over a root."""

    def __init__(self, over: OverlayMount, start: str = "") -> None:
        """`start`: what every path begins with."""
        self._over = over
        self._start = start
        self.unreadable: list[str] = []
        """Paths beneath that cannot be looked into."""
        self.swapped: list[str] = []
        """Paths beneath that others changed while they were looked at."""
        self.too_deep: list[str] = []

    def paths(self) -> Iterator[OverlayEntry]:
        """Every path that the overlay says something about, a folder before what is in it."""
        over = self._over
        with open_overlay_folder(over.upper) as upper, open_lower_dir(over.root, over.below) as below:
            yield from self._folder(upper, below, self._start, replaced=is_opaque(upper))

    def _folder(self, upper: int, below: LowerDir | None, at: str, *, replaced: bool) -> Iterator[OverlayEntry]:
        """`replaced`: the folder is another one than that beneath: what is only there is gone."""
        seen: set[str] = set()
        made = replaced or below is None
        with os.scandir(upper) as entries:
            found = sorted(entries, key=_name_of)
        for entry in found:
            name = entry.name
            now = DirEntry(upper, name, entry.stat(follow_symlinks=False), ours=True)
            before = below.find(name) if below is not None else None
            seen.add(name)
            if is_whiteout(upper, name, now.status):
                yield from self._gone(below, before, at + name)
                continue
            around = below.root_ctime() if below is not None and before is None else 0
            yield OverlayEntry(at + name, now, before, made, around)
            yield from self._inside(now, below if before is not None else None, before, at + name, made=made)
        if replaced and below is not None:
            for name in sorted(set(below.names()) - seen):
                yield from self._gone(below, below.find(name), at + name)

    def _inside(
        self, now: DirEntry, below: LowerDir | None, before: DirEntry | None, path: str, *, made: bool
    ) -> Iterator[OverlayEntry]:
        if now.is_folder:
            if self._is_too_deep(path):
                return
            inner = self._entered(below, now.name, path) if before is not None and before.is_folder else None
            try:
                with open_overlay_folder(now.name, now.folder) as upper:
                    yield from self._folder(upper, inner, f"{path}/", replaced=made or is_opaque(upper))
            finally:
                if inner is not None:
                    inner.close()
        elif before is not None and before.is_folder:
            yield from self._content_gone(below, now.name, path)

    def _gone(self, below: LowerDir | None, before: DirEntry | None, path: str) -> Iterator[OverlayEntry]:
        if before is not None:
            yield OverlayEntry(path, None, before)
            if before.is_folder:
                yield from self._content_gone(below, before.name, path)

    def _content_gone(self, below: LowerDir | None, name: str, path: str) -> Iterator[OverlayEntry]:
        inner = self._entered(below, name, path)
        if inner is not None:
            with inner:
                for each in sorted(inner.names()):
                    yield from self._gone(inner, inner.find(each), f"{path}/{each}")

    def _entered(self, below: LowerDir | None, name: str, path: str) -> LowerDir | None:
        try:
            return below.enter(name) if below is not None and not self._is_too_deep(path) else None
        except OSError as error:
            if error.errno not in {errno.EACCES, *SWAPPED_ERRNOS}:
                raise
            (self.unreadable if error.errno == errno.EACCES else self.swapped).append(path)
            return None

    def _is_too_deep(self, path: str) -> bool:
        if path.count("/") - self._start.count("/") < MAX_OVERLAY_DEPTH:
            return False
        if path not in self.too_deep:
            self.too_deep.append(path)
        return True


def _name_of(entry: "os.DirEntry[str]") -> str:
    return entry.name
