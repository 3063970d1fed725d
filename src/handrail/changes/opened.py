"""Folders whose owner may not write in them, opened while a change is made in them.

A command may open such a folder, work in it and close it again. What it did there can only be committed, or undone, in
the same way. Which folders these are is written down first, so that a crash does not leave them open.
"""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping

from handrail.protocol.errors import ToolError
from handrail.store.change_log import Step
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import read_state
from handrail.workspace.resolve import ENTER_FOLDER
from handrail.workspace.workspace import Workspace

_ALL = stat.S_IRWXU


def list_locked_dirs(workspace: Workspace, steps: Iterable[Step]) -> dict[bytes, int]:
    """The folders of ours that steps lead through and that have to be opened for it, with their modes."""
    if os.geteuid() == 0:
        return {}  # may write everywhere
    closed: dict[bytes, int] = {}
    for folder in sorted({above for step in steps for above in _above(step.path)}):
        with contextlib.suppress(ToolError, OSError), workspace.open_parent(folder) as landing:
            if landing.missing:
                continue
            status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
            mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if mine and status.st_mode & _ALL != _ALL:
                closed[folder] = stat.S_IMODE(status.st_mode)
    return closed


class UnlockedDirs:
    """Opens folders, and closes them again."""

    def __init__(self, workspace: Workspace, closed: Mapping[bytes, int]) -> None:
        self._workspace = workspace
        self._closed = closed

    def open(self) -> None:
        """Lets the owner write in them, the outer ones first."""
        for path in sorted(self._closed):
            set_mode(self._workspace, path, self._closed[path] | _ALL, only_from=self._closed[path])

    def close(self, but: Collection[bytes] = ()) -> None:
        """Makes them what they were, the inner ones first; not those that are something else by now, or that got a
        mode of their own."""
        for path in sorted(self._closed.keys() - set(but), reverse=True):
            with contextlib.suppress(ToolError, OSError):
                set_mode(self._workspace, path, self._closed[path], only_from=self._closed[path] | _ALL)

    def mode(self, path: bytes, now: int | None) -> int | None:
        """The mode of a folder, as it was before it was opened."""
        then = self._closed.get(path)
        return then if then is not None and now == then | _ALL else now


class FolderModes:
    """Gives folders their modes when everything in them is done."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._modes: dict[bytes, int] = {}

    @property
    def paths(self) -> Collection[bytes]:
        """The folders that get one."""
        return self._modes.keys()

    def later(self, path: bytes, mode: int) -> None:
        """Notes what a folder is to have."""
        self._modes[path] = mode

    def will_change(self, step: Step) -> bool:
        """Notes the mode of a folder that stays, where a step changes it; whether it does."""
        before, after = step.before, step.after
        if before is None or after is None or after.mode is None or before.mode == after.mode:
            return False
        self.later(step.path, after.mode)
        return True

    def set(self) -> None:
        """The inner folders first: an outer one may be closed by it."""
        for path in sorted(self._modes, reverse=True):
            try:
                set_mode(self._workspace, path, self._modes[path])
            except OSError as error:
                raise to_tool_error(error, os.fsdecode(path)) from None

    def clear(self) -> None:
        """Forgets them all."""
        self._modes.clear()


def set_mode(workspace: Workspace, path: bytes, mode: int, only_from: int | None = None) -> bool:
    """Changes the mode of a folder, where it is one; whether it did."""
    with workspace.open_parent(path) as landing:
        found = read_state(landing).state
        if found is None or found.kind != "folder" or (only_from is not None and found.mode != only_from):
            return False
        if found.mode == mode:
            return False
        descriptor = os.open(landing.name, ENTER_FOLDER, dir_fd=landing.folder)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}" if hasattr(os, "O_PATH") else descriptor, mode)
        finally:
            os.close(descriptor)
    return True


def _above(path: bytes) -> list[bytes]:
    """The folders that a path is in, below its root."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts)) if parts[end - 1]]
