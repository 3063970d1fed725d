"""Looks whether the workspace is still what an overlay was laid over, wherever the command changed something."""

import contextlib
import os
import time
from collections.abc import Iterator

from handrail.changes.layered.repositories import list_repository_conflicts
from handrail.changes.layered.trial import OverlayChanges
from handrail.changes.looking import MAX_PACKED_BYTES, PathProbe, strip_data
from handrail.changes.ways import is_before_state, is_mode_change
from handrail.protocol.errors import ToolError
from handrail.sandbox.layer.clock import is_changed_since
from handrail.store.change_log import Step
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.file_state import PathState, read_state
from handrail.workspace.resolve import LIST_FOLDER, ResolvedParent
from handrail.workspace.workspace import Workspace

_LOOKING_SECONDS = 2.0


def is_unchanged_since(workspace: Workspace, started: int) -> bool:
    """Whether no file or folder in the roots has a later change time. False if that takes too long to find out."""
    folders, until = [root.path for root in workspace.roots], time.monotonic() + _LOOKING_SECONDS
    with contextlib.suppress(OSError):
        while folders and time.monotonic() < until:
            with os.scandir(folder := folders.pop()) as entries:
                found = list(entries)
            times = [os.stat(folder).st_ctime_ns, *(one.stat(follow_symlinks=False).st_ctime_ns for one in found)]
            if any(is_changed_since(changed, started) for changed in times):
                return False
            folders += [one.path for one in found if one.is_dir(follow_symlinks=False)]
        return not folders
    return False


class CommitCheck:
    """One look at every path of a change set."""

    def __init__(self, workspace: Workspace, examined: OverlayChanges) -> None:
        self._workspace = workspace
        self._examined = examined
        self._made = {step.path for step in examined.steps if step.after is not None and step.after.kind == "folder"}
        self._gone = {step.path for step in examined.steps if _goes(step)}
        self._looks = PathProbe(workspace)
        self.found: dict[bytes, PathState] = {}
        """What is there, without the bytes."""

    def to_keep(self) -> Iterator[tuple[bytes, PathState]]:
        """What is there and will not be any more: it has to be kept first. CONFLICT at the first path that others
        changed."""
        for step in sorted(self._examined.steps, key=lambda step: step.path):
            found = self._look(step)
            if found is None:
                raise build_outdated_error(self._workspace.render_path(step.path))
            self.found[step.path] = strip_data(found)
            if not is_mode_change(step):
                yield step.path, found

    def stale(self) -> Iterator[bytes]:
        """The paths that others changed."""
        yield from self._examined.outdated
        yield from list_repository_conflicts(self._workspace, self._examined)
        for step in sorted(self._examined.steps, key=lambda step: step.path):
            if self._look(step) is None:
                yield step.path

    def _look(self, step: Step) -> PathState | None:
        """What is at a path; None where it is not what it was."""
        try:
            with self._workspace.open_parent(step.path) as landing:
                if landing.missing and not self._comes(step.path, len(landing.missing)):
                    return None
                found = read_state(landing, MAX_PACKED_BYTES)
                whole = not (_goes(step) and _is_folder(found)) or self._holds_what_was_listed(landing, step.path)
        except ToolError as error:
            if error.code != "CONFLICT":
                raise
            return PathState(None) if step.before is None and self._looks.is_below(step.path) else None
        except OSError as error:
            raise to_tool_error(error, os.fsdecode(step.path)) from None
        if not whole or not is_before_state(found.state, step):
            return None
        self._looks.note(step.path, found.state)
        return found

    def _comes(self, path: bytes, missing: int) -> bool:
        """Whether the folders that a path needs and that are not there come with it."""
        parts = path.split(b"/")
        return b"/".join(parts[: len(parts) - missing]) in self._made

    def _holds_what_was_listed(self, landing: ResolvedParent, path: bytes) -> bool:
        descriptor = os.open(landing.name, LIST_FOLDER, dir_fd=landing.folder)
        try:
            return all(path + b"/" + os.fsencode(name) in self._gone for name in os.listdir(descriptor))
        finally:
            os.close(descriptor)


def build_outdated_error(path: str) -> ToolError:
    """The refusal when others changed something since."""
    message = f"The preview was out of date: {clip_path(path)} changed. Nothing was kept. Call again."
    return ToolError("CONFLICT", message, details={"path": clip_path(path)})


def _goes(step: Step) -> bool:
    return step.before is not None and (step.after is None or step.after.kind != step.before.kind)


def _is_folder(found: PathState) -> bool:
    return found.state is not None and found.state.kind == "folder"
