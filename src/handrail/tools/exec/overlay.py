"""Runs a command in an overlay."""

import contextlib
import errno
import os
import re
import sqlite3
from collections.abc import Generator
from datetime import UTC, datetime

from msgspec.structs import replace

from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.changes import add_diffs, examine, read_git_configs
from handrail.changes.overlay.commit import commit
from handrail.changes.overlay.previews import (
    count_preview_bytes,
    delete_preview,
    load_preview,
    restack,
    save_preview,
    set_expected_changes,
)
from handrail.changes.recorder import Recorder
from handrail.policy.changeset import collect_moved_paths, is_deletion, rank_by_harm, sort_by_harm
from handrail.policy.parse import ParsedCommand, parse_fact
from handrail.policy.verdict import build_change_refusal
from handrail.process.output import clean_output
from handrail.process.usage import count_bytes_below
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import ONLY_LOOKS, Preview, PreviewRun
from handrail.sandbox.overlay.overlay import Overlay
from handrail.sandbox.profile import MEGABYTE, SandboxProfile
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.exec.result import ChangeOutcome, build_exec_output, build_overlay_sandbox_used
from handrail.tools.exec.run import (
    NetworkedRun,
    build_weaker_sandbox_error,
    remove_spill_files,
    require_command_fact,
    resolve_cwd,
    run_command,
    watch_disk,
)
from handrail.tools.exec.spec import ExecArguments
from handrail.tools.tool import ApprovalNeededError, CommandContext, Output
from handrail.workspace.roots import check_roots
from handrail.workspace.workspace import Workspace

# § [tools.trying] Runs previews: a command in an overlay, before somebody is asked about it. What they see, and
# § what waits for them.

_DROPPED = "Nothing of the command was kept."
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_FULL = os.strerror(errno.ENOSPC)
_MIXED = "it uses git, which tracks a credential here, and other programs of it could print that"
_MAX_SHOWN_CHARS = 60_000
"""Characters of what a person is shown; the whole is stored with the preview."""
_MAX_SHOWN_CHANGES = 200
_REPOSITORY = re.compile(r"((?:.*/)?)\.git/(?:index$|objects/)", re.DOTALL)
"""What git writes when it notes the contents of files; the folder that its repository is in."""


def preview_command(
    context: CommandContext, arguments: ExecArguments, commands: CommandEnvironment, recorder: Recorder
) -> Preview:
    """Tries the command as one that nobody was asked about: it sees no credentials and reaches nobody."""
    fact = require_command_fact(context)
    todo = parse_fact(fact)
    if todo.is_read_only:
        return Preview(kind="none", text=ONLY_LOOKS)
    if not fact.has_overlay or fact.hosts or fact.yields:
        return Preview(kind="none", text="needs the network" if fact.hosts else "no overlay here")
    if todo.git_use == "among others" and commands.tracked_credentials(context.workspace.roots):
        return Preview(kind="none", text=_MIXED)

    profile = commands.build_profile(context, resolve_cwd(context, fact.cwd), arguments.timeout_ms, todo)
    return _previewed_in(context, todo, profile, commands, recorder)


def _previewed_in(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    recorder: Recorder,
) -> Preview:
    sealed = ""
    room, limit = recorder.history.preview_allowance()
    try:
        with (
            stack_earlier_changes(context, profile, commands, recorder) as below,
            open_overlay(context, profile, commands, below) as overlay,
        ):
            limited = watch_disk(context, profile, overlay, room)
            preview = run_preview(context, todo, limited, commands, overlay)
            if context.earlier_changes:
                preview = set_expected_changes(preview, context.earlier_changes)
            if preview.ran.ending in {"cancelled", "disk"}:
                remove_spill_files(preview.ran)
                if preview.ran.ending == "disk":
                    raise _too_much(room, limit)
                raise ToolError("CANCELLED", "The call was cancelled while it was tried. Nothing was changed.")
            sealed = store_preview(context, recorder, preview, overlay)
            return to_permission_preview(preview, sealed)
    except BaseException:
        delete_preview(recorder.history, sealed)  # nobody will know of it
        raise


@contextlib.contextmanager
def stack_earlier_changes(
    context: CommandContext, profile: SandboxProfile, commands: CommandEnvironment, recorder: Recorder
) -> Generator[tuple[Overlay, ...]]:
    """What earlier calls of the batch would change, as an overlay to lie on; none where they would change nothing."""
    if not context.earlier_changes:
        yield ()
        return
    with open_overlay(context, profile, commands) as overlay:
        restack(context.workspace, recorder.history, context.earlier_changes, overlay)
        yield (overlay,)


@contextlib.contextmanager
def open_overlay(
    context: CommandContext, profile: SandboxProfile, commands: CommandEnvironment, below: tuple[Overlay, ...] = ()
) -> Generator[Overlay]:
    """A new overlay over all that the command may change; it is gone afterwards, whatever happens."""
    _check_layer(context, commands)
    with commands.sandbox.create_overlay(profile.writable, below) as overlay:
        yield overlay


def _check_layer(context: CommandContext, commands: CommandEnvironment) -> None:
    if commands.why_no_layer(context.workspace.roots) is not None:
        raise build_weaker_sandbox_error()


def run_preview(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    overlay: Overlay,
    hosts: tuple[str, ...] = (),
) -> CommandPreview:
    """Runs it in the overlay, and sees what it changed. If it was stopped, nothing of it counts: nobody wanted half of
    a change."""
    went = run_command(context, todo, profile, commands, hosts=hosts, overlay=overlay)
    return build_run_preview(context, went, commands, overlay)


def build_run_preview(
    context: CommandContext, went: NetworkedRun, commands: CommandEnvironment, overlay: Overlay
) -> CommandPreview:
    """What came of one that ran in an overlay."""
    ran, limits = went.ran, went.profile.limits
    if ran.ending == "exit" and count_bytes_below(limits.uppers, limits.disk, whole=True) > limits.disk:
        ran = replace(ran, ending="disk", exit_code=None, limits=(*ran.limits, "disk"))
    try:
        examined = (
            examine_overlay(context.workspace, overlay)
            if ran.ending == "exit"
            else OverlayChanges(started=overlay.started)
        )
        _refuse_misled_git(context.workspace, examined, commands, went.profile)
        return CommandPreview(
            ran=ran,
            examined=examined,
            blocked=went.blocked,
            sandbox=build_overlay_sandbox_used(went.profile, commands, went.reached),
        )
    except BaseException:
        remove_spill_files(went.ran)
        raise


def examine_overlay(workspace: Workspace, overlay: Overlay) -> OverlayChanges:
    """What was changed there, as a person is shown it. CONFLICT where the workspace was moved away meanwhile: then
    there is nothing to compare it with."""
    try:
        examined = add_diffs(workspace, overlay, examine(workspace, overlay))
    except OSError:
        check_roots(workspace.roots, _DROPPED)
        raise
    check_roots(workspace.roots, _DROPPED)
    return examined


def _refuse_misled_git(
    workspace: Workspace, examined: OverlayChanges, commands: CommandEnvironment, profile: SandboxProfile
) -> None:
    """CONFLICT where git noted something in a repository that tracks what was hidden from it: an empty file in the
    place of a credential would be committed."""
    found = (_REPOSITORY.match(change.path) for change in examined.changes)
    repositories = {os.path.join(workspace.main.path, one[1]) for one in found if one is not None}
    if not repositories:
        return
    hidden = commands.tracked_credentials(workspace.roots).intersection(
        (*profile.hidden_files, *profile.hidden_folders)
    )
    if any(path.startswith(repository) for path in hidden for repository in repositories):
        message = (
            "The command ran git while a credential that git tracks was hidden from it, which git took for a change."
        )
        advice = "Nothing was kept. Call git in the command itself (`git status; …`): then the file is not hidden."
        raise ToolError("CONFLICT", f"{message} {advice}")


def store_preview(context: CommandContext, recorder: Recorder, preview: CommandPreview, overlay: Overlay) -> str:
    """Stores the preview until somebody answers; returns its name. ToolError if there is no room for it."""
    try:
        check_room(recorder, preview.examined)
        return save_preview(context.workspace, recorder.history, preview, overlay)
    except (OSError, StoreError, ToolError) as error:
        remove_spill_files(preview.ran)
        raise error if isinstance(error, ToolError) else build_storage_error(error) from None


def check_room(recorder: Recorder, examined: OverlayChanges) -> None:
    """LIMIT_EXCEEDED where changes are too large to wait for an answer."""
    room, limit = recorder.history.preview_allowance()
    if count_preview_bytes(examined) > room:
        raise _too_much(room, limit)


def _too_much(room: int, limit: str) -> ToolError:
    message = f"It wrote more than the {room / MEGABYTE:,.1f} MB that {limit} leaves it before an approval."
    advice = "A person can raise the limit, or answer what waits (handrail approvals)."
    return ToolError("LIMIT_EXCEEDED", f"{message} Nothing was changed. {advice}", details={"limits": ["disk"]})


def build_storage_error(error: OSError | StoreError) -> ToolError:
    """The refusal where what a command would change could not be stored."""
    cause = error if isinstance(error, OSError) else error.__cause__
    full = _is_full(cause)
    why = _FULL if full else cause.strerror if isinstance(cause, OSError) else str(error)
    message = f"What the command changed could not be stored ({why}), so it was dropped. Nothing was changed."
    return ToolError("NO_SPACE" if full else "IO_ERROR", f"{message} Try again when there is room.")


def _is_full(error: BaseException | None) -> bool:
    """Whether there is no room: for a file, or in a database."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def to_permission_preview(preview: CommandPreview, sealed: str) -> Preview:
    """What a person is shown of a preview."""
    diffs = (preview.examined.diffs[number] for number in rank_by_harm(preview.examined.changes))
    diff, printed = "".join(diffs), clean_output(preview.ran.output.head)
    return Preview(
        kind="run",
        text=diff[:_MAX_SHOWN_CHARS],
        truncated=len(diff) > _MAX_SHOWN_CHARS,
        output=printed[:_MAX_SHOWN_CHARS],
        tried=_tried(preview, sealed, printed),
        time=datetime.fromtimestamp(preview.examined.started / 1e9, UTC),
    )


def _tried(preview: CommandPreview, sealed: str, printed: str) -> PreviewRun:
    examined, ran = preview.examined, preview.ran
    files = [change for change in examined.changes if change.kind != "folder"]
    return PreviewRun(
        sealed=sealed,
        exit_code=ran.exit_code,
        duration_ms=round(ran.seconds * 1000, 3),
        ending=ran.ending,
        changes=sort_by_harm(examined.changes)[:_MAX_SHOWN_CHANGES],
        files=len(files),
        deleted=sum(is_deletion(change, collect_moved_paths(examined.changes)) for change in files),
        added=sum(change.added or 0 for change in files),
        removed=sum(change.removed or 0 for change in files),
        lines=len(printed.splitlines()),
        last_line=printed.rstrip().rpartition("\n")[2][:200],
        blocked=preview.blocked,
        unkept=examined.unkept,
    )


# § [tools.layered] Commands whose changes go into an overlay first: run, judged by what they changed, and committed
# § or dropped.

_MAX_SUMMARY_CHARS = 200


def execute_in_overlay(
    context: CommandContext,
    arguments: ExecArguments,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    recorder: Recorder,
) -> Output:
    """Runs a command that is allowed, and commits what it changed if policy has nothing against it.
    ApprovalNeededError if somebody has to approve that: then all of it waits."""
    hosts = commands.hosts_open_to(context, todo)
    with open_overlay(context, profile, commands) as overlay:
        profile = watch_disk(context, profile, overlay)
        preview = run_preview(context, todo, profile, commands, overlay, hosts)
        return judge_and_commit(context, arguments, preview, commands, recorder, overlay)


def judge_and_commit(
    context: CommandContext,
    arguments: ExecArguments,
    preview: CommandPreview,
    commands: CommandEnvironment,
    recorder: Recorder,
    overlay: Overlay,
) -> Output:
    """Judges what came of a command that was allowed, and commits it or does not."""
    try:
        outcome = _judged(context, preview, recorder, overlay)
    except ApprovalNeededError:
        raise  # what it printed waits too
    except BaseException:
        remove_spill_files(preview.ran)
        raise
    return _answered(context, arguments, preview, commands, outcome)


def commit_stored_preview(
    context: CommandContext, arguments: ExecArguments, sealed: str, commands: CommandEnvironment, recorder: Recorder
) -> Output:
    """Commits what somebody approved, or only what it printed. Nothing is run again. The preview itself is deleted
    when the call has its result, which takes over the file of what was printed."""
    preview = load_preview(recorder.history, sealed)
    outcome = _only_printed(preview) if context.answer == "output" else _still_allowed(context, preview, recorder)
    return _answered(context, arguments, preview, commands, outcome)


def _still_allowed(context: CommandContext, preview: CommandPreview, recorder: Recorder) -> ChangeOutcome:
    """Commits it, but for what policy has come to forbid since somebody was asked: a yes lifts no deny."""
    decision = context.judge(preview.examined.changes, {})
    if decision.decision == "deny":
        return ChangeOutcome(failure=build_change_refusal(decision, "It was dropped."))
    return commit_preview(context, preview, recorder, None)


def commit_preview(
    context: CommandContext, preview: CommandPreview, recorder: Recorder, overlay: Overlay | None
) -> ChangeOutcome:
    """Makes the changes, all of them or none. What stands in the way is told beside what the command printed."""
    unkept = preview.examined.unkept
    if not preview.examined.steps:
        return ChangeOutcome(unkept=unkept)
    try:
        with context.exclusive():
            made = commit(
                context.workspace,
                recorder,
                preview.examined,
                overlay,
                session_id=context.session_id,
                call_id=context.tool_call_id,
                summary=require_command_fact(context).text[:_MAX_SUMMARY_CHARS],
                not_covered=preview.sandbox.not_covered,
            )
    except ToolError as error:
        return ChangeOutcome(failure=_in_words(context, error))
    except StoreError as error:
        if recorder.made_by(context.tool_call_id) is not None:
            raise  # whether it was made is settled by the files, once the store can be used again
        return ChangeOutcome(failure=build_storage_error(error))
    return ChangeOutcome(made=made, unkept=unkept)


def _in_words(context: CommandContext, error: ToolError) -> ToolError:
    """Where nobody saw a preview, none was out of date."""
    path = error.named_details.get("path")
    if context.preview_id is not None or error.code != "CONFLICT" or path is None:
        return error
    message = f"{path} was changed by somebody else while the command ran. Nothing was kept. Call again."
    return ToolError("CONFLICT", message, details=error.details)


def _judged(context: CommandContext, preview: CommandPreview, recorder: Recorder, overlay: Overlay) -> ChangeOutcome:
    if preview.ran.ending != "exit":
        return ChangeOutcome()
    decision = context.judge(preview.examined.changes, read_git_configs(context.workspace, overlay, preview.examined))
    if decision.decision == "allow":
        return commit_preview(context, preview, recorder, overlay)
    if decision.decision == "deny":
        return ChangeOutcome(failure=build_change_refusal(decision, "It was dropped."))
    try:
        sealed = store_preview(context, recorder, preview, overlay)
    except ToolError as error:
        return ChangeOutcome(failure=error)
    raise ApprovalNeededError(decision, to_permission_preview(preview, sealed))


def _only_printed(preview: CommandPreview) -> ChangeOutcome:
    return ChangeOutcome(dropped=bool(preview.examined.steps))


def _answered(
    context: CommandContext,
    arguments: ExecArguments,
    preview: CommandPreview,
    commands: CommandEnvironment,
    outcome: ChangeOutcome,
) -> Output:
    fact = require_command_fact(context)
    todo = parse_fact(fact)
    limits = commands.limits(arguments.timeout_ms, restricted=context.limits.restricted)
    try:
        return build_exec_output(context, preview.ran, todo, limits, preview.sandbox, preview.blocked, outcome)
    except BaseException:
        remove_spill_files(preview.ran)
        raise
