"""Runs a command on the real tree, with a snapshot."""

import contextlib
import os
import re
import time
from collections.abc import Iterator

from msgspec.structs import replace

from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.changes import read_new_configs
from handrail.changes.overlay.previews import save_preview
from handrail.changes.recorder import UNDO_ID_SUFFIX, RecordedChangeSet, Recorder
from handrail.changes.snapshot.scan import OTHER, REPOSITORY
from handrail.changes.snapshot.snapshot import UncoveredPath
from handrail.changes.snapshot.watch import CommandWatch, CommandWatchResult, finish_command, finish_without_undo
from handrail.policy.parse import ParsedCommand
from handrail.policy.verdict import build_change_refusal
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Decision
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.profile import SandboxProfile
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.exec.overlay import to_permission_preview
from handrail.tools.exec.result import ChangeOutcome, build_exec_output, build_sandbox_used
from handrail.tools.exec.run import NetworkedRun, remove_spill_files, require_command_fact, run_command
from handrail.tools.tool import ApprovalNeededError, CommandContext, Output
from handrail.tools.undo import UndoArguments, build_undo_tool
from handrail.workspace.errors import clip_path
from handrail.workspace.workspace import Workspace

# § [tools.snapshot_seals] What a command cannot write to that runs on the files themselves, where nobody was asked
# § about it.

MAX_READ_ONLY_PATHS = 1_000
"""Paths that can be made read-only to one command, beside what is hidden from it."""
_STEERS = ("hooks", "config", "config.worktree", "info", "modules", "worktrees", "commondir")
"""What in a repository says which programs git runs; commits write none of it."""


def list_read_only_paths(context: CommandContext, watch: CommandWatch, commands: CommandEnvironment) -> tuple[str, ...]:
    """Absolute paths of files and folders. Whoever was allowed only since undo covers it writes to nothing that undo
    does not cover; who was allowed otherwise may, but for what steers git, where changing that asks."""
    if context.answered or commands.tier < 2:
        return ()  # with a yes it may; and Landlock cannot seal a file without closing the folder around it
    if context.needs_undo() is not None:
        return tuple(one.path for one in watch.uncovered() if one.why != OTHER and _is_there(one.path))
    steering = Change(path=f"{REPOSITORY}/config", action="modified")
    if context.judge((steering,), {}).decision == "allow":
        return ()
    return tuple(_steering(context.workspace))


def _steering(workspace: Workspace) -> Iterator[str]:
    for root in workspace.roots:
        if root.writable:
            places = (os.path.join(root.path, REPOSITORY, name) for name in _STEERS)
            yield from (place for place in places if _is_there(place))


def _is_there(path: str) -> bool:
    """As a file or a folder of its own: a link has nothing to be sealed but where it leads."""
    return (os.path.isfile(path) or os.path.isdir(path)) and os.path.realpath(path) == path


# § [tools.snapshot_words] What a result says of a command that ran on the files themselves: what undo covers, and
# § what it does not.

_MAX_NAMED_PATHS = 3
_NEVER = "extended attributes and times of files"
_UNWRITABLE = re.compile(rb"Read-only file system|Device or resource busy|EROFS|EBUSY")


def build_snapshot_sandbox_used(
    context: CommandContext, went: NetworkedRun, commands: CommandEnvironment, watched: CommandWatchResult
) -> SandboxUsed:
    """How it was confined, and what undo does not cover."""
    used = build_sandbox_used(context, went.profile, commands)
    if watched.examined is None:
        return replace(used, undo="none", not_covered=(f"anything, since {watched.why}",))
    sent = (f"what was sent to {', '.join(went.reached)}",) if went.reached else ()
    return replace(used, undo="snapshot", not_covered=(*describe_uncovered(watched.uncovered), _NEVER, *sent))


def describe_uncovered(uncovered: tuple[UncoveredPath, ...]) -> tuple[str, ...]:
    """One for each reason, with the first paths: `ignored by git: node_modules`."""
    reasons: dict[str, list[str]] = {}
    for one in sorted(uncovered, key=lambda one: one.shown):
        reasons.setdefault(one.why, []).append(clip_path(one.shown))
    return tuple(f"{why}: {_listed(paths)}" for why, paths in reasons.items())


def describe_lost_changes(watched: CommandWatchResult, *, judged: bool) -> tuple[str, ...]:
    """What is to be said of what undo does not bring back. `judged`: what it changed was to be judged."""
    if watched.examined is None and judged:
        return (f"Nobody knows what it changed, since {watched.why}: it was neither judged nor taken back.",)
    if not watched.lost:
        return ()
    return (f"Gone, and undo does not bring it back: {_listed([clip_path(path) for path in watched.lost])}.",)


def describe_unwritable_paths(went: NetworkedRun, uncovered: tuple[UncoveredPath, ...]) -> str:
    """What to say to a program that could not write where undo would not cover it."""
    sealed = [clip_path(one.shown) for one in uncovered if one.path in went.profile.read_only_paths]
    printed = went.ran.output.head + went.ran.output.tail + (went.ran.errors.head if went.ran.errors else b"")
    if not sealed or went.ran.exit_code == 0 or not _UNWRITABLE.search(printed):
        return ""
    return f"read-only here, since undo would not cover it and nobody was asked: {_listed(sealed)}"


def describe_remaining_change(decision: Decision, made: RecordedChangeSet, error: ToolError | StoreError) -> str:
    """What policy does not let be, and could not be undone."""
    why = error.message if isinstance(error, ToolError) else str(error)
    said = f"It asks for a person's yes ({decision.reason}), and could not be taken back: {why}"
    return f"{said.removesuffix('.')}. A person can type: handrail undo {made.changes.number}"


def _listed(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMED_PATHS
    return ", ".join(paths) if more <= 0 else f"{', '.join(paths[:_MAX_NAMED_PATHS])} and {more} more"


# § [tools.snapshotting] Commands that run on the files themselves, since no overlay can be had: a snapshot is taken
# § beforehand. What a snapshot holds is judged by what became of it, as in an overlay, and undone at once if
# § somebody has to approve it first. What it does not hold cannot be undone: if nobody was asked, that cannot be
# § written to.

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
        return ChangeOutcome(failure=build_change_refusal(decision, "It was taken back."))
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
