"""Brings a file to its path: from what was kept, or from a layer; instead of what is there, or through it."""

import contextlib
import errno
import os
from collections.abc import Callable

from handrail.changes.holding import Holding
from handrail.changes.manners import Bringing
from handrail.changes.sources import opened_source, source_pieces
from handrail.protocol.change import State
from handrail.protocol.error import ToolError
from handrail.store.blobs import Blobs
from handrail.workspace.content import Content
from handrail.workspace.current import Current, changed, current
from handrail.workspace.exact import Found, found_at, reach
from handrail.workspace.in_place import write_through
from handrail.workspace.replace import put_instead
from handrail.workspace.swapping import Away, discard, put, ready_name, unlink
from handrail.workspace.taking import take
from handrail.workspace.workspace import Workspace

_HELD = 8 * 1024 * 1024


Target = tuple[int, str, str]
"""Folder, name, and the path in words."""


class Bringer:
    """Brings files for one change set."""

    def __init__(
        self, workspace: Workspace, blobs: Blobs, temporary: str, *, flush: bool, holding: Holding | None
    ) -> None:
        self._workspace = workspace
        self._blobs = blobs
        self._temporary = temporary
        self.flush = flush
        self._holding = holding
        self.written_through: set[tuple[int, int]] = set()
        """Files that were written in place: their other names have the new bytes already."""

    def away(self, path: bytes) -> Away:
        """What becomes of a file that is taken out."""
        return self._holding.away(path) if self._holding is not None else unlink

    def bring(self, where: Target, key: bytes, after: State, before: Current | None, manner: Bringing) -> None:
        """Brings one file. `after.mode` is the mode it gets; None leaves it as it is, or as new files are."""
        if manner.linked_to is not None:
            self._link(where, key, after, before, manner)
        elif before is not None and (before.status.st_nlink > 1 if manner.in_place is None else manner.in_place):
            self._write_through(where, after, before, manner)
        elif not self._taken(where, key, after, before, manner):
            self._put(where, key, after, before, manner)

    def has_written(self, found: Found) -> bool:
        """Whether a file that was looked at before has been written through since, by another name of it."""
        status = found.current.status if found.current is not None else None
        return status is not None and (status.st_dev, status.st_ino) in self.written_through

    def give_back(self, where: Target, key: bytes, after: State, before: Current | None) -> bool:
        """Puts the very file back that was taken out; whether it was held."""
        source = self._holding.held(key) if self._holding is not None else None
        if source is None:
            return False
        folder, name, path = where
        take(source, folder, name, after.hash, before, temporary=self._temporary, path=path)
        return True

    def _taken(self, where: Target, key: bytes, after: State, before: Current | None, manner: Bringing) -> bool:
        if manner.source is None:
            return False
        folder, name, path = where
        with opened_source(manner.source) as source:
            try:
                take(
                    source,
                    folder,
                    name,
                    after.hash,
                    before,
                    temporary=self._temporary,
                    path=path,
                    mode=after.mode,
                    away=self.away(key),
                )
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                return False
        return True

    def _put(self, where: Target, key: bytes, after: State, before: Current | None, manner: Bringing) -> None:
        folder, name, path = where
        put_instead(
            folder,
            name,
            self._content(after, manner),
            before,
            temporary=self._temporary,
            path=path,
            mode=after.mode,
            flush=self.flush,
            dress=_dressing(manner),
            away=self.away(key),
        )

    def _write_through(self, where: Target, after: State, before: Current, manner: Bringing) -> None:
        folder, name, path = where
        held = current(folder, name, _HELD)
        if held is None or held.hash != before.hash:
            raise changed(path)
        self.written_through.add((held.status.st_dev, held.status.st_ino))
        new = self._content(after, manner)
        write_through(folder, name, new, held, path, after.mode, lambda: self._blobs.chunks(before.hash))
        if manner.attributes is not None and hasattr(os, "listxattr"):
            _dress_through(folder, name, manner.attributes)

    def _link(self, where: Target, key: bytes, after: State, before: Current | None, manner: Bringing) -> None:
        """Makes the path another name of a file that has the right bytes."""
        other = manner.linked_to or b""
        try:
            with reach(self._workspace, other) as landing:
                source = found_at(landing).current
                if source is None or source.hash != after.hash:
                    raise changed(os.fsdecode(other))
                if not _is_same(where, source):
                    self._put_name((landing.folder, landing.name), where, key, before, source)
        except (ToolError, OSError):
            if not manner.or_apart:
                raise
            self._put(where, key, after, before, manner)

    def _put_name(
        self, other: tuple[int, str], where: Target, key: bytes, before: Current | None, source: Current
    ) -> None:
        folder, name, path = where
        ready = ready_name(self._temporary, source.hash, before.hash) if before is not None else self._temporary
        os.link(other[1], ready, src_dir_fd=other[0], dst_dir_fd=folder, follow_symlinks=False)
        try:
            own = current(folder, ready, 0)
            if own is None or own.hash != source.hash:
                raise changed(path)
            put(folder, ready, name, before, own, path, self.away(key))
        except BaseException:
            discard(folder, ready, source.status)
            raise

    def _content(self, after: State, manner: Bringing) -> Content:
        source = manner.source
        if source is None:
            return Content(after.hash, after.size, lambda: self._blobs.chunks(after.hash))
        return Content(after.hash, after.size, lambda: source_pieces(source))


def _is_same(where: Target, other: Current) -> bool:
    """Whether a path is a name of a file already."""
    try:
        return os.path.samestat(os.stat(where[1], dir_fd=where[0], follow_symlinks=False), other.status)
    except OSError:
        return False


def _dressing(manner: Bringing) -> Callable[[int], None] | None:
    if manner.attributes is None and manner.mtime_ns is None:
        return None

    def dress(descriptor: int) -> None:
        if manner.attributes is not None and hasattr(os, "listxattr"):
            _give_attributes(descriptor, manner.attributes)
        if manner.mtime_ns is not None:
            os.utime(descriptor, ns=(manner.mtime_ns, manner.mtime_ns))

    return dress


def _dress_through(folder: int, name: str, attributes: dict[str, bytes]) -> None:
    """Gives attributes to a file that stays itself; one that nobody may write keeps those that it has."""
    with contextlib.suppress(OSError):
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            _give_attributes(descriptor, attributes)
        finally:
            os.close(descriptor)


def _give_attributes(descriptor: int, attributes: dict[str, bytes]) -> None:
    for name in os.listxattr(descriptor):
        if name.startswith("user.") and name not in attributes:
            os.removexattr(descriptor, name)
    for name, value in attributes.items():
        with contextlib.suppress(OSError):
            os.setxattr(descriptor, name, value)
