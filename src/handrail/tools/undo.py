"""The tool undo, for people: no session offers it to a model."""

import contextlib
import os

from handrail.changes.apply import MAX_IN_MEMORY_BYTES, StepApplier
from handrail.changes.model import ApplyOptions, DiffBudget, PlannedChangeSet, build_change
from handrail.changes.path_state import keep_all, probe_path, strip_data
from handrail.changes.recorder import RecordedChangeSet, Recorder
from handrail.changes.staging import StagingDir, build_staging_path
from handrail.changes.undo import UndoPlan, UndoStep, build_undo_error, format_numbers, plan_undo
from handrail.edit.diff import NO_DIFF, Diff, build_unified_diff
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.store.change_log import Step
from handrail.tools.file_commit import revert_skipped
from handrail.tools.tool import Context, Output, Tool, Touches
from handrail.workspace.atomic import build_temporary_name
from handrail.workspace.errors import clip_path
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace


class UndoArguments(Arguments, frozen=True):
    """The arguments of undo."""

    numbers: tuple[int, ...]
    """The change sets to undo, all of them or none."""
    lines: bool = False
    """If a file changed since, undo only the lines that did not."""


class UndoData(Wire, frozen=True, omit_defaults=False):
    """What was undone."""

    number: int | None
    """The change set of the undo. None if nothing had to change."""
    undone: tuple[int, ...]
    paths: tuple[str, ...]
    diff: str


UNDO = ToolSpec(
    name="undo",
    title="Undo",
    description="Take back what earlier calls changed.",
    arguments=UndoArguments,
    data=UndoData,
    permissions=("fs.write", "fs.delete"),
    side_effects=("files",),
    plain_arguments=("numbers", "lines"),
)


def build_undo_tool(workspace: Workspace, recorder: Recorder) -> Tool:
    """The tool undo for one session."""

    def run(context: Context, arguments: UndoArguments) -> Output:
        plan = plan_undo(workspace, recorder.history, arguments.numbers, lines=arguments.lines)
        if plan.conflicts:
            raise build_undo_error(plan.numbers, plan.conflicts)
        _store(workspace, recorder, plan)
        planned = _plan_changes(workspace, recorder, plan)
        temporary = build_temporary_name(context.session_id, context.tool_call_id)

        def work() -> tuple[Step, ...]:
            taken = {step.path for step in _take_steps(workspace, recorder, plan, temporary)}
            return tuple(revert_skipped(planned.steps, taken))

        return _build_output(plan, planned, recorder.record(context.tool_call_id, planned, work))

    def touches(arguments: UndoArguments) -> Touches:
        entries = [recorder.history.log.entry(number) for number in arguments.numbers]
        paths = {step.path for entry in entries if entry is not None for step in entry.body.steps}
        return Touches(writes=tuple(workspace.render_path(path) for path in sorted(paths)))

    return Tool(UNDO, run, touches)


def preview_undo(workspace: Workspace, recorder: Recorder, arguments: UndoArguments) -> str:
    """The differences that an undo would make."""
    plan = plan_undo(workspace, recorder.history, arguments.numbers, lines=arguments.lines)
    if plan.conflicts:
        raise build_undo_error(plan.numbers, plan.conflicts)
    return "".join(_plan_changes(workspace, recorder, plan).diffs)


def _take_steps(workspace: Workspace, recorder: Recorder, plan: UndoPlan, temporary: str) -> list[Step]:
    """Takes the steps. Removed files are held in a staging folder, and go back if a step fails."""
    history = recorder.history
    with contextlib.closing(StagingDir(build_staging_path(history.folder, temporary))) as staging:
        how = ApplyOptions(
            placements=plan.placements,
            known_states={way.step.path: strip_data(way.found) for way in plan.steps},
            unlocked_dirs=dict(plan.opened),
            staging=staging,
        )
        return StepApplier(workspace, history, temporary, how).apply_steps(way.step for way in plan.steps)


def _store(workspace: Workspace, recorder: Recorder, plan: UndoPlan) -> None:
    """Stores the present files, so that the undo can be undone. NOT_FOUND if an old file is no longer stored."""
    needed: dict[str, bytes] = {}
    for way in plan.steps:
        after, before = way.step.after, way.step.before
        if after is not None and way.data is not None:
            recorder.keep_bytes(after.hash, way.data)
        if after is None or after.kind == "folder" or (before is not None and before.hash == after.hash):
            continue
        needed.setdefault(after.hash, way.step.path)
    for missing in recorder.history.blobs.missing(needed):
        path = clip_path(os.fsdecode(needed[missing]))
        raise ToolError("NOT_FOUND", f"What {path} was before is no longer kept. Nothing was undone.")
    keep_all(workspace, recorder.history, ((way.step.path, way.found) for way in plan.steps))


def _plan_changes(workspace: Workspace, recorder: Recorder, plan: UndoPlan) -> PlannedChangeSet:
    shown = [workspace.render_path(way.step.path) for way in plan.steps]
    budget = DiffBudget()
    diffs = [
        _build_diff(workspace, recorder, way, path) if budget.allows(way.step) else NO_DIFF
        for way, path in zip(plan.steps, shown, strict=True)
    ]
    steps = tuple(way.step for way in plan.steps)
    files = [way.found.current is not None for way in plan.steps]
    changes = tuple(
        build_change(step, path, diff, binary=is_file and diff is NO_DIFF)
        for step, path, diff, is_file in zip(steps, shown, diffs, files, strict=True)
    )
    return PlannedChangeSet(
        "undo",
        _summarize(plan),
        steps,
        changes,
        tuple(diff.text for diff in diffs),
        plan.numbers,
        unlinked_paths=tuple(path for path, manner in plan.placements.items() if manner.in_place is False),
        was=plan.was,
        opened=plan.opened,
    )


def _build_diff(workspace: Workspace, recorder: Recorder, way: UndoStep, path: str) -> Diff:
    """The diff of one file, if both sides are text and not large. Only one file is held in memory at a time."""
    after, now = way.step.after, way.found.current
    if now is not None and now.data is None:
        now = probe_path(workspace, way.step.path, keep=MAX_IN_MEMORY_BYTES).current
    if max(way.step.before.size if way.step.before else 0, after.size if after else 0) > MAX_IN_MEMORY_BYTES:
        return NO_DIFF
    old = decode_text(now.data) if now is not None and now.data is not None else None
    if (now is not None and old is None) or (after is not None and after.kind != "file"):
        return NO_DIFF
    content = way.data if way.data is not None or after is None else _read_stored(recorder, after.hash, path)
    new = decode_text(content) if content is not None else None
    if after is not None and new is None:
        return NO_DIFF
    return build_unified_diff(old.text if old else None, new.text if new else None, path)


def _read_stored(recorder: Recorder, digest: str, path: str) -> bytes:
    try:
        return b"".join(recorder.history.blobs.chunks(digest))
    except StoreError as error:
        raise ToolError("IO_ERROR", f"{clip_path(path)} cannot be brought back: {error}. Nothing was undone.") from None


def _build_output(plan: UndoPlan, planned: PlannedChangeSet, made: RecordedChangeSet) -> Output:
    summary = _summarize(plan)
    diff = "".join(planned.diffs)
    paths = tuple(change.path for change in planned.changes)
    left = f"{plan.left} of its places are no longer as they were left, and stay." if plan.left else None
    return Output(
        summary=summary,
        content=f"{summary}.\n{diff}",
        data=UndoData(number=made.changes.number, undone=plan.numbers, paths=paths, diff=diff),
        files_changed=tuple(change.path for change in planned.changes if change.kind != "folder"),
        warnings=tuple(filter(None, (left, made.problem))),
        changes=made.changes,
    )


def _summarize(plan: UndoPlan) -> str:
    states = [(way.step.path, way.step.after or way.step.before) for way in plan.steps]
    files = [path for path, state in states if state is not None and state.kind != "folder"]
    did = f"{'Brought' if plan.brings_back else 'Took'} back {format_numbers(plan.changes)}"
    return f"{did}: {clip_path(os.fsdecode(files[0])) if len(files) == 1 else f'{len(files)} files'}"
