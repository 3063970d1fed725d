"""Runs a command on the real tree, with a snapshot.

This is for machines without overlays. A snapshot is taken first, and the changes to what it holds are judged as in an
overlay. If policy does not allow them, they are undone at once. What the snapshot does not hold cannot be undone, so it
is read-only to a command that no person approved.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.changes import read_new_configs
from handrail.changes.overlay.previews import save_preview
from handrail.changes.recorder import UNDO_ID_SUFFIX, RecordedChangeSet
from handrail.changes.recovery import recover_change_set
from handrail.changes.snapshot.compare import Manifest, compare_manifests, compare_snapshot, read_manifest
from handrail.changes.snapshot.scan import OTHER, REPOSITORY, SnapshotError
from handrail.changes.snapshot.snapshot import Snapshot, UncoveredPath, open_scanner, take_snapshot
from handrail.policy.verdict import build_change_refusal
from handrail.protocol.changes import Change, ChangeSet, Preview
from handrail.protocol.decisions import Decision
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.results import SandboxUsed
from handrail.store.change_log import ChangeSetRecord, FileExtras
from handrail.tools.exec.overlay import to_permission_preview
from handrail.tools.exec.result import (
    ChangeOutcome,
    build_exec_output,
    build_sandbox_used,
    describe_sent_data,
)
from handrail.tools.exec.run import CommandRun, FinishedRun, discard_output_on_error, run_command, summarize_command
from handrail.tools.tool import ApprovalNeededError, Output
from handrail.tools.undo import UndoArguments, build_undo_tool
from handrail.workspace.roots import clip_path
from handrail.workspace.workspace import Workspace

_MAX_READ_ONLY_PATHS = 1_000
"""Paths that can be made read-only to one command, beside those that are hidden from it."""
_GIT_CONTROL_NAMES = ("hooks", "config", "config.worktree", "info", "modules", "worktrees", "commondir")
"""Entries of a repository that decide which programs git runs. Commits write none of them."""


class CommandWatchResult(NamedTuple):
    """The changes of a command."""

    examined: OverlayChanges | None
    """Changes that can be undone. None without a snapshot."""
    changes: tuple[Change, ...]
    """Changes as far as they are known."""
    was: tuple[FileExtras, ...] = ()
    uncovered: tuple[UncoveredPath, ...] = ()
    lost: tuple[str, ...] = ()
    """Uncovered paths that are gone."""
    why: str = ""
    """Why the changes cannot be undone, in words."""


class CommandWatch:
    """The state of the roots before a command, as a snapshot or else as a manifest."""

    def __init__(self, workspace: Workspace, history: History) -> None:
        """The caller holds the lock on the workspace."""
        self._workspace = workspace
        self._history = history
        self.snapshot: Snapshot | None = None
        self.why = ""
        """Why there is no snapshot, in words."""
        self._manifests: list[Manifest] | None = None
        for entry in history.log.list_begun():
            if not entry.body.steps:  # its process was killed, since we hold the lock
                recover_change_set(workspace, history, entry.number)
        try:
            self.snapshot = take_snapshot(workspace, history)
        except SnapshotError as error:
            self.why = str(error)
            self._manifests = self._read_manifests()

    def uncovered(self) -> tuple[UncoveredPath, ...]:
        """The present paths that undo could not restore."""
        return tuple(self.snapshot.uncovered()) if self.snapshot is not None else ()

    def finish(self, *, tidy: bool = False) -> CommandWatchResult:
        """The changes of the command. `tidy`: as in `compare_snapshot`, for a command without approval."""
        if self.snapshot is None:
            return CommandWatchResult(None, self._compare_manifests(), why=self.why)
        try:
            found = compare_snapshot(self.snapshot, self._history, tidy=tidy)
        except SnapshotError as error:
            return CommandWatchResult(None, (), uncovered=self.uncovered(), why=str(error))
        missed = (UncoveredPath("", path, why) for path, why in found.missed.items())
        uncovered = (*self.uncovered(), *missed)
        return CommandWatchResult(found.examined, found.examined.changes, found.was, uncovered, found.lost)

    def _read_manifests(self) -> list[Manifest] | None:
        roots = [root for root in self._workspace.roots if root.writable]
        try:
            return [read_manifest(open_scanner(root, self._workspace)) for root in roots]
        except SnapshotError:
            return None

    def _compare_manifests(self) -> tuple[Change, ...]:
        before, after = self._manifests, self._read_manifests() if self._manifests is not None else None
        if before is None or after is None:
            return ()
        return tuple(change for old, new in zip(before, after, strict=True) for change in compare_manifests(old, new))


def execute_with_snapshot(run: CommandRun) -> Output:
    """Runs an allowed command.

    ApprovalNeededError if a person has to approve its changes, which are stored until then, or has to approve the run
    itself because undo would not cover it.
    """
    with run.context.exclusive():
        watch = CommandWatch(run.context.workspace, run.recorder.history)
        if watch.snapshot is None:
            _require_approval(run.context.needs_undo(), watch.why)
        read_only = _list_read_only_paths(run, watch)
        if len(read_only) > _MAX_READ_ONLY_PATHS:
            why = f"{len(read_only):,} paths could be neither stored nor made read-only"
            _require_approval(run.context.needs_undo(), why)
        profile = replace(run.profile, read_only_paths=(*run.profile.read_only_paths, *read_only))
        number = run.recorder.begin_command(run.context.tool_call_id, summarize_command(run.context))
        try:
            finished = run_command(run, profile, hosts=run.hosts, joins=True)
        except BaseException:
            with suppress(StoreError, ToolError, OSError):
                _undo_interrupted(run, number, watch.finish())
            raise
        with discard_output_on_error(finished.result):
            return _judge(run, finished, watch, number)


def _require_approval(decision: Decision | None, why: str) -> None:
    """Refuses to run a command that policy allowed only because undo would cover it."""
    if decision is None:
        return
    reason = f"{decision.reason}; there is no snapshot, since {why}"
    if decision.decision == "confirm":
        preview = Preview(kind="none", text=f"no snapshot, since {why}")
        raise ApprovalNeededError(replace(decision, reason=reason), preview)
    message = f"It needs approval: {reason}. Nothing ran. Do not repeat this call."
    details = {"rule": decision.rule, "reason": reason}
    raise ToolError(decision.code or "PERMISSION_DENIED", message, details=details)


def _list_read_only_paths(run: CommandRun, watch: CommandWatch) -> tuple[str, ...]:
    """The files and folders that the command must not write to.

    If policy allowed it because undo covers it: everything that undo does not cover. Otherwise: the files that decide
    which programs git runs, if changing them needs an approval.
    """
    context = run.context
    if context.answered or run.environment.tier < 2:
        return ()  # Landlock cannot make a file read-only without closing the folder around it
    if context.needs_undo() is not None:
        return tuple(one.path for one in watch.uncovered() if one.why != OTHER and _is_real_entry(one.path))
    config = Change(path=f"{REPOSITORY}/config", action="modified")
    if context.judge((config,), {}).decision == "allow":
        return ()
    return tuple(_list_git_control_paths(context.workspace))


def _list_git_control_paths(workspace: Workspace) -> Iterator[str]:
    for root in workspace.roots:
        if root.writable:
            paths = (os.path.join(root.path, REPOSITORY, name) for name in _GIT_CONTROL_NAMES)
            yield from filter(_is_real_entry, paths)


def _is_real_entry(path: str) -> bool:
    """Whether it is a file or a folder with no link on the way. A link cannot be made read-only."""
    return (os.path.isfile(path) or os.path.isdir(path)) and os.path.realpath(path) == path


def _judge(run: CommandRun, finished: FinishedRun, watch: CommandWatch, number: int) -> Output:
    """Records the changes, undoes what policy does not allow, and builds the output."""
    answered = run.context.answered
    watched = watch.finish(tidy=not answered)
    sandbox = _build_sandbox_used(run, finished, watched)
    made = finish_command(run, number, watched, sandbox.not_covered)
    outcome = ChangeOutcome(made=made)
    if made is not None and watched.examined is not None and not answered:
        preview = CommandPreview(
            ran=finished.result, examined=watched.examined, blocked=finished.blocked, sandbox=sandbox
        )
        outcome = _judge_changes(run, preview, made)
    blocked = (*finished.blocked, *_explain_read_only_paths(finished, watch.uncovered()))
    output = build_exec_output(run, finished.result, sandbox, blocked, outcome)
    lost = _describe_lost_changes(watched, judged=watch.snapshot is not None and not answered)
    return replace(output, warnings=(*output.warnings, *lost))


def finish_command(
    run: CommandRun, number: int, watched: CommandWatchResult, not_covered: tuple[str, ...]
) -> RecordedChangeSet | None:
    """Completes the record of a command. None if it changed nothing."""
    log, examined = run.recorder.history.log, watched.examined
    if not watched.changes:
        log.drop(number)
        return None
    record = ChangeSetRecord(
        "exec",
        summarize_command(run.context),
        examined.steps if examined is not None else (),
        watched.changes,
        undoable=examined is not None,
        not_covered=not_covered if examined is not None else (),
        was=watched.was,
    )
    log.finish(number, record, examined.diffs if examined is not None else None)
    made = ChangeSet(changes=record.changes, number=number, undoable=record.undoable, not_covered=record.not_covered)
    return RecordedChangeSet(made)


def _judge_changes(run: CommandRun, preview: CommandPreview, made: RecordedChangeSet) -> ChangeOutcome:
    """Undoes the changes if policy does not allow them. ApprovalNeededError if a person may approve them."""
    workspace, examined = run.context.workspace, preview.examined
    decision = run.context.judge(examined.changes, read_new_configs(workspace, examined.steps))
    if decision.decision == "allow":
        return ChangeOutcome(made=made)
    try:
        _undo(run, made)
    except (ToolError, StoreError) as error:
        return ChangeOutcome(made=replace(made, problem=_describe_remaining_change(decision, made, error)))
    if decision.decision == "deny" or preview.ran.ending != "exit":
        return ChangeOutcome(failure=build_change_refusal(decision, "It was reverted."))
    # A file with a later change time than this counts as changed by others.
    stored = replace(preview, examined=replace(examined, started=time.time_ns()))
    preview_id = save_preview(workspace, run.recorder.history, stored, None)
    raise ApprovalNeededError(decision, to_permission_preview(stored, preview_id))


def _undo_interrupted(run: CommandRun, number: int, watched: CommandWatchResult) -> None:
    """Undoes the changes of an interrupted command if they need an approval."""
    made, examined = finish_command(run, number, watched, ()), watched.examined
    if made is None or examined is None or run.context.answered:
        return
    configs = read_new_configs(run.context.workspace, examined.steps)
    if run.context.judge(examined.changes, configs).decision != "allow":
        _undo(run, made)


def _undo(run: CommandRun, made: RecordedChangeSet) -> None:
    """Undoes a change set by the undo tool, with a record of its own. ToolError if that fails."""
    context = replace(run.context, tool_call_id=f"{run.context.tool_call_id}{UNDO_ID_SUFFIX}")
    undo = build_undo_tool(context.workspace, run.recorder)
    undo.run(context, UndoArguments(numbers=(made.changes.number or 0,)))


# What undo covers, in words.

_MAX_NAMED_PATHS = 3
_NEVER_COVERED = "extended attributes and times of files"
_UNWRITABLE = re.compile(rb"Read-only file system|Device or resource busy|EROFS|EBUSY")


def _build_sandbox_used(run: CommandRun, finished: FinishedRun, watched: CommandWatchResult) -> SandboxUsed:
    used = build_sandbox_used(run, finished.profile)
    if watched.examined is None:
        return replace(used, undo="none", not_covered=(f"anything, since {watched.why}",))
    reasons: dict[str, list[str]] = {}
    for one in sorted(watched.uncovered, key=lambda one: one.shown):
        reasons.setdefault(one.why, []).append(one.shown)
    uncovered = tuple(f"{why}: {_name_paths(paths)}" for why, paths in reasons.items())
    return replace(
        used, undo="snapshot", not_covered=(*uncovered, _NEVER_COVERED, *describe_sent_data(finished.reached))
    )


def _describe_lost_changes(watched: CommandWatchResult, *, judged: bool) -> tuple[str, ...]:
    """Warnings about changes that undo does not bring back. `judged`: whether they were to be judged."""
    if watched.examined is None and judged:
        return (f"Its changes are unknown, since {watched.why}: the command was neither judged nor reverted.",)
    return (f"Deleted, and undo cannot restore it: {_name_paths(watched.lost)}.",) if watched.lost else ()


def _explain_read_only_paths(finished: FinishedRun, uncovered: tuple[UncoveredPath, ...]) -> tuple[str, ...]:
    """Advice if the command seems to have failed because a path is read-only."""
    result = finished.result
    read_only = [one.shown for one in uncovered if one.path in finished.profile.read_only_paths]
    printed = result.output.head + result.output.tail + (result.errors.head if result.errors else b"")
    if not read_only or result.exit_code == 0 or not _UNWRITABLE.search(printed):
        return ()
    return (f"read-only here, since undo would not cover it without an approval: {_name_paths(read_only)}",)


def _describe_remaining_change(decision: Decision, made: RecordedChangeSet, error: ToolError | StoreError) -> str:
    """The problem of changes that policy does not allow and that could not be undone."""
    why = error.message if isinstance(error, ToolError) else str(error)
    problem = f"It needs approval ({decision.reason}), and could not be reverted: {why}"
    return f"{problem.removesuffix('.')}. A person can type: handrail undo {made.changes.number}"


def _name_paths(paths: Sequence[str]) -> str:
    named = ", ".join(map(clip_path, paths[:_MAX_NAMED_PATHS]))
    return named if len(paths) <= _MAX_NAMED_PATHS else f"{named} and {len(paths) - _MAX_NAMED_PATHS} more"
