"""Brings a file to its path: from what was kept, or from a layer; instead of what is there, or through it."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

import msgspec

from handrail.changes.holding import Holding
from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.protocol.change import State
from handrail.protocol.error import ToolError
from handrail.store.blobs import Blobs
from handrail.workspace.content import Content
from handrail.workspace.current import Current, changed, current
from handrail.workspace.exact import found_at, reach
from handrail.workspace.in_place import write_through
from handrail.workspace.replace import put_instead
from handrail.workspace.swapping import Away, discard, put, ready_name, unlink
from handrail.workspace.taking import open_source, take
from handrail.workspace.workspace import Workspace

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_HELD = 8 * 1024 * 1024
_CHUNK = 1 << 20


class Source(NamedTuple):
    """A file of a layer: the open folder on top of it, and the path below that."""

    top: int
    path: str


class Bringing(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is to be brought where its state alone does not say."""

    source: Source | None = None
    """The file of a layer that it is; None: it is made from what was kept."""
    in_place: bool | None = None
    """Whether it is written through the file that is there, for all its names. None: where it has several."""
    linked_to: bytes | None = None
    """The path that it becomes another name of."""
    or_apart: bool = False
    """Whether it may be a file of its own where that path has other bytes."""
    mtime_ns: int | None = None
    attributes: dict[str, bytes] | None = None
    """Extended attributes of the user's own; None: those of the file that is there."""


PLAIN = Bringing()
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
        with _opened(manner.source) as source:
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
            workshop=self._holding.workshop(folder) if self._holding is not None else None,
        )

    def _write_through(self, where: Target, after: State, before: Current, manner: Bringing) -> None:
        folder, name, path = where
        held = current(folder, name, _HELD)
        if held is None or held.hash != before.hash:
            raise changed(path)
        self.written_through.add((held.status.st_dev, held.status.st_ino))
        new = self._content(after, manner)
        write_through(folder, name, new, held, path, after.mode, lambda: self._blobs.chunks(before.hash))

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
        return Content(after.hash, after.size, lambda: _pieces(source))


def _is_same(where: Target, other: Current) -> bool:
    """Whether a path is a name of a file already."""
    try:
        return os.path.samestat(os.stat(where[1], dir_fd=where[0], follow_symlinks=False), other.status)
    except OSError:
        return False


def _pieces(source: Source) -> Iterator[bytes]:
    with _opened(source) as place:
        descriptor = open_source(place)
        try:
            while chunk := os.read(descriptor, _CHUNK):
                yield chunk
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _opened(source: Source) -> Generator[tuple[int, str]]:
    """The folder of a file of a layer, and its name there."""
    folder, _, name = source.path.rpartition("/")
    if os.geteuid() != 0 and folder:
        _open_up(source.top, folder)
    descriptor = openat2(source.top, folder or ".", _FOLDER, resolve=RESOLVE_NO_SYMLINKS)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def _open_up(top: int, folder: str) -> None:
    """Lets the owner take things out of the folders of a layer. It is thrown away afterwards, so they stay open."""
    inner = os.dup(top)
    try:
        for name in folder.split("/"):
            outer, inner = inner, os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=inner)
            os.close(outer)
            mode = stat.S_IMODE(os.fstat(inner).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(f"/proc/self/fd/{inner}", mode | stat.S_IRWXU)
    finally:
        os.close(inner)


def _dressing(manner: Bringing) -> Callable[[int], None] | None:
    if manner.attributes is None and manner.mtime_ns is None:
        return None

    def dress(descriptor: int) -> None:
        if manner.attributes is not None and hasattr(os, "listxattr"):
            _give_attributes(descriptor, manner.attributes)
        if manner.mtime_ns is not None:
            os.utime(descriptor, ns=(manner.mtime_ns, manner.mtime_ns))

    return dress


def _give_attributes(descriptor: int, attributes: dict[str, bytes]) -> None:
    for name in os.listxattr(descriptor):
        if name.startswith("user.") and name not in attributes:
            os.removexattr(descriptor, name)
    for name, value in attributes.items():
        with contextlib.suppress(OSError):
            os.setxattr(descriptor, name, value)
