"""Carries out steps on the files themselves: each only from the state it starts from, and all of them or none."""

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from handrail.changes.history import History
from handrail.changes.ways import agrees, back, moves
from handrail.protocol.error import StoreError, ToolError
from handrail.store.change_log import Step
from handrail.workspace.content import Content
from handrail.workspace.current import changed
from handrail.workspace.errors import clipped, tool_error
from handrail.workspace.exact import Found, found_at, reach
from handrail.workspace.new_folders import NewFolders, sync_folder
from handrail.workspace.removal import remove_file, remove_folder, remove_link
from handrail.workspace.replace import replace
from handrail.workspace.walk import Landing
from handrail.workspace.workspace import Workspace

Result = TypeVar("Result")
KEPT_WHOLE = 8 * 1024 * 1024
"""Bytes of a file with several names that can be held in memory, to be put back if writing through them fails."""


class Carrier:
    """Takes steps in one workspace, with the contents that were kept for them."""

    def __init__(self, workspace: Workspace, history: History, temporary: str) -> None:
        self._workspace = workspace
        self._blobs = history.blobs
        self._durable = history.durable
        self._temporary = temporary

    def carry_out(self, steps: Iterable[Step]) -> list[Step]:
        """Takes every step; those that changed something. After a failure everything is as it was before, but for
        what the details of the error name as `stuck`."""
        taken: list[Step] = []
        try:
            for move in moves(steps):
                if self._take(move):
                    taken.append(move)
        except Exception as error:
            self._go_back(taken, error)
            raise
        return taken

    def find(self, path: bytes) -> Found:
        """What is at a path now."""
        return self._at(path, found_at)

    def _take(self, move: Step) -> bool:
        return self._at(move.path, lambda landing: self._move(landing, move))

    def _move(self, landing: Landing, move: Step) -> bool:
        path = os.fsdecode(move.path)
        found = found_at(landing, KEPT_WHOLE)
        if not agrees(found.state, move):
            raise changed(path)
        if move.after is None:
            return self._remove(landing, move, found, path)
        return self._bring(landing, move, found, path)

    def _remove(self, landing: Landing, move: Step, found: Found, path: str) -> bool:
        if found.current is not None:
            remove_file(landing.folder, landing.name, found.current, temporary=self._temporary, path=path)
        elif move.before is not None and move.before.kind == "link":
            remove_link(landing.folder, landing.name, move.before.hash, temporary=self._temporary, path=path)
        else:
            return remove_folder(landing.folder, landing.name)
        return True

    def _bring(self, landing: Landing, move: Step, found: Found, path: str) -> bool:
        after = move.after
        if after is None or (after.kind == "folder" and found.state is not None):
            return False
        folders = NewFolders(landing.folder, landing.missing)
        try:
            if after.kind == "folder":
                _make_folder(folders.innermost, landing.name, after.mode)
            elif after.kind == "link":
                self._make_link(folders.innermost, landing.name, move, path)
            else:
                self._write(folders.innermost, landing.name, move, found, path)
            if self._durable:
                sync_folder(folders.innermost)
            folders.keep()
        finally:
            folders.close()
        return True

    def _make_link(self, folder: int, name: str, move: Step, path: str) -> None:
        if move.before is not None:
            remove_link(folder, name, move.before.hash, temporary=self._temporary, path=path)
        target = b"".join(self._blobs.chunks(move.after.hash if move.after else ""))
        try:
            os.symlink(os.fsdecode(target), name, dir_fd=folder)
        except FileExistsError:
            raise changed(path) from None

    def _write(self, folder: int, name: str, move: Step, found: Found, path: str) -> None:
        after, before = move.after, move.before
        if after is None:
            return
        mode = after.mode if before is None or before.mode != after.mode else None
        if before is not None and before.hash == after.hash and mode is not None:
            _change_mode(folder, name, mode)
            return
        new = Content(after.hash, after.size, lambda: self._blobs.chunks(after.hash))
        replace(folder, name, new, found.current, temporary=self._temporary, path=path, mode=mode)

    def _at(self, path: bytes, work: Callable[[Landing], Result]) -> Result:
        try:
            with reach(self._workspace, path) as landing:
                return work(landing)
        except OSError as error:
            raise tool_error(error, os.fsdecode(path)) from None
        except StoreError as error:
            raise ToolError("IO_ERROR", f"{clipped(os.fsdecode(path))} cannot be brought back: {error}.") from None

    def _go_back(self, taken: list[Step], error: Exception) -> None:
        stuck: list[str] = []
        for move in reversed(taken):
            try:
                self._take(back(move))
            except ToolError:
                stuck.append(clipped(os.fsdecode(move.path)))
        if stuck and isinstance(error, ToolError):
            message = f"{error.message} Changed already, and not to be taken back: {', '.join(stuck[:10])}."
            raise ToolError(error.code, message, details={**error.named_details, "stuck": stuck}) from error


def _make_folder(folder: int, name: str, mode: int | None) -> None:
    os.mkdir(name, dir_fd=folder)
    if mode is not None:
        os.chmod(name, mode, dir_fd=folder)


def _change_mode(folder: int, name: str, mode: int) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
