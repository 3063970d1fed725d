"""Carries out steps on the files themselves: each only from the state it starts from, and all of them or none."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from handrail.changes.bringing import FilePlacer
from handrail.changes.history import History
from handrail.changes.manners import PLAIN_PLACEMENT, ApplyOptions, Placement
from handrail.changes.opened import FolderModes, UnlockedDirs
from handrail.changes.ways import invert_step, is_before_state, order_steps
from handrail.kernel.files import sync_file_system
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.store.change_log import Step
from handrail.workspace.atomic import put_link, remove_file, remove_folder, remove_link, sync_folder
from handrail.workspace.errors import build_conflict_error, clip_path, to_tool_error
from handrail.workspace.file_state import PathState, read_state
from handrail.workspace.resolve import READ_FILE, NewFolders, ResolvedParent
from handrail.workspace.workspace import Workspace

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
