"""Brings a file to its path: from what was kept, or from an overlay; instead of what is there, or through it."""

import contextlib
import errno
import os
from collections.abc import Callable

from handrail.changes.holding import StagingDir
from handrail.changes.manners import Placement
from handrail.changes.sources import open_source_parent, read_overlay_file
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.store.blobs import Blobs
from handrail.workspace.atomic import Away, build_swap_name, discard, put_instead, swap_in, take
from handrail.workspace.errors import build_conflict_error
from handrail.workspace.file_state import Content, FileSnapshot, PathState, read_file_snapshot, read_state
from handrail.workspace.in_place import write_through
from handrail.workspace.resolve import READ_FILE
from handrail.workspace.workspace import Workspace

_MAX_HELD_BYTES = 8 * 1024 * 1024


Target = tuple[int, str, str]
"""Folder, name, and the path in words."""


class FilePlacer:
    """Brings files for one change set."""

    def __init__(
        self, workspace: Workspace, blobs: Blobs, temporary: str, *, flush: bool, staging: StagingDir | None
    ) -> None:
        self._workspace = workspace
        self._blobs = blobs
        self._temporary = temporary
        self.flush = flush
        self._staging = staging
        self.written_through: set[tuple[int, int]] = set()
        """Files that were written in place: their other names have the new bytes already."""

    def away(self, path: bytes) -> Away | None:
        """What becomes of a file that is taken out."""
        return self._staging.stash(path) if self._staging is not None else None

    def place_file(
        self, where: Target, key: bytes, after: State, before: FileSnapshot | None, placement: Placement
    ) -> None:
        """Brings one file. `after.mode` is the mode it gets; None leaves it as it is, or as new files are."""
        if placement.linked_to is not None:
            self._link(where, key, after, before, placement)
        elif before is not None and (before.status.st_nlink > 1 if placement.in_place is None else placement.in_place):
            self._write_through(where, after, before, placement)
        elif not self._taken(where, key, after, before, placement):
            self._put(where, key, after, before, placement)

    def has_written(self, found: PathState) -> bool:
        """Whether a file that was looked at before has been written through since, by another name of it."""
        status = found.current.status if found.current is not None else None
        return status is not None and (status.st_dev, status.st_ino) in self.written_through

    def give_back(self, where: Target, key: bytes, after: State, before: FileSnapshot | None) -> bool:
        """Puts the very file back that was taken out; whether it was held."""
        source = self._staging.unstash(key) if self._staging is not None else None
        if source is None:
            return False
        folder, name, path = where
        take(source, folder, name, after.hash, before, temporary=self._temporary, path=path)
        return True

    def _taken(
        self, where: Target, key: bytes, after: State, before: FileSnapshot | None, placement: Placement
    ) -> bool:
        if placement.source is None:
            return False
        folder, name, path = where
        with open_source_parent(placement.source) as source:
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

    def _put(self, where: Target, key: bytes, after: State, before: FileSnapshot | None, placement: Placement) -> None:
        folder, name, path = where
        put_instead(
            folder,
            name,
            self._content(after, placement),
            before,
            temporary=self._temporary,
            path=path,
            mode=after.mode,
            flush=self.flush,
            dress=_dressing(placement),
            away=self.away(key),
        )

    def _write_through(self, where: Target, after: State, before: FileSnapshot, placement: Placement) -> None:
        folder, name, path = where
        held = read_file_snapshot(folder, name, _MAX_HELD_BYTES)
        if held is None or held.hash != before.hash:
            raise build_conflict_error(path)
        self.written_through.add((held.status.st_dev, held.status.st_ino))
        new = self._content(after, placement)
        write_through(folder, name, new, held, path, after.mode, lambda: self._blobs.chunks(before.hash))
        if placement.attributes is not None and hasattr(os, "listxattr"):
            _dress_through(folder, name, placement.attributes)

    def _link(self, where: Target, key: bytes, after: State, before: FileSnapshot | None, placement: Placement) -> None:
        """Makes the path another name of a file that has the right bytes."""
        other = placement.linked_to or b""
        try:
            with self._workspace.open_parent(other) as landing:
                source = read_state(landing).current
                if source is None or source.hash != after.hash:
                    raise build_conflict_error(os.fsdecode(other))
                if not _is_same(where, source):
                    self._put_name((landing.folder, landing.name), where, key, before, source)
        except (ToolError, OSError):
            if not placement.allow_copy:
                raise
            self._put(where, key, after, before, placement)

    def _put_name(
        self, other: tuple[int, str], where: Target, key: bytes, before: FileSnapshot | None, source: FileSnapshot
    ) -> None:
        folder, name, path = where
        ready = build_swap_name(self._temporary, source.hash, before.hash) if before is not None else self._temporary
        os.link(other[1], ready, src_dir_fd=other[0], dst_dir_fd=folder, follow_symlinks=False)
        try:
            own = read_file_snapshot(folder, ready, 0)
            if own is None or own.hash != source.hash:
                raise build_conflict_error(path)
            swap_in(folder, ready, name, before, own, path, self.away(key))
        except BaseException:
            discard(folder, ready, source.status)
            raise

    def _content(self, after: State, placement: Placement) -> Content:
        source = placement.source
        if source is None:
            return Content(after.hash, after.size, lambda: self._blobs.chunks(after.hash))
        return Content(after.hash, after.size, lambda: read_overlay_file(source))


def _is_same(where: Target, other: FileSnapshot) -> bool:
    """Whether a path is a name of a file already."""
    try:
        return os.path.samestat(os.stat(where[1], dir_fd=where[0], follow_symlinks=False), other.status)
    except OSError:
        return False


def _dressing(placement: Placement) -> Callable[[int], None] | None:
    if placement.attributes is None and placement.mtime_ns is None:
        return None

    def dress(descriptor: int) -> None:
        if placement.attributes is not None and hasattr(os, "listxattr"):
            _give_attributes(descriptor, placement.attributes)
        if placement.mtime_ns is not None:
            os.utime(descriptor, ns=(placement.mtime_ns, placement.mtime_ns))

    return dress


def _dress_through(folder: int, name: str, attributes: dict[str, bytes]) -> None:
    """Gives attributes to a file that stays itself; one that nobody may write keeps those that it has."""
    with contextlib.suppress(OSError):
        descriptor = os.open(name, READ_FILE, dir_fd=folder)
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
