"""Brings a file to its path: from what was kept, or from a layer; instead of what is there, or through it."""

import contextlib
import errno
import os
from collections.abc import Callable, Generator, Iterator

import msgspec

from handrail.changes.holding import Holding
from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.protocol.change import State
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


class Bringing(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is to be brought where its state alone does not say."""

    source: tuple[int, bytes] | None = None
    """Where it is to be taken from: an open folder, and the path below it. None: from what was kept."""
    in_place: bool | None = None
    """Whether it is written through the file that is there, for all its names. None: where it has several."""
    linked_to: bytes | None = None
    """The path that it becomes another name of."""
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
            self._link(where, key, after, before, manner.linked_to)
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
        with _opened_source(manner.source) as source:
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

    def _link(self, where: Target, key: bytes, after: State, before: Current | None, other: bytes) -> None:
        """Makes the path another name of a file that has the right bytes."""
        folder, name, path = where
        with reach(self._workspace, other) as landing:
            found = found_at(landing)
            if found.current is None or found.current.hash != after.hash:
                raise changed(os.fsdecode(other))
            ready = ready_name(self._temporary, after.hash, before.hash) if before is not None else self._temporary
            os.link(landing.name, ready, src_dir_fd=landing.folder, dst_dir_fd=folder, follow_symlinks=False)
        try:
            own = current(folder, ready, 0)
            if own is None or own.hash != after.hash:
                raise changed(os.fsdecode(other))
            put(folder, ready, name, before, own, path, self.away(key))
        except BaseException:
            discard(folder, ready, found.current.status)
            raise

    def _content(self, after: State, manner: Bringing) -> Content:
        source = manner.source
        if source is None:
            return Content(after.hash, after.size, lambda: self._blobs.chunks(after.hash))
        return Content(after.hash, after.size, lambda: _pieces(source))


def _pieces(source: tuple[int, bytes]) -> Iterator[bytes]:
    with _opened_source(source) as place:
        descriptor = open_source(place)
        try:
            while chunk := os.read(descriptor, _CHUNK):
                yield chunk
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _opened_source(source: tuple[int, bytes]) -> Generator[tuple[int, str]]:
    folder, _, name = os.fsdecode(source[1]).rpartition("/")
    descriptor = openat2(source[0], folder or ".", _FOLDER, resolve=RESOLVE_NO_SYMLINKS)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


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
