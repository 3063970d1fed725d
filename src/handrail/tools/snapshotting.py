"""Commands that run on the files themselves, since no overlay can be had: a snapshot is taken beforehand.

What a snapshot holds is judged by what became of it, as in an overlay, and undone at once if somebody has to approve it
first. What it does not hold cannot be undone: if nobody was asked, that cannot be written to.
"""

import contextlib
import time

from msgspec.structs import replace

from handrail.changes.layered.sealing import save_preview
from handrail.changes.layered.trial import CommandPreview, OverlayChanges
from handrail.changes.recorder import UNDO_ID_SUFFIX, RecordedChangeSet, Recorder
from handrail.changes.snapshots.configs import read_new_configs
from handrail.changes.snapshots.recording import finish_command, finish_without_undo
from handrail.changes.snapshots.watch import CommandWatch, CommandWatchResult
from handrail.policy.parse import ParsedCommand
from handrail.protocol.decisions import Decision
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import Preview
from handrail.sandbox.confinement import SandboxProfile
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import ApprovalNeededError, CommandContext, Output
from handrail.tools.exec_answer import build_exec_output
from handrail.tools.outcome import ChangeOutcome
from handrail.tools.running import NetworkedRun, remove_spill_files, require_command_fact, run_command
from handrail.tools.snapshot_seals import MAX_READ_ONLY_PATHS, list_read_only_paths
from handrail.tools.snapshot_words import (
    build_reverted_error,
    build_snapshot_sandbox_used,
    describe_lost_changes,
    describe_remaining_change,
    describe_unwritable_paths,
)
from handrail.tools.trying import to_permission_preview
from handrail.tools.undo import UndoArguments, build_undo_tool

_MAX_SUMMARY_CHARS = 200


def execute_with_snapshot(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    recorder: Recorder,
) -> Output:
    """Runs a command that is allowed. ApprovalNeededError if somebody has to say yes: to its changes, which wait, or to
    running it at all, where undo would not cover it."""
    with context.exclusive():
        watch = CommandWatch(context.workspace, recorder.history)
        if watch.snapshot is None:
            _check_uncovered(context.needs_undo(), watch.why)
        sealed = list_read_only_paths(context, watch, commands)
        if len(sealed) > MAX_READ_ONLY_PATHS:
            _check_uncovered(context.needs_undo(), f"{len(sealed):,} paths could neither be kept nor made read-only")
        profile = replace(profile, read_only_paths=(*profile.read_only_paths, *sealed))
        number = recorder.begin_command(context.tool_call_id, require_command_fact(context).text[:_MAX_SUMMARY_CHARS])
        try:
            went = run_command(context, todo, profile, commands, hosts=commands.hosts_open_to(context, todo))
        except BaseException:
            with contextlib.suppress(StoreError, ToolError, OSError):
                _cut_off(context, recorder, number, watch.finish())
            raise
        try:
            return _concluded(context, todo, went, commands, recorder, watch, number)
        except BaseException:
            remove_spill_files(went.ran)
            raise


def _concluded(
    context: CommandContext,
    todo: ParsedCommand,
    went: NetworkedRun,
    commands: CommandEnvironment,
    recorder: Recorder,
    watch: CommandWatch,
    number: int,
) -> Output:
    watched = watch.finish(tidy=not context.answered)
    sandbox = build_snapshot_sandbox_used(context, went, commands, watched)
    made = _recorded(context, recorder, number, watched, sandbox.not_covered)
    outcome = ChangeOutcome(made=made)
    if made is not None and watched.examined is not None and not context.answered:
        preview = CommandPreview(ran=went.ran, examined=watched.examined, blocked=went.blocked, sandbox=sandbox)
        outcome = _judged(context, recorder, preview, made)
    line = describe_unwritable_paths(went, watch.uncovered())
    output = build_exec_output(
        context, went.ran, todo, went.profile.limits, sandbox, (*went.blocked, *([line] if line else [])), outcome
    )
    return replace(
        output,
        warnings=(
            *output.warnings,
            *describe_lost_changes(watched, judged=watch.snapshot is not None and not context.answered),
        ),
    )


def _recorded(
    context: CommandContext, recorder: Recorder, number: int, watched: CommandWatchResult, not_covered: tuple[str, ...]
) -> RecordedChangeSet | None:
    history, summary = recorder.history, require_command_fact(context).text[:_MAX_SUMMARY_CHARS]
    if watched.examined is not None:
        return finish_command(history, number, summary, watched.examined, watched.was, not_covered)
    return finish_without_undo(history, number, summary, watched.changes)


def _cut_off(context: CommandContext, recorder: Recorder, number: int, watched: CommandWatchResult) -> None:
    """Of one that an interrupt stopped too, nothing stays that somebody would have to say yes to."""
    made = _recorded(context, recorder, number, watched, ())
    if made is None or watched.examined is None or context.answered:
        return
    examined = watched.examined
    if context.judge(examined.changes, read_new_configs(context.workspace, examined.steps)).decision != "allow":
        _take_back(context, recorder, made)


def _judged(
    context: CommandContext, recorder: Recorder, preview: CommandPreview, made: RecordedChangeSet
) -> ChangeOutcome:
    """What policy says to it: what it does not let be is undone."""
    examined = preview.examined
    decision = context.judge(examined.changes, read_new_configs(context.workspace, examined.steps))
    if decision.decision == "allow":
        return ChangeOutcome(made=made)
    try:
        _take_back(context, recorder, made)
    except (ToolError, StoreError) as error:
        return ChangeOutcome(made=replace(made, problem=describe_remaining_change(decision, made, error)))
    if decision.decision == "deny" or preview.ran.ending != "exit":
        return ChangeOutcome(failure=build_reverted_error(decision))
    waiting = replace(preview, examined=_as_it_waits(examined))
    raise ApprovalNeededError(
        decision, to_permission_preview(waiting, save_preview(context.workspace, recorder.history, waiting, None))
    )


def _take_back(context: CommandContext, recorder: Recorder, made: RecordedChangeSet) -> None:
    """At once, on the record like any undo, which keeps what it takes away. ToolError where that cannot be."""
    own = replace(context, tool_call_id=f"{context.tool_call_id}{UNDO_ID_SUFFIX}")
    build_undo_tool(context.workspace, recorder).run(own, UndoArguments(numbers=(made.changes.number or 0,)))


def _as_it_waits(examined: OverlayChanges) -> OverlayChanges:
    """What has a later change time than this was changed by others."""
    return replace(examined, started=time.time_ns())


def _check_uncovered(decision: Decision | None, why: str) -> None:
    """Nothing has run yet: what was allowed since undo would cover it has to be asked about."""
    if decision is None:
        return
    reason = f"{decision.reason}; there is no snapshot, since {why}"
    if decision.decision == "confirm":
        raise ApprovalNeededError(
            replace(decision, reason=reason), Preview(kind="none", text=f"no snapshot, since {why}")
        )
    details = {"rule": decision.rule, "reason": reason}
    message = f"It needs a person's yes: {reason}. Nothing ran. Do not repeat this call."
    raise ToolError(decision.code or "PERMISSION_DENIED", message, details=details)
