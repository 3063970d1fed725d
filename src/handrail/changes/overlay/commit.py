"""Commits an overlay."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator

from handrail.changes.apply import StepApplier
from handrail.changes.model import (
    ApplyOptions,
    OverlayChanges,
    OverlayFile,
    OverlayPlacement,
    Placement,
    PlannedChangeSet,
    is_before_state,
    is_mode_change,
)
from handrail.changes.overlay.previews import save_new_content
from handrail.changes.overlay.walk import resolve_overlay_path
from handrail.changes.path_state import MAX_PACKED_BYTES, PathProbe, keep_all, strip_data
from handrail.changes.recorder import RecordedChangeSet, Recorder
from handrail.changes.staging import StagingDir, build_staging_path, capture_extras, list_locked_dirs, read_user_xattrs
from handrail.protocol.errors import ToolError
from handrail.sandbox.overlay.overlay import Overlay, is_changed_since
from handrail.store.change_log import FileExtras, Step
from handrail.workspace.atomic import build_temporary_name
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.file_state import PathState, read_state
from handrail.workspace.resolve import LIST_FOLDER, ResolvedParent
from handrail.workspace.workspace import Workspace

# § [changes.layered.repositories] A repository is one unit: where a command changed something in `.git`, nobody
# § else may have changed anything in it. Its files belong together: an index of one moment with the references of
# § another is a broken repository. What others changed is told by the change times, which nobody can set. Objects
# § do not count: they are only ever added.

_GIT = b".git"
_OBJECTS = "objects"


def list_repository_conflicts(workspace: Workspace, examined: OverlayChanges) -> Iterator[bytes]:
    """What others changed, since the overlay was made, in repositories that the command changed too."""
    own = {step.path for step in examined.steps} | set(examined.expected)
    changed = (step.path for step in examined.steps)
    for repository in sorted({found for path in changed if (found := _repository(path)) is not None}):
        for path in _later(workspace, repository, examined.started):
            if path not in own:
                yield path


def _repository(path: bytes) -> bytes | None:
    """The `.git` folder that a path is in."""
    parts = path.split(b"/")
    return b"/".join(parts[: parts.index(_GIT) + 1]) if _GIT in parts[:-1] else None


def _later(workspace: Workspace, repository: bytes, started: int) -> Iterator[bytes]:
    try:
        with workspace.open_parent(repository) as landing:
            if landing.missing:
                return
            folder = os.open(landing.name, LIST_FOLDER, dir_fd=landing.folder)
    except (ToolError, OSError):
        return  # it is no folder, or none of ours: what the command changed there is looked at path by path
    yield from _walked(folder, repository, started, top=True)


def _walked(folder: int, path: bytes, started: int, *, top: bool) -> Iterator[bytes]:
    """Everything below a folder that has a later change time. The descriptor is closed at the end."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not (top and entry.name == _OBJECTS):
                    yield from _later_at(folder, entry.name, path + b"/" + os.fsencode(entry.name), started)
    finally:
        os.close(folder)


def _later_at(folder: int, name: str, path: bytes, started: int) -> Iterator[bytes]:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if is_changed_since(status.st_ctime_ns, started):
            yield path
        if not stat.S_ISDIR(status.st_mode):
            return
        inner = os.open(name, LIST_FOLDER, dir_fd=folder)
    except PermissionError:
        return  # closed to us: the command could not look into it either
    except OSError:
        yield path  # gone, or another thing, since it was listed
        return
    yield from _walked(inner, path, started, top=False)


# § [changes.layered.checking] Looks whether the workspace is still what an overlay was laid over, wherever the
# § command changed something.

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


# § [changes.layered.committing] Commits what a command changed in its overlay: all of it or nothing, and so that it
# § can be undone. In this order: every path is looked at, and what it holds is stored; the change set is written
# § down as begun; the files are moved out of the overlay into their places; it is written down as done. Killed
# § anywhere, it settles to before or after. Nothing is flushed for it one by one: what a loss of power may cost is
# § what it may cost a command that ran without an overlay. Where it is to cost nothing (durability "power"), what
# § was stored is on the disk before the first file is changed, and all files are before the set counts as done.


def list_stale_paths(workspace: Workspace, examined: OverlayChanges) -> tuple[str, ...]:
    """The paths that others changed since the command was tried, as results name them."""
    found = CommitCheck(workspace, examined).stale()
    return tuple(workspace.render_path(path) for path in dict.fromkeys(found))


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
    """Makes the changes; ToolError CONFLICT where others changed one of the files since, and then nothing is changed.

    `overlay`: where the new contents are; None where they were sealed. `not_covered`: what undo will not cover.
    """
    check = CommitCheck(workspace, examined)
    _refuse_outdated(workspace, examined)
    keep_all(workspace, recorder.history, check.to_keep())
    planned = PlannedChangeSet(
        "exec",
        summary,
        examined.steps,
        examined.changes,
        examined.diffs,
        not_covered=not_covered,
        unlinked_paths=tuple(step.path for step, manner in _pairs(examined) if manner.linked_to is not None),
        was=_former(workspace, examined, check),
        opened=tuple(list_locked_dirs(workspace, examined.steps).items()),
    )
    temporary = build_temporary_name(session_id, call_id)

    def work() -> tuple[Step, ...]:
        _carry_out(workspace, recorder, examined, overlay, temporary, check, planned)
        return planned.steps

    return recorder.record(call_id, planned, work)


def _former(workspace: Workspace, examined: OverlayChanges, check: CommitCheck) -> tuple[FileExtras, ...]:
    """What the files are that make room for others. What only gets a mode stays itself; so does what is written in
    place, but for its attributes."""
    going = {
        step.path: check.found[step.path]
        for step, manner in _pairs(examined)
        if not manner.in_place and not is_mode_change(step)
    }
    dressed = [step.path for step, manner in _pairs(examined) if manner.attributes]
    return (*capture_extras(workspace, going, dressed), *_undressed(workspace, examined))


def _undressed(workspace: Workspace, examined: OverlayChanges) -> Iterator[FileExtras]:
    for step, placement in _pairs(examined):
        if placement.in_place and (attributes := read_user_xattrs(workspace, step.path)) != placement.attributes:
            yield FileExtras(step.path, attributes, None)


def _refuse_outdated(workspace: Workspace, examined: OverlayChanges) -> None:
    for path in examined.outdated or list_repository_conflicts(workspace, examined):
        raise build_outdated_error(workspace.render_path(path))


def _carry_out(
    workspace: Workspace,
    recorder: Recorder,
    examined: OverlayChanges,
    overlay: Overlay | None,
    temporary: str,
    check: CommitCheck,
    planned: PlannedChangeSet,
) -> None:
    history = recorder.history
    with contextlib.ExitStack() as held:
        placements = _manners(workspace, recorder, examined, overlay, held)
        staging = held.enter_context(contextlib.closing(StagingDir(build_staging_path(history.folder, temporary))))
        how = ApplyOptions(
            placements=placements,
            known_states=check.found,
            unlocked_dirs=dict(planned.opened),
            require_empty_dirs=True,
            staging=staging,
        )
        try:
            StepApplier(workspace, history, temporary, how).apply_steps(examined.steps)
        except ToolError as error:
            raise _nothing_kept(error) from error


def _manners(
    workspace: Workspace,
    recorder: Recorder,
    examined: OverlayChanges,
    overlay: Overlay | None,
    held: contextlib.ExitStack,
) -> dict[bytes, Placement]:
    """How each file gets to its place. What is written in place, and the targets of links, come from what is kept."""
    uppers: dict[str, int] = {}
    for over in overlay.overlaid if overlay is not None else ():
        uppers[over.upper] = os.open(over.upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, uppers[over.upper])
    placements: dict[bytes, Placement] = {}
    stored: set[str] = set()
    for step, placement in _pairs(examined):
        if step.after is None or step.after.kind == "folder":
            continue
        source = None
        if overlay is not None and (placement.in_place or placement.force_copy or step.after.kind == "link"):
            if step.after.hash not in stored:  # of the names of one file, the overlay may have only the first
                save_new_content(workspace, recorder.history.blobs, step, overlay)
            stored.add(step.after.hash)
        elif placement.in_place:  # a crash in the middle of the write is mended by what the history has
            recorder.history.blobs.keep_borrowed(step.after.hash)
        elif overlay is not None:
            over, below = resolve_overlay_path(workspace, step.path, overlay)
            source = OverlayFile(uppers[over.upper], below)
        placements[step.path] = Placement(
            source=source,
            in_place=placement.in_place,
            linked_to=placement.linked_to,
            mtime_ns=placement.mtime_ns,
            attributes=placement.attributes,
        )
    return placements


def _pairs(examined: OverlayChanges) -> Iterator[tuple[Step, OverlayPlacement]]:
    return zip(examined.steps, examined.manners, strict=True)


def _nothing_kept(error: ToolError) -> ToolError:
    if "stuck" in error.named_details:
        return error
    return ToolError(error.code, f"{error.message} Nothing of the command was kept.", details=error.details)
