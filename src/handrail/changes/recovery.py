"""Settles change sets after a crash."""

import contextlib
from datetime import timedelta
from typing import Literal, NamedTuple

import msgspec

from handrail.changes.apply import StepApplier
from handrail.changes.history import History
from handrail.changes.model import ApplyOptions, Placement, has_same_content, invert_step, is_before_state
from handrail.changes.path_state import PathProbe
from handrail.changes.staging import UnlockedDirs, build_staging_path, remove_staging_dir
from handrail.process.tree import kill_orphans
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError
from handrail.store.change_log import ChangeSetRecord, LoggedChangeSet, Step
from handrail.workspace.atomic import build_temporary_name, remove_unfinished
from handrail.workspace.in_place import repair_torn_file
from handrail.workspace.workspace import Workspace

Settled = Literal["made", "not made", "unknown"]
_Where = Literal["before", "after", "between", "elsewhere"]
_OWNER = 0o700


class _StepProbe(NamedTuple):
    step: Step
    where: _Where
    now: State | None


def recover_change_set(workspace: Workspace, history: History, number: int) -> Settled | None:
    """Settles a set whose work was cut off at any point: first what it left unfinished is cleared away. None when it
    is settled already."""
    with history.settling():
        entry = history.log.entry(number)
        if entry is None or entry.state != "begun":
            return None
        _clear(workspace, history, entry)
        return settle(workspace, history, entry)


def settle(workspace: Workspace, history: History, entry: LoggedChangeSet) -> Settled:
    """Brings the files of a begun set to one side, and the log with them."""
    if not entry.body.steps:
        _settle_command(workspace, history, entry)
        return "unknown"
    body = entry.body
    how = ApplyOptions(
        placements={path: Placement(in_place=False) for path in body.unlinked_paths}, unlocked_dirs=dict(body.opened)
    )
    carrier = StepApplier(workspace, history, build_temporary_name(entry.session, entry.call_id), how)
    below = PathProbe(workspace)
    looks = [_look(carrier, step, below) for step in sorted(body.steps, key=lambda step: step.path)]
    try:
        return _settled(history, entry, carrier, looks)
    finally:
        own = [step.path for step in body.steps if step.kind == "folder"]
        UnlockedDirs(workspace, how.unlocked_dirs).close(but=own)


def _settle_command(workspace: Workspace, history: History, entry: LoggedChangeSet) -> None:
    """Writes down what a command changed that was cut off, as far as its snapshot tells. What others changed since is
    among it, and nobody can say which: so it is kept as one that is not certain."""
    from handrail.changes.snapshot.scan import BEFORE_SECONDS, SnapshotError  # noqa: PLC0415  few need it
    from handrail.changes.snapshot.snapshot import load_last_snapshot  # noqa: PLC0415

    kill_orphans()  # what is left of it could change more
    since = entry.time - timedelta(seconds=2 * BEFORE_SECONDS)
    try:
        taken = load_last_snapshot(workspace, history, since=since, until=entry.time)
        outcome = taken.compare(history)
        examined = outcome.examined
    except SnapshotError:
        unknown = msgspec.structs.replace(
            entry.body, summary=f"{entry.body.summary} (cut off; what it changed is not known)", undoable=False
        )
        history.log.finish(entry.number, msgspec.structs.replace(unknown, certain=False))
        return
    if not examined.steps:
        history.log.drop(entry.number)
        return
    body = ChangeSetRecord(
        "exec",
        f"{entry.body.summary} (cut off)",
        examined.steps,
        examined.changes,
        certain=False,
        was=outcome.was,
    )
    history.log.finish(entry.number, body, examined.diffs)


def _settled(history: History, entry: LoggedChangeSet, carrier: StepApplier, looks: list[_StepProbe]) -> Settled:
    if _is_made(looks):
        with contextlib.suppress(ToolError):  # the files are made; what others put into a folder keeps it
            carrier.apply_steps(_finishing(looks))
        history.log.finish(entry.number, entry.body)
        return "made"
    # All at once, so that they are taken in an order in which they can be: a folder comes before what is in it.
    left = [look for look in looks if look.where in {"after", "between"} or _lost_its_mode(look, look.step.before)]
    carrier.apply_steps(Step(look.step.path, look.now, look.step.before) for look in left)
    uncertain = [look.step for look in looks if look.where == "elsewhere"]
    if uncertain:
        history.log.finish(entry.number, *_uncertain(history, entry, uncertain))
        return "unknown"
    history.log.drop(entry.number)
    return "not made"


def _finishing(looks: list[_StepProbe]) -> list[Step]:
    """What is left to do with folders when every file is made: it takes nothing that had to be kept."""
    left = [
        look
        for look in looks
        if look.step.kind == "folder" and (look.where == "before" or _lost_its_mode(look, look.step.after))
    ]
    return [Step(look.step.path, look.now, look.step.after) for look in left if look.step.before != look.step.after]


def _lost_its_mode(look: _StepProbe, meant: State | None) -> bool:
    """Whether a folder has a mode that the change gave it on the way, and not the one that it is to have."""
    now, before, after = look.now, look.step.before, look.step.after
    if now is None or meant is None or now.kind != "folder" or meant.kind != "folder" or now.mode == meant.mode:
        return False
    own = {state.mode for state in (before, after) if state is not None and state.kind == "folder"}
    return now.mode in own | {mode | _OWNER for mode in own if mode is not None} | {_OWNER}


def is_within(workspace: Workspace, entry: LoggedChangeSet) -> bool:
    """Whether all files of a set can be looked at and changed in this session."""
    try:
        return all(workspace.find_root(step.path).writable for step in entry.body.steps)
    except ToolError:
        return False


def _clear(workspace: Workspace, history: History, entry: LoggedChangeSet) -> None:
    """Removes unfinished files, and mends files that were being written in place."""
    temporary = build_temporary_name(entry.session, entry.call_id)
    remove_staging_dir(build_staging_path(history.folder, temporary))
    cleared: set[bytes] = set()
    for step in entry.body.steps:
        with contextlib.suppress(ToolError, OSError, StoreError), workspace.open_parent(step.path) as landing:
            folder = step.path.rpartition(b"/")[0]
            if folder not in cleared:
                remove_unfinished(landing.folder, temporary)
                cleared.add(folder)
            if not landing.missing:
                repair_torn_file(landing, step.before, step.after, history.blobs)


def _look(carrier: StepApplier, step: Step, below: PathProbe) -> _StepProbe:
    """Where a path is on its way. What cannot be looked at raises: then nothing is settled."""
    try:
        now = carrier.find(step.path).state
    except ToolError as error:
        if error.code != "CONFLICT":
            raise
        if not below.is_below(step.path):
            return _StepProbe(step, "elsewhere", None)  # a link or a file is on the way there now
        now = None
    where = _where(now, step)
    if where != "elsewhere":
        below.note(step.path, now)
    return _StepProbe(step, where, now)


def _where(now: State | None, step: Step) -> _Where:
    if is_before_state(now, step):
        return "before"
    if is_before_state(now, invert_step(step)):
        return "after"
    return "between" if _is_between(now, step) else "elsewhere"


def _is_between(now: State | None, step: Step) -> bool:
    """Whether a path can be what a step leaves in its middle: nothing, on the way to another kind; or the bytes of one
    side with the mode of the other, as a file with several names gets them one after the other."""
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


def _is_made(looks: list[_StepProbe]) -> bool:
    """Whether every file is as it was to be. Folders alone do not make a change."""
    files = [look.where for look in looks if look.step.kind != "folder"]
    return all(where == "after" for where in (files or [look.where for look in looks]))


def _uncertain(history: History, entry: LoggedChangeSet, steps: list[Step]) -> tuple[ChangeSetRecord, tuple[str, ...]]:
    """What is kept of a set of which nobody knows whether it was made: what others changed since."""
    body, paths = entry.body, {step.path for step in steps}
    diffs = history.log.diffs(entry.number) or ("",) * len(body.steps)
    rows = [row for row in zip(body.steps, body.changes, diffs, strict=False) if row[0].path in paths]
    kept = msgspec.structs.replace(
        body,
        summary=f"{body.summary} (cut off; whether it was done is not known)",
        steps=tuple(row[0] for row in rows),
        changes=tuple(row[1] for row in rows),
        undoes=(),
        certain=False,
    )
    return kept, tuple(row[2] for row in rows)
