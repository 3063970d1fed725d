"""Settles the change sets that a killed process left unfinished."""

import contextlib
from datetime import timedelta
from typing import Literal, NamedTuple

from msgspec.structs import replace

from handrail.changes.apply import apply_steps, read_locked_state
from handrail.changes.history import History
from handrail.changes.model import ApplyOptions, Placement, has_same_content, invert_step, is_before_state
from handrail.changes.tree_state import PathProbe, build_staging_path, lock_dirs, remove_staging_dir
from handrail.process.tree import kill_orphans
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.store.change_log import ChangeSetRecord, LoggedChangeSet, Step
from handrail.workspace.atomic import build_temporary_name, remove_unfinished
from handrail.workspace.in_place import repair_torn_file
from handrail.workspace.workspace import Workspace

Settled = Literal["made", "not made", "unknown"]
_Progress = Literal["before", "after", "between", "elsewhere"]
_OWNER = 0o700


class _StepProbe(NamedTuple):
    step: Step
    progress: _Progress
    now: State | None


def recover_change_set(workspace: Workspace, history: History, number: int) -> Settled | None:
    """Settles a change set of a killed process. None if it is settled already."""
    with history.settling():
        entry = history.log.entry(number)
        if entry is None or entry.state != "begun":
            return None
        _remove_leftovers(workspace, history, entry)
        return settle(workspace, history, entry)


def settle(workspace: Workspace, history: History, entry: LoggedChangeSet) -> Settled:
    """Completes or rolls back the files of a begun change set, and updates the log."""
    body = entry.body
    if not body.steps:
        _settle_command(workspace, history, entry)
        return "unknown"
    unlocked = dict(body.opened)
    placements = {path: Placement(in_place=False) for path in body.unlinked_paths}
    options = ApplyOptions(placements=placements, unlocked_dirs=unlocked)
    try:
        return _settle_files(workspace, history, entry, options)
    finally:
        folders = [step.path for step in body.steps if step.kind == "folder"]
        lock_dirs(workspace, unlocked, but=folders)


def is_within(workspace: Workspace, entry: LoggedChangeSet) -> bool:
    """Whether this session can read and change all files of a change set."""
    try:
        return all(workspace.find_root(step.path).writable for step in entry.body.steps)
    except ToolError:
        return False


def _remove_leftovers(workspace: Workspace, history: History, entry: LoggedChangeSet) -> None:
    """Removes unfinished files, and repairs files that were being written in place."""
    temporary = build_temporary_name(entry.session, entry.call_id)
    remove_staging_dir(build_staging_path(history.folder, temporary))
    cleared: set[bytes] = set()
    for step in entry.body.steps:
        with contextlib.suppress(ToolError, OSError, StoreError), workspace.open_parent(step.path) as parent:
            folder = step.path.rpartition(b"/")[0]
            if folder not in cleared:
                remove_unfinished(parent.folder, temporary)
                cleared.add(folder)
            if not parent.missing:
                repair_torn_file(parent, step.before, step.after, history.blobs)


def _settle_files(workspace: Workspace, history: History, entry: LoggedChangeSet, options: ApplyOptions) -> Settled:
    probes = _probe_steps(workspace, entry, options)
    temporary = build_temporary_name(entry.session, entry.call_id)
    if _is_made(probes):
        with contextlib.suppress(ToolError):  # the files are made; a folder that others put something into stays
            apply_steps(workspace, history, _list_open_folders(probes), temporary=temporary, options=options)
        history.log.finish(entry.number, entry.body)
        return "made"
    # All at once, since a folder must come before its entries.
    undone = [
        Step(probe.step.path, probe.now, probe.step.before)
        for probe in probes
        if probe.progress in {"after", "between"} or _has_passing_mode(probe, probe.step.before)
    ]
    apply_steps(workspace, history, undone, temporary=temporary, options=options)
    uncertain = {probe.step.path for probe in probes if probe.progress == "elsewhere"}
    if uncertain:
        _finish_uncertain(history, entry, uncertain)
        return "unknown"
    history.log.drop(entry.number)
    return "not made"


def _probe_steps(workspace: Workspace, entry: LoggedChangeSet, options: ApplyOptions) -> list[_StepProbe]:
    """The progress of each step. Raises if a path cannot be read: then nothing is settled."""
    parents = PathProbe(workspace)
    probes: list[_StepProbe] = []
    for step in sorted(entry.body.steps, key=lambda step: step.path):
        progress: _Progress = "elsewhere"
        now = None
        try:
            now = read_locked_state(workspace, step.path, options.unlocked_dirs).state
            progress = _find_progress(now, step)
        except ToolError as error:
            if error.code != "CONFLICT":
                raise
            if parents.is_blocked(step.path):  # otherwise a link or file of others is on the way
                progress = _find_progress(None, step)
        if progress != "elsewhere":
            parents.note(step.path, now)
        probes.append(_StepProbe(step, progress, now))
    return probes


def _find_progress(now: State | None, step: Step) -> _Progress:
    if is_before_state(now, step):
        return "before"
    if is_before_state(now, invert_step(step)):
        return "after"
    return "between" if _is_between(now, step) else "elsewhere"


def _is_between(now: State | None, step: Step) -> bool:
    """Whether a step can leave this state in its middle.

    A step to another kind leaves nothing. A write in place leaves the bytes of one side with the mode of the other.
    """
    before, after = step.before, step.after
    if before is None or after is None:
        return False
    if before.kind != after.kind:
        return now is None
    return (
        now is not None
        and now.mode in {before.mode, after.mode}
        and (has_same_content(now, before) or has_same_content(now, after))
    )


def _is_made(probes: list[_StepProbe]) -> bool:
    """Whether every file has its new state. Folders count only if there are no files."""
    files = [probe.progress for probe in probes if probe.step.kind != "folder"]
    return all(progress == "after" for progress in (files or [probe.progress for probe in probes]))


def _list_open_folders(probes: list[_StepProbe]) -> list[Step]:
    """The steps of folders that are not done yet."""
    return [
        Step(probe.step.path, probe.now, probe.step.after)
        for probe in probes
        if probe.step.kind == "folder"
        and (probe.progress == "before" or _has_passing_mode(probe, probe.step.after))
        and probe.step.before != probe.step.after
    ]


def _has_passing_mode(probe: _StepProbe, meant: State | None) -> bool:
    """Whether a folder still has a mode that it got only while the change was made."""
    now, before, after = probe.now, probe.step.before, probe.step.after
    if now is None or meant is None or now.kind != "folder" or meant.kind != "folder" or now.mode == meant.mode:
        return False
    own = {state.mode for state in (before, after) if state is not None and state.kind == "folder"}
    return now.mode in own | {mode | _OWNER for mode in own if mode is not None} | {_OWNER}


def _finish_uncertain(history: History, entry: LoggedChangeSet, paths: set[bytes]) -> None:
    """Keeps the steps of paths that others changed since. Nobody knows whether these steps were made."""
    body = entry.body
    diffs = history.log.diffs(entry.number) or ("",) * len(body.steps)
    rows = [row for row in zip(body.steps, body.changes, diffs, strict=False) if row[0].path in paths]
    uncertain = replace(
        body,
        summary=f"{body.summary} (interrupted; it may have been done or not)",
        steps=tuple(row[0] for row in rows),
        changes=tuple(row[1] for row in rows),
        undoes=(),
        certain=False,
    )
    history.log.finish(entry.number, uncertain, tuple(row[2] for row in rows))


def _settle_command(workspace: Workspace, history: History, entry: LoggedChangeSet) -> None:
    """Records the changes of a killed command, as its snapshot tells them.

    Changes by others since are among them, so the change set is not certain.
    """
    from handrail.changes.snapshot.compare import compare_snapshot  # noqa: PLC0415  few need it
    from handrail.changes.snapshot.scan import BEFORE_SECONDS, SnapshotError  # noqa: PLC0415
    from handrail.changes.snapshot.snapshot import load_last_snapshot  # noqa: PLC0415

    kill_orphans()  # the rest of the command could change more
    since = entry.time - timedelta(seconds=2 * BEFORE_SECONDS)
    try:
        snapshot = load_last_snapshot(workspace, history, since=since, until=entry.time)
        outcome = compare_snapshot(snapshot, history)
    except SnapshotError:
        summary = f"{entry.body.summary} (interrupted; its changes are unknown)"
        history.log.finish(entry.number, replace(entry.body, summary=summary, undoable=False, certain=False))
        return
    examined = outcome.examined
    if not examined.steps:
        history.log.drop(entry.number)
        return
    summary = f"{entry.body.summary} (cut off)"
    body = ChangeSetRecord("exec", summary, examined.steps, examined.changes, certain=False, was=outcome.was)
    history.log.finish(entry.number, body, examined.diffs)
