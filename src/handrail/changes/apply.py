"""Applies steps, all or none."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from handrail.changes.history import History
from handrail.changes.model import (
    PLAIN_PLACEMENT,
    ApplyOptions,
    OverlayFile,
    Placement,
    invert_step,
    is_before_state,
    order_steps,
)
from handrail.changes.staging import FolderModes, StagingDir, UnlockedDirs
from handrail.kernel.files import sync_file_system
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.store.blobs import Blobs
from handrail.store.change_log import Step
from handrail.workspace.atomic import (
    Away,
    build_swap_name,
    discard,
    open_source,
    put_instead,
    put_link,
    remove_file,
    remove_folder,
    remove_link,
    swap_in,
    sync_folder,
    take,
)
from handrail.workspace.errors import build_conflict_error, clip_path, to_tool_error
from handrail.workspace.file_state import Content, FileSnapshot, PathState, read_chunks, read_file_snapshot, read_state
from handrail.workspace.in_place import write_through
from handrail.workspace.resolve import ENTER_FOLDER, READ_FILE, NewFolders, ResolvedParent, enter_folders, open_beneath
from handrail.workspace.workspace import Workspace

# § [changes.sources] Files of overlays, reached by descriptors and past no link.


def read_overlay_file(source: OverlayFile) -> Iterator[bytes]:
    """The bytes of a file of an overlay."""
    with open_source_parent(source) as place:
        descriptor = open_source(place)
        try:
            yield from read_chunks(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def open_source_parent(source: OverlayFile) -> Generator[tuple[int, str]]:
    """The folder of a file of an overlay, and its name there."""
    folder, _, name = source.path.rpartition("/")
    if os.geteuid() != 0 and folder:
        _open_up(source.top, folder)
    descriptor = open_beneath(source.top, folder or ".", ENTER_FOLDER, kernel=True)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def _open_up(top: int, folder: str) -> None:
    """Lets the owner take things out of the folders of an overlay. It is thrown away afterwards, so they stay open."""
    for inner in islice(enter_folders(top, folder.split("/")), 1, None):
        mode = stat.S_IMODE(os.fstat(inner).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{inner}", mode | stat.S_IRWXU)


# § [changes.bringing] Brings a file to its path: from what was kept, or from an overlay; instead of what is there,
# § or through it.

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


# § [changes.carrying] Carries out steps on the files themselves: each only from the state it starts from, and all
# § of them or none.

Result = TypeVar("Result")
MAX_IN_MEMORY_BYTES = 8 * 1024 * 1024
"""Bytes of a file with several names that can be held in memory, to be put back if writing through them fails."""
MAX_SINGLY_FLUSHED_STEPS = 32
"""Steps of which every file is flushed by itself. More are flushed together, where power loss is to be survived."""


_NOTHING = ApplyOptions()


class StepApplier:
    """Takes steps in one workspace, with the contents that were kept for them."""

    def __init__(self, workspace: Workspace, history: History, temporary: str, how: ApplyOptions = _NOTHING) -> None:
        self._workspace = workspace
        self._blobs = history.blobs
        self._durable = history.durable
        self._temporary = temporary
        self._how = how
        self._opened = UnlockedDirs(workspace, how.unlocked_dirs)
        self._flush = True
        self._bringer = FilePlacer(workspace, history.blobs, temporary, flush=True, staging=how.staging)
        self._returns = False
        self._modes = FolderModes(workspace)

    def apply_steps(self, steps: Iterable[Step]) -> list[Step]:
        """Takes every step; those that changed something. After a failure everything is as it was before, but for
        what the details of the error name as `stuck`."""
        todo = self._ordered(steps)
        self._flush = len(todo) <= MAX_SINGLY_FLUSHED_STEPS
        self._bringer.flush = self._flush
        self._opened.open()
        taken: list[Step] = []
        try:
            for move in todo:
                if self._take(move):
                    taken.append(move)
            self._modes.set()
        except Exception as error:
            self._go_back(taken, error)
            raise
        finally:
            self._opened.close(but=self._modes.paths)
        if self._durable and not (self._flush and all(one.source is None for one in self._how.placements.values())):
            for root in self._workspace.roots:
                sync_file_system(root.descriptor)
        return taken

    def find(self, path: bytes) -> PathState:
        """What is at a path now."""
        return self._as_closed(path, self._at(path, read_state))

    def _ordered(self, steps: Iterable[Step]) -> list[Step]:
        """Names that get a file of their own come before their old file is written through another name; and what
        becomes another name of a file comes when that file is there."""
        return sorted(order_steps(steps), key=self._turn)

    def _turn(self, move: Step) -> int:
        placement = self._placement(move)
        if placement.linked_to is not None:
            return 2
        through = move.before is not None and move.after is not None and move.after.kind == "file"
        return int(through and placement.in_place is not False)

    def _placement(self, move: Step) -> Placement:
        placement = self._how.placements.get(move.path, PLAIN_PLACEMENT)
        if not self._returns or placement is PLAIN_PLACEMENT:
            return placement
        return Placement(in_place=False if placement.linked_to is not None else placement.in_place)

    def _take(self, move: Step) -> bool:
        return self._at(move.path, lambda landing: self._move(landing, move))

    def _move(self, landing: ResolvedParent, move: Step) -> bool:
        path = os.fsdecode(move.path)
        found = self._how.known_states.pop(move.path, None)
        if found is None or not is_before_state(found.state, move) or self._bringer.has_written(found):
            found = self._as_closed(move.path, read_state(landing))
        if not is_before_state(found.state, move):
            if self._is_there_already(move, found):
                return True
            raise build_conflict_error(path)
        if move.after is None:
            return self._remove(landing, move, found, path)
        return self._bring(landing, move, found, path)

    def _is_there_already(self, move: Step, found: PathState) -> bool:
        """Whether a file has its bytes because another name of it was written."""
        return is_before_state(found.state, invert_step(move)) and self._bringer.has_written(found)

    def _remove(self, landing: ResolvedParent, move: Step, found: PathState, path: str) -> bool:
        if found.current is not None:
            away = self._bringer.away(move.path)
            remove_file(landing.folder, landing.name, found.current, temporary=self._temporary, path=path, away=away)
        elif move.before is not None and move.before.kind == "link":
            remove_link(landing.folder, landing.name, move.before.hash, temporary=self._temporary, path=path)
        elif not remove_folder(landing.folder, landing.name):
            if self._how.require_empty_dirs:
                raise ToolError("CONFLICT", f"{clip_path(path)} is to be removed, and somebody put something into it.")
            return False
        return True

    def _bring(self, landing: ResolvedParent, move: Step, found: PathState, path: str) -> bool:
        after = move.after
        if after is None or (after.kind == "folder" and found.state is not None):
            return self._modes.will_change(move)
        folders = NewFolders(landing.folder, landing.missing)
        try:
            if after.kind == "folder":
                self._make_folder(folders.innermost, landing.name, move)
            elif after.kind == "link":
                self._make_link(folders.innermost, landing.name, move, path)
            else:
                self._write(folders.innermost, landing.name, move, found, path)
            if self._durable and self._flush:
                sync_folder(folders.innermost)
            folders.keep()
        finally:
            folders.close()
        return True

    def _make_folder(self, folder: int, name: str, move: Step) -> None:
        mode = move.after.mode if move.after else None
        if mode is None:
            os.mkdir(name, dir_fd=folder)
            return
        os.mkdir(name, stat.S_IRWXU, dir_fd=folder)
        self._modes.later(move.path, mode)

    def _make_link(self, folder: int, name: str, move: Step, path: str) -> None:
        new = move.after.hash if move.after else ""
        target = b"".join(self._blobs.chunks(new))
        old = move.before.hash if move.before is not None else None
        put_link(folder, name, target, (new, old), temporary=self._temporary, path=path)

    def _write(self, folder: int, name: str, move: Step, found: PathState, path: str) -> None:
        after, before = move.after, move.before
        if after is None:
            return
        mode = after.mode if before is None or before.mode != after.mode else None
        if before is not None and before.hash == after.hash and mode is not None:
            _change_mode(folder, name, mode)
            return
        where, placement = (folder, name, path), self._placement(move)
        if placement.source is not None and mode is None and found.state is not None:
            mode = found.state.mode  # whoever changed only that meanwhile keeps it
        self._bringer.place_file(where, move.path, msgspec.structs.replace(after, mode=mode), found.current, placement)

    def _as_closed(self, path: bytes, found: PathState) -> PathState:
        state = found.state
        if state is None or state.kind != "folder":
            return found
        return PathState(msgspec.structs.replace(state, mode=self._opened.mode(path, state.mode)))

    def _at(self, path: bytes, work: Callable[[ResolvedParent], Result]) -> Result:
        def there() -> Result:
            with self._workspace.open_parent(path) as landing:
                return work(landing)

        return self._guarded(path, there)

    def _guarded(self, path: bytes, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except OSError as error:
            raise to_tool_error(error, os.fsdecode(path)) from None
        except StoreError as error:
            raise ToolError("IO_ERROR", f"{clip_path(os.fsdecode(path))} cannot be brought back: {error}.") from None

    # Going back

    def _go_back(self, taken: list[Step], error: Exception) -> None:
        self._returns = True
        self._modes.clear()
        stuck = [clip_path(os.fsdecode(move.path)) for move in reversed(taken) if not self._is_back(move)]
        with contextlib.suppress(ToolError):
            self._modes.set()
        if stuck and isinstance(error, ToolError):
            message = f"{error.message} Changed already, and not to be taken back: {', '.join(stuck[:10])}."
            raise ToolError(error.code, message, details={**error.named_details, "stuck": stuck}) from error

    def _is_back(self, move: Step) -> bool:
        try:
            self._at(move.path, lambda landing: self._give_back(landing, move))
        except ToolError:
            return False
        return True

    def _give_back(self, landing: ResolvedParent, move: Step) -> None:
        """Undoes one step: with the very file, where it is held, else with what was kept of it."""
        old: State | None = move.before
        if old is not None and old.kind == "file":
            found = read_state(landing)
            if not is_before_state(found.state, invert_step(move)):
                raise build_conflict_error(os.fsdecode(move.path))
            where = (landing.folder, landing.name, os.fsdecode(move.path))
            if not landing.missing and self._bringer.give_back(where, move.path, old, found.current):
                return
        self._move(landing, invert_step(move))


def _change_mode(folder: int, name: str, mode: int) -> None:
    descriptor = os.open(name, READ_FILE, dir_fd=folder)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
