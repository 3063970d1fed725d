"""Commits what a command changed in its overlay: all of it or nothing, and so that it can be undone.

In this order: every path is looked at, and what it holds is stored; the change set is written down as begun; the files
are moved out of the overlay into their places; it is written down as done. Killed anywhere, it settles to before or
after. Nothing is flushed for it one by one: what a loss of power may cost is what it may cost a command that ran
without an overlay. Where it is to cost nothing (durability "power"), what was stored is on the disk before the first
file is changed, and all files are before the set counts as done.
"""

import contextlib
import os
from collections.abc import Iterator

from handrail.changes.carrying import StepApplier
from handrail.changes.former import capture_extras, read_user_xattrs
from handrail.changes.holding import StagingDir, build_staging_path
from handrail.changes.layered.checking import CommitCheck, build_outdated_error
from handrail.changes.layered.places import resolve_overlay_path
from handrail.changes.layered.repositories import list_repository_conflicts
from handrail.changes.layered.sealing import save_new_content
from handrail.changes.layered.trial import OverlayChanges, OverlayPlacement
from handrail.changes.looking import keep_all
from handrail.changes.manners import ApplyOptions, OverlayFile, Placement
from handrail.changes.opened import list_locked_dirs
from handrail.changes.planned import PlannedChangeSet
from handrail.changes.recorder import RecordedChangeSet, Recorder
from handrail.changes.ways import is_mode_change
from handrail.protocol.errors import ToolError
from handrail.sandbox.layer.layer import Overlay
from handrail.store.change_log import FileExtras, Step
from handrail.workspace.atomic import build_temporary_name
from handrail.workspace.workspace import Workspace


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
