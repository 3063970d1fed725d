"""Commits the changes of an overlay to the workspace, all or none.

A commit reads every path and stores its content, records the change set as begun, moves the files out of the overlay,
and records it as done. After a kill, recovery completes it or rolls it back. Files are not flushed one by one: after
a power loss they are as safe as those of a command without an overlay. With durability "power", the old contents are
on the disk before the first change, and all files are before the change set counts as done.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator

from handrail.changes.model import (
    ApplyOptions,
    OverlayChanges,
    OverlayFile,
    Placement,
    is_before_state,
    is_mode_change,
    is_removal,
    strip_data,
)
from handrail.changes.overlay.previews import save_new_content
from handrail.changes.overlay.walk import resolve_overlay_path
from handrail.changes.recorder import MAX_PACKED_BYTES, RecordedChangeSet, Recorder
from handrail.changes.tree_state import PathProbe, capture_extras, list_locked_dirs, read_user_xattrs
from handrail.protocol.errors import ToolError
from handrail.sandbox.overlay.overlay import Overlay, is_changed_since
from handrail.store.change_log import ChangeSetRecord, FileExtras, Step
from handrail.workspace.atomic import build_temporary_name
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import PathState, read_state
from handrail.workspace.resolve import LIST_FOLDER, ResolvedParent, closing_descriptor
from handrail.workspace.roots import clip_path
from handrail.workspace.workspace import Workspace

_GIT = b".git"
_OBJECTS = "objects"
_MAX_LOOK_SECONDS = 2.0


def commit(
    workspace: Workspace,
    recorder: Recorder,
    examined: OverlayChanges,
    overlay: Overlay | None,
    *,
    session_id: str,
    call_id: str,
    summary: str,
    not_covered: tuple[str, ...] = (),
) -> RecordedChangeSet:
    """Makes the changes. ToolError CONFLICT, and nothing is changed, if others changed one of the files since.

    `overlay`: holds the new contents. None if they are stored. `not_covered`: effects that undo does not cover.
    """
    check = _CommitCheck(workspace, examined)
    for path in examined.outdated or list_repository_conflicts(workspace, examined):
        raise _build_outdated_error(workspace.render_path(path))
    recorder.keep_all(check.list_replaced())
    unlocked = list_locked_dirs(workspace, examined.steps)
    record = ChangeSetRecord(
        "exec",
        summary,
        examined.steps,
        examined.changes,
        not_covered=not_covered,
        unlinked_paths=tuple(step.path for step, placement in _pair(examined) if placement.linked_to is not None),
        was=_capture_extras(workspace, examined, check),
        opened=tuple(unlocked.items()),
    )

    def work() -> tuple[Step, ...]:
        with contextlib.ExitStack() as opened:
            options = ApplyOptions(
                placements={
                    step.path: placement
                    for step, placement in _pair(examined)
                    if step.after is not None and step.after.kind != "folder"
                },
                sources=_collect_sources(workspace, recorder, examined, overlay, opened),
                known_states=check.states,
                unlocked_dirs=unlocked,
                require_empty_dirs=True,
                use_staging=True,
            )
            try:
                recorder.carry_out(build_temporary_name(session_id, call_id), examined.steps, options)
            except ToolError as error:
                if "stuck" in error.named_details:
                    raise
                message = f"{error.message} Nothing of the command was kept."
                raise ToolError(error.code, message, details=error.details) from error
        return examined.steps

    return recorder.record(call_id, record, work, examined.diffs)


def list_stale_paths(workspace: Workspace, examined: OverlayChanges) -> tuple[str, ...]:
    """The paths that others changed since the command ran, as results name them."""
    stale = _CommitCheck(workspace, examined).list_stale()
    return tuple(workspace.render_path(path) for path in dict.fromkeys(stale))


def is_unchanged_since(workspace: Workspace, started: int) -> bool:
    """Whether no file or folder in the roots has a later change time. False if the check takes too long."""
    folders, until = [root.path for root in workspace.roots], time.monotonic() + _MAX_LOOK_SECONDS
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


class _CommitCheck:
    """Compares every path of the changes with its state when the command ran."""

    def __init__(self, workspace: Workspace, examined: OverlayChanges) -> None:
        self._workspace = workspace
        self._examined = examined
        self._made = {step.path for step in examined.steps if step.after is not None and step.after.kind == "folder"}
        self._removed = {step.path for step in examined.steps if is_removal(step)}
        self._parents = PathProbe(workspace)
        self.states: dict[bytes, PathState] = {}
        """The present states, without contents."""

    def list_replaced(self) -> Iterator[tuple[bytes, PathState]]:
        """The states that will be replaced. CONFLICT at the first path that others changed."""
        for step in sorted(self._examined.steps, key=lambda step: step.path):
            state = self._read_unchanged(step)
            if state is None:
                raise _build_outdated_error(self._workspace.render_path(step.path))
            self.states[step.path] = strip_data(state)
            if not is_mode_change(step):
                yield step.path, state

    def list_stale(self) -> Iterator[bytes]:
        yield from self._examined.outdated
        yield from list_repository_conflicts(self._workspace, self._examined)
        for step in sorted(self._examined.steps, key=lambda step: step.path):
            if self._read_unchanged(step) is None:
                yield step.path

    def _read_unchanged(self, step: Step) -> PathState | None:
        """The state of a path. None if others changed it."""
        try:
            with self._workspace.open_parent(step.path) as parent:
                if parent.missing and not self._is_made(step.path, len(parent.missing)):
                    return None
                found = read_state(parent, MAX_PACKED_BYTES)
                is_folder = found.state is not None and found.state.kind == "folder"
                if is_removal(step) and is_folder and self._has_new_entries(parent, step.path):
                    return None
        except ToolError as error:
            if error.code != "CONFLICT":
                raise
            return PathState(None) if step.before is None and self._parents.is_blocked(step.path) else None
        except OSError as error:
            raise to_tool_error(error, os.fsdecode(step.path)) from None
        if not is_before_state(found.state, step):
            return None
        self._parents.note(step.path, found.state)
        return found

    def _is_made(self, path: bytes, missing: int) -> bool:
        """Whether the changes make the missing folders above a path."""
        parts = path.split(b"/")
        return b"/".join(parts[: len(parts) - missing]) in self._made

    def _has_new_entries(self, parent: ResolvedParent, path: bytes) -> bool:
        """Whether a folder that goes has entries that the command did not remove."""
        with closing_descriptor(os.open(parent.name, LIST_FOLDER, dir_fd=parent.folder)) as folder:
            return any(path + b"/" + os.fsencode(name) not in self._removed for name in os.listdir(folder))


def _build_outdated_error(path: str) -> ToolError:
    message = f"The preview was out of date: {clip_path(path)} changed. Nothing was kept. Call again."
    return ToolError("CONFLICT", message, details={"path": clip_path(path)})


def list_repository_conflicts(workspace: Workspace, examined: OverlayChanges) -> Iterator[bytes]:
    """The paths that others changed in repositories that the command changed too.

    A repository is one unit: an index of one moment with the references of another is broken. Change times tell,
    since nobody can set them. Objects do not count, because git only adds them.
    """
    own = {step.path for step in examined.steps} | set(examined.expected)
    changed = (step.path for step in examined.steps)
    for repository in sorted({found for path in changed if (found := _find_repository(path)) is not None}):
        for path in _list_later(workspace, repository, examined.started):
            if path not in own:
                yield path


def _find_repository(path: bytes) -> bytes | None:
    parts = path.split(b"/")
    return b"/".join(parts[: parts.index(_GIT) + 1]) if _GIT in parts[:-1] else None


def _list_later(workspace: Workspace, repository: bytes, started: int) -> Iterator[bytes]:
    try:
        with workspace.open_parent(repository) as parent:
            if parent.missing:
                return
            folder = os.open(parent.name, LIST_FOLDER, dir_fd=parent.folder)
    except (ToolError, OSError):
        return  # not a folder of ours: its paths are checked one by one
    yield from _walk_later(folder, repository, started, top=True)


def _walk_later(folder: int, path: bytes, started: int, *, top: bool) -> Iterator[bytes]:
    """Everything below an open folder with a later change time. Closes the folder."""
    with closing_descriptor(folder), os.scandir(folder) as entries:
        for entry in entries:
            if not (top and entry.name == _OBJECTS):
                yield from _check_later(folder, entry.name, path + b"/" + os.fsencode(entry.name), started)


def _check_later(folder: int, name: str, path: bytes, started: int) -> Iterator[bytes]:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if is_changed_since(status.st_ctime_ns, started):
            yield path
        if not stat.S_ISDIR(status.st_mode):
            return
        inner = os.open(name, LIST_FOLDER, dir_fd=folder)
    except PermissionError:
        return  # the command could not read it either
    except OSError:
        yield path  # gone or replaced since it was listed
        return
    yield from _walk_later(inner, path, started, top=False)


def _capture_extras(workspace: Workspace, examined: OverlayChanges, check: _CommitCheck) -> tuple[FileExtras, ...]:
    """The extras of replaced files. A file that is written in place only gets other attributes."""
    replaced = {
        step.path: check.states[step.path]
        for step, placement in _pair(examined)
        if not placement.in_place and not is_mode_change(step)
    }
    attributed = [step.path for step, placement in _pair(examined) if placement.attributes]
    extras = list(capture_extras(workspace, replaced, attributed))
    for step, placement in _pair(examined):
        if placement.in_place and (attributes := read_user_xattrs(workspace, step.path)) != placement.attributes:
            extras.append(FileExtras(step.path, attributes, None))
    return tuple(extras)


def _collect_sources(
    workspace: Workspace,
    recorder: Recorder,
    examined: OverlayChanges,
    overlay: Overlay | None,
    opened: contextlib.ExitStack,
) -> dict[bytes, OverlayFile]:
    """The files to move out of the overlay. Other contents are stored in the history and written from there."""
    if overlay is None:
        for step, placement in _pair(examined):
            if placement.in_place and step.after is not None:  # recovery repairs a torn write from the history
                recorder.history.blobs.keep_borrowed(step.after.hash)
        return {}
    uppers: dict[str, int] = {}
    for mount in overlay.overlaid:
        uppers[mount.upper] = os.open(mount.upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, uppers[mount.upper])
    sources: dict[bytes, OverlayFile] = {}
    stored: set[str] = set()
    for step, placement in _pair(examined):
        if step.after is None or step.after.kind == "folder":
            continue
        if placement.in_place or placement.force_copy or step.after.kind == "link":
            if step.after.hash not in stored:  # of the names of one file, the overlay may have only the first
                save_new_content(workspace, recorder.history.blobs, step, overlay)
            stored.add(step.after.hash)
        else:
            mount, below = resolve_overlay_path(workspace, step.path, overlay)
            sources[step.path] = OverlayFile(uppers[mount.upper], below)
    return sources


def _pair(examined: OverlayChanges) -> Iterator[tuple[Step, Placement]]:
    return zip(examined.steps, examined.manners, strict=True)
