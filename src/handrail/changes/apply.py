"""Applies the steps of a change set to the files of a workspace, all or none."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

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
from handrail.changes.tree_state import StagingDir, build_staging_path, lock_dirs, set_folder_modes, unlock_dirs
from handrail.kernel.files import sync_file_system
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
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
from handrail.workspace.errors import build_conflict_error, to_tool_error
from handrail.workspace.file_state import (
    Content,
    FileId,
    FileSnapshot,
    PathState,
    read_chunks,
    read_file_snapshot,
    read_state,
)
from handrail.workspace.in_place import write_through
from handrail.workspace.resolve import (
    ENTER_FOLDER,
    READ_FILE,
    NewFolders,
    ResolvedParent,
    closing_descriptor,
    enter_folders,
    open_beneath,
)
from handrail.workspace.roots import clip_path
from handrail.workspace.workspace import Workspace

MAX_IN_MEMORY_BYTES = 8 * 1024 * 1024
"""Size up to which a file with several names is held in memory, to restore it if writing through it fails."""
MAX_SINGLY_FLUSHED_STEPS = 32
"""Number of steps up to which each file is flushed by itself. The files of more steps are flushed together."""


def apply_steps(
    workspace: Workspace, history: History, steps: Iterable[Step], *, temporary: str, options: ApplyOptions
) -> list[Step]:
    """Applies all steps, each only to the state that it starts from. Returns those that changed something.

    After a failure everything is as before, except the paths that the details of the error name as `stuck`.
    `temporary`: the name of unfinished files, which recovery knows.
    """
    ordered = sorted(order_steps(steps), key=lambda step: _rank_step(step, options))
    with contextlib.ExitStack() as opened:
        staging = None
        if options.use_staging:
            staging = StagingDir(build_staging_path(history.folder, temporary))
            opened.callback(staging.close)
        flush = len(ordered) <= MAX_SINGLY_FLUSHED_STEPS
        return StepApplier(_Application(workspace, history, temporary, options, staging, flush)).apply(ordered)


def _rank_step(step: Step, options: ApplyOptions) -> int:
    """Separate files come first, then writes through a file that others are names of, then further names of a file."""
    placement = options.placements.get(step.path, PLAIN_PLACEMENT)
    if placement.linked_to is not None:
        return 2
    overwrites = step.before is not None and step.after is not None and step.after.kind == "file"
    return int(overwrites and placement.in_place is not False)


class _Application(NamedTuple):
    workspace: Workspace
    history: History
    temporary: str
    options: ApplyOptions
    staging: StagingDir | None
    flush: bool
    """Whether each file is flushed by itself."""

    def set_aside(self, path: bytes) -> Away | None:
        return self.staging.stash(path) if self.staging is not None else None


class _NewFile(NamedTuple):
    folder: int
    name: str
    path: bytes
    state: State
    """A mode of None keeps that of the present file."""
    before: FileSnapshot | None
    placement: Placement
    source: OverlayFile | bytes | None

    @property
    def shown(self) -> str:
        return os.fsdecode(self.path)


class StepApplier:
    def __init__(self, run: _Application) -> None:
        self._run = run
        self._known = dict(run.options.known_states)
        self._modes: dict[bytes, int] = {}
        """Modes that folders get after everything in them is done."""
        self._written_through: set[FileId] = set()

    def apply(self, steps: list[Step]) -> list[Step]:
        unlock_dirs(self._run.workspace, self._run.options.unlocked_dirs)
        taken: list[Step] = []
        try:
            for step in steps:
                if self._take(step):
                    taken.append(step)
            set_folder_modes(self._run.workspace, self._modes)
        except Exception as error:
            self._roll_back(taken, error)
            raise
        finally:
            lock_dirs(self._run.workspace, self._run.options.unlocked_dirs, but=self._modes)
        has_moved = any(isinstance(source, OverlayFile) for source in self._run.options.sources.values())
        if self._run.history.durable and (has_moved or not self._run.flush):
            for root in self._run.workspace.roots:
                sync_file_system(root.descriptor)
        return taken

    def _take(self, step: Step) -> bool:
        with _open_parent(self._run.workspace, step.path) as parent:
            return self._apply(parent, step)

    def _apply(self, parent: ResolvedParent, step: Step) -> bool:
        now = self._known.pop(step.path, None)
        if now is None or not is_before_state(now.state, step) or self._has_written(now):
            now = _read_as_locked(parent, step.path, self._run.options.unlocked_dirs)
        if is_before_state(now.state, step):
            if step.after is None:
                return self._remove(parent, step, now)
            return self._create(parent, step, step.after, now)
        if is_before_state(now.state, invert_step(step)) and self._has_written(now):
            return True  # by another name of the file
        raise build_conflict_error(os.fsdecode(step.path))

    def _remove(self, parent: ResolvedParent, step: Step, now: PathState) -> bool:
        folder, name, path = parent.folder, parent.name, os.fsdecode(step.path)
        if now.current is not None:
            away = self._run.set_aside(step.path)
            remove_file(folder, name, now.current, temporary=self._run.temporary, path=path, away=away)
        elif step.before is not None and step.before.kind == "link":
            remove_link(folder, name, step.before.hash, temporary=self._run.temporary, path=path)
        elif not remove_folder(folder, name):
            if self._run.options.require_empty_dirs:
                raise ToolError("CONFLICT", f"{clip_path(path)} would be removed, but its content has changed since.")
            return False
        return True

    def _create(self, parent: ResolvedParent, step: Step, after: State, now: PathState) -> bool:
        if after.kind == "folder" and now.state is not None:
            return self._change_folder_mode(step, after)
        with NewFolders(parent.folder, parent.missing) as folders:
            if after.kind == "folder":
                self._make_folder(folders.innermost, parent.name, step.path, after.mode)
            elif after.kind == "link":
                self._put_link(folders.innermost, parent.name, step, after)
            else:
                self._put_file(folders.innermost, parent.name, step, after, now)
            if self._run.history.durable and self._run.flush:
                sync_folder(folders.innermost)
        return True

    def _change_folder_mode(self, step: Step, after: State) -> bool:
        if step.before is None or after.mode is None or step.before.mode == after.mode:
            return False
        self._modes[step.path] = after.mode
        return True

    def _make_folder(self, folder: int, name: str, path: bytes, mode: int | None) -> None:
        os.mkdir(name, 0o777 if mode is None else stat.S_IRWXU, dir_fd=folder)
        if mode is not None:
            self._modes[path] = mode

    def _put_link(self, folder: int, name: str, step: Step, after: State) -> None:
        target = b"".join(self._run.history.blobs.chunks(after.hash))
        hashes = (after.hash, step.before.hash if step.before is not None else None)
        put_link(folder, name, target, hashes, temporary=self._run.temporary, path=os.fsdecode(step.path))

    def _put_file(self, folder: int, name: str, step: Step, after: State, now: PathState) -> None:
        before = step.before
        mode = after.mode if before is None or before.mode != after.mode else None
        if before is not None and before.hash == after.hash and mode is not None:
            with closing_descriptor(os.open(name, READ_FILE, dir_fd=folder)) as file:
                os.fchmod(file, mode)
            return
        source = self._run.options.sources.get(step.path)
        if isinstance(source, OverlayFile) and mode is None and now.state is not None:
            mode = now.state.mode  # others may have changed it meanwhile
        placement = self._run.options.placements.get(step.path, PLAIN_PLACEMENT)
        new = replace(after, mode=mode)
        self._place_file(_NewFile(folder, name, step.path, new, now.current, placement, source))

    def _has_written(self, state: PathState) -> bool:
        """Whether a file was written through another name of it since its state was read."""
        status = state.current.status if state.current is not None else None
        return status is not None and (status.st_dev, status.st_ino) in self._written_through

    def _give_back(self, parent: ResolvedParent, path: bytes, old: State, now: FileSnapshot | None) -> bool:
        """Puts the very file back that was set aside. False if it is not held."""
        held = self._run.staging.unstash(path) if self._run.staging is not None else None
        if held is None:
            return False
        shown = os.fsdecode(path)
        take(held, parent.folder, parent.name, old.hash, now, temporary=self._run.temporary, path=shown)
        return True

    def _place_file(self, new: _NewFile) -> None:
        in_place, before = new.placement.in_place, new.before
        if new.placement.linked_to is not None:
            self._link(new, new.placement.linked_to)
        elif before is not None and (before.status.st_nlink > 1 if in_place is None else in_place):
            self._write_through(new, before)
        elif not isinstance(new.source, OverlayFile) or not self._can_move(new, new.source):
            self._put(new)

    def _can_move(self, new: _NewFile, source: OverlayFile) -> bool:
        """Moves a file out of its overlay. False if the overlay is on another file system."""
        with _open_source_parent(source) as held:
            try:
                take(
                    held,
                    new.folder,
                    new.name,
                    new.state.hash,
                    new.before,
                    temporary=self._run.temporary,
                    path=new.shown,
                    mode=new.state.mode,
                    away=self._run.set_aside(new.path),
                )
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                return False
        return True

    def _put(self, new: _NewFile) -> None:
        put_instead(
            new.folder,
            new.name,
            self._open_content(new),
            new.before,
            temporary=self._run.temporary,
            path=new.shown,
            mode=new.state.mode,
            flush=self._run.flush,
            dress=_build_dresser(new.placement),
            away=self._run.set_aside(new.path),
        )

    def _write_through(self, new: _NewFile, before: FileSnapshot) -> None:
        held = read_file_snapshot(new.folder, new.name, MAX_IN_MEMORY_BYTES)
        if held is None or held.hash != before.hash:
            raise build_conflict_error(new.shown)
        self._written_through.add((held.status.st_dev, held.status.st_ino))
        content, kept = self._open_content(new), lambda: self._run.history.blobs.chunks(before.hash)
        write_through(new.folder, new.name, content, held, new.shown, new.state.mode, kept)
        if new.placement.attributes is not None and hasattr(os, "listxattr"):
            with contextlib.suppress(OSError):  # a file that may not be written keeps its attributes
                file = os.open(new.name, READ_FILE, dir_fd=new.folder)
                with closing_descriptor(file):
                    _set_attributes(file, new.placement.attributes)

    def _link(self, new: _NewFile, other: bytes) -> None:
        """Makes the path another name of a file that has the right bytes."""
        try:
            with self._run.workspace.open_parent(other) as parent:
                source = read_state(parent).current
                if source is None or source.hash != new.state.hash:
                    raise build_conflict_error(os.fsdecode(other))
                if not _is_name_of(new, source):
                    self._put_name(new, parent, source)
        except (ToolError, OSError):
            if not self._run.options.allow_copies:
                raise
            self._put(new)

    def _put_name(self, new: _NewFile, other: ResolvedParent, source: FileSnapshot) -> None:
        ready = self._run.temporary
        if new.before is not None:
            ready = build_swap_name(self._run.temporary, source.hash, new.before.hash)
        os.link(other.name, ready, src_dir_fd=other.folder, dst_dir_fd=new.folder, follow_symlinks=False)
        try:
            own = read_file_snapshot(new.folder, ready, 0)
            if own is None or own.hash != source.hash:
                raise build_conflict_error(new.shown)
            swap_in(new.folder, ready, new.name, new.before, own, new.shown, self._run.set_aside(new.path))
        except BaseException:
            discard(new.folder, ready, source.status)
            raise

    def _open_content(self, new: _NewFile) -> Content:
        source, digest = new.source, new.state.hash
        if source is None:
            return Content(digest, new.state.size, lambda: self._run.history.blobs.chunks(digest))
        if isinstance(source, bytes):
            return Content(digest, new.state.size, lambda: (source,))
        return Content(digest, new.state.size, lambda: _read_source(source))

    # Rolling back

    def _roll_back(self, taken: list[Step], error: Exception) -> None:
        placements = {
            path: Placement(in_place=False if placement.linked_to is not None else placement.in_place)
            for path, placement in self._run.options.placements.items()
        }
        options = replace(self._run.options, placements=placements, sources={}, known_states={})
        inverse = StepApplier(self._run._replace(options=options))
        stuck = [clip_path(os.fsdecode(step.path)) for step in reversed(taken) if not inverse._can_restore(step)]
        with contextlib.suppress(ToolError):
            set_folder_modes(self._run.workspace, inverse._modes)
        if stuck and isinstance(error, ToolError):
            message = f"{error.message} Changed already, and not undone: {', '.join(stuck[:10])}."
            raise ToolError(error.code, message, details={**error.named_details, "stuck": stuck}) from error

    def _can_restore(self, step: Step) -> bool:
        try:
            with _open_parent(self._run.workspace, step.path) as parent:
                self._restore(parent, step)
        except ToolError:
            return False
        return True

    def _restore(self, parent: ResolvedParent, step: Step) -> None:
        """Undoes a step: with the very file if it was set aside, or else from the blobs."""
        if step.before is not None and step.before.kind == "file":
            now = read_state(parent)
            if not is_before_state(now.state, invert_step(step)):
                raise build_conflict_error(os.fsdecode(step.path))
            if not parent.missing and self._give_back(parent, step.path, step.before, now.current):
                return
        self._apply(parent, invert_step(step))


def read_locked_state(workspace: Workspace, path: bytes, unlocked: Mapping[bytes, int]) -> PathState:
    """The state of a path. Folders that are unlocked have their modes of before."""
    with _open_parent(workspace, path) as parent:
        return _read_as_locked(parent, path, unlocked)


def _read_as_locked(parent: ResolvedParent, path: bytes, unlocked: Mapping[bytes, int]) -> PathState:
    now = read_state(parent)
    locked = unlocked.get(path)
    if now.state is None or now.state.kind != "folder" or locked is None or now.state.mode != locked | stat.S_IRWXU:
        return now
    return PathState(replace(now.state, mode=locked))


@contextlib.contextmanager
def _open_parent(workspace: Workspace, path: bytes) -> Generator[ResolvedParent]:
    try:
        with workspace.open_parent(path) as parent:
            yield parent
    except OSError as error:
        raise to_tool_error(error, os.fsdecode(path)) from None
    except StoreError as error:
        raise ToolError("IO_ERROR", f"{clip_path(os.fsdecode(path))} cannot be restored: {error}.") from None


def _is_name_of(new: _NewFile, file: FileSnapshot) -> bool:
    try:
        return os.path.samestat(os.stat(new.name, dir_fd=new.folder, follow_symlinks=False), file.status)
    except OSError:
        return False


def _build_dresser(placement: Placement) -> Callable[[int], None] | None:
    """A function that gives an open file its attributes and time."""
    if placement.attributes is None and placement.mtime_ns is None:
        return None

    def dress(file: int) -> None:
        if placement.attributes is not None and hasattr(os, "listxattr"):
            _set_attributes(file, placement.attributes)
        if placement.mtime_ns is not None:
            os.utime(file, ns=(placement.mtime_ns, placement.mtime_ns))

    return dress


def _set_attributes(file: int, attributes: dict[str, bytes]) -> None:
    for name in os.listxattr(file):
        if name.startswith("user.") and name not in attributes:
            os.removexattr(file, name)
    for name, value in attributes.items():
        with contextlib.suppress(OSError):
            os.setxattr(file, name, value)


def _read_source(source: OverlayFile) -> Iterator[bytes]:
    with _open_source_parent(source) as held, closing_descriptor(open_source(held)) as file:
        yield from read_chunks(file)


@contextlib.contextmanager
def _open_source_parent(source: OverlayFile) -> Generator[tuple[int, str]]:
    """The folder of a file of an overlay, and its name there. No links are followed."""
    folder, _, name = source.path.rpartition("/")
    if os.geteuid() != 0 and folder:
        # The owner may take files out of its folders. The overlay is removed later, so they stay unlocked.
        for inner in islice(enter_folders(source.top, folder.split("/")), 1, None):
            mode = stat.S_IMODE(os.fstat(inner).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(f"/proc/self/fd/{inner}", mode | stat.S_IRWXU)
    with closing_descriptor(open_beneath(source.top, folder or ".", ENTER_FOLDER, kernel=True)) as parent:
        yield parent, name
