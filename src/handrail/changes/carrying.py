"""Carries out steps on the files themselves: each only from the state it starts from, and all of them or none."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from handrail.changes.bringing import Bringer
from handrail.changes.history import History
from handrail.changes.manners import PLAIN, Bringing, How
from handrail.changes.opened import FolderModes, OpenedFolders
from handrail.changes.ways import agrees, back, moves
from handrail.kernel.syncfs import sync_file_system
from handrail.protocol.change import State
from handrail.protocol.error import StoreError, ToolError
from handrail.store.change_log import Step
from handrail.workspace.current import changed
from handrail.workspace.errors import clipped, tool_error
from handrail.workspace.exact import Found, found_at, reach
from handrail.workspace.links import put_link
from handrail.workspace.new_folders import NewFolders, sync_folder
from handrail.workspace.removal import remove_file, remove_folder, remove_link
from handrail.workspace.walk import Landing
from handrail.workspace.workspace import Workspace

Result = TypeVar("Result")
KEPT_WHOLE = 8 * 1024 * 1024
"""Bytes of a file with several names that can be held in memory, to be put back if writing through them fails."""
FEW = 32
"""Steps of which every file is flushed by itself. More are flushed together, where power loss is to be survived."""


_NOTHING = How()


class Carrier:
    """Takes steps in one workspace, with the contents that were kept for them."""

    def __init__(self, workspace: Workspace, history: History, temporary: str, how: How = _NOTHING) -> None:
        self._workspace = workspace
        self._blobs = history.blobs
        self._durable = history.durable
        self._temporary = temporary
        self._how = how
        self._opened = OpenedFolders(workspace, how.opened)
        self._flush = True
        self._bringer = Bringer(workspace, history.blobs, temporary, flush=True, holding=how.holding)
        self._returns = False
        self._modes = FolderModes(workspace)

    def carry_out(self, steps: Iterable[Step]) -> list[Step]:
        """Takes every step; those that changed something. After a failure everything is as it was before, but for
        what the details of the error name as `stuck`."""
        todo = self._ordered(steps)
        self._flush = len(todo) <= FEW
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
        if self._durable and not (self._flush and all(one.source is None for one in self._how.manners.values())):
            for root in self._workspace.roots:
                sync_file_system(root.descriptor)
        return taken

    def find(self, path: bytes) -> Found:
        """What is at a path now."""
        return self._as_closed(path, self._at(path, found_at))

    def _ordered(self, steps: Iterable[Step]) -> list[Step]:
        """Names that get a file of their own come before their old file is written through another name; and what
        becomes another name of a file comes when that file is there."""
        return sorted(moves(steps), key=self._turn)

    def _turn(self, move: Step) -> int:
        manner = self._manner(move)
        if manner.linked_to is not None:
            return 2
        through = move.before is not None and move.after is not None and move.after.kind == "file"
        return int(through and manner.in_place is not False)

    def _manner(self, move: Step) -> Bringing:
        manner = self._how.manners.get(move.path, PLAIN)
        if not self._returns or manner is PLAIN:
            return manner
        return Bringing(in_place=False if manner.linked_to is not None else manner.in_place)

    def _take(self, move: Step) -> bool:
        return self._at(move.path, lambda landing: self._move(landing, move))

    def _move(self, landing: Landing, move: Step) -> bool:
        path = os.fsdecode(move.path)
        found = self._how.found.pop(move.path, None)
        if found is None or not agrees(found.state, move) or self._bringer.has_written(found):
            found = self._as_closed(move.path, found_at(landing))
        if not agrees(found.state, move):
            if self._is_there_already(move, found):
                return True
            raise changed(path)
        if move.after is None:
            return self._remove(landing, move, found, path)
        return self._bring(landing, move, found, path)

    def _is_there_already(self, move: Step, found: Found) -> bool:
        """Whether a file has its bytes because another name of it was written."""
        return agrees(found.state, back(move)) and self._bringer.has_written(found)

    def _remove(self, landing: Landing, move: Step, found: Found, path: str) -> bool:
        if found.current is not None:
            away = self._bringer.away(move.path)
            remove_file(landing.folder, landing.name, found.current, temporary=self._temporary, path=path, away=away)
        elif move.before is not None and move.before.kind == "link":
            remove_link(landing.folder, landing.name, move.before.hash, temporary=self._temporary, path=path)
        elif not remove_folder(landing.folder, landing.name):
            if self._how.whole_folders:
                raise ToolError("CONFLICT", f"{clipped(path)} is to be removed, and somebody put something into it.")
            return False
        return True

    def _bring(self, landing: Landing, move: Step, found: Found, path: str) -> bool:
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

    def _write(self, folder: int, name: str, move: Step, found: Found, path: str) -> None:
        after, before = move.after, move.before
        if after is None:
            return
        mode = after.mode if before is None or before.mode != after.mode else None
        if before is not None and before.hash == after.hash and mode is not None:
            _change_mode(folder, name, mode)
            return
        where, manner = (folder, name, path), self._manner(move)
        if manner.source is not None and mode is None and found.state is not None:
            mode = found.state.mode  # whoever changed only that meanwhile keeps it
        self._bringer.bring(where, move.path, msgspec.structs.replace(after, mode=mode), found.current, manner)

    def _as_closed(self, path: bytes, found: Found) -> Found:
        state = found.state
        if state is None or state.kind != "folder":
            return found
        return Found(msgspec.structs.replace(state, mode=self._opened.mode(path, state.mode)))

    def _at(self, path: bytes, work: Callable[[Landing], Result]) -> Result:
        def there() -> Result:
            with reach(self._workspace, path) as landing:
                return work(landing)

        return self._guarded(path, there)

    def _guarded(self, path: bytes, work: Callable[[], Result]) -> Result:
        try:
            return work()
        except OSError as error:
            raise tool_error(error, os.fsdecode(path)) from None
        except StoreError as error:
            raise ToolError("IO_ERROR", f"{clipped(os.fsdecode(path))} cannot be brought back: {error}.") from None

    # Going back

    def _go_back(self, taken: list[Step], error: Exception) -> None:
        self._returns = True
        self._modes.clear()
        stuck = [clipped(os.fsdecode(move.path)) for move in reversed(taken) if not self._is_back(move)]
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

    def _give_back(self, landing: Landing, move: Step) -> None:
        """Takes one step back: with the very file, where it is held, else with what was kept of it."""
        old: State | None = move.before
        if old is not None and old.kind == "file":
            found = found_at(landing)
            if not agrees(found.state, back(move)):
                raise changed(os.fsdecode(move.path))
            where = (landing.folder, landing.name, os.fsdecode(move.path))
            if not landing.missing and self._bringer.give_back(where, move.path, old, found.current):
                return
        self._move(landing, back(move))


def _change_mode(folder: int, name: str, mode: int) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
