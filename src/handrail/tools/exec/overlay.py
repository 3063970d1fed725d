"""Runs a command in an overlay: policy judges its changes before they are committed."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial

from msgspec.structs import replace

from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.changes import add_diffs, examine, find_indexed, list_tracked_changes, read_git_configs
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
from handrail.policy.network.needs import find_network_needs
from handrail.policy.verdict import build_change_refusal
from handrail.process.output import clean_output
from handrail.process.usage import count_bytes_below
from handrail.protocol.changes import Preview, PreviewRun
from handrail.protocol.errors import StoreError, ToolError
from handrail.sandbox.overlay.overlay import Overlay
from handrail.sandbox.profile import SandboxProfile
from handrail.tools.exec.result import (
    ChangeOutcome,
    build_exec_output,
    build_overlay_sandbox_used,
    build_room_error,
    build_storage_error,
    is_refused,
)
from handrail.tools.exec.run import (
    CommandRun,
    FinishedRun,
    build_weaker_sandbox_error,
    discard_output_on_error,
    list_tracked_credentials,
    run_command,
    summarize_command,
)
from handrail.tools.tool import ApprovalNeededError, CommandContext, Output
from handrail.workspace.facts import may_be_tracked
from handrail.workspace.roots import check_roots
from handrail.workspace.workspace import Workspace

_DROPPED = "Nothing of the command was kept."
_MIXED = "it uses git, which tracks a credential here, and other programs of it could print that"
_TRIED_NETWORK = "blocked: it tried to connect, and commands have no network here"
_MAX_SHOWN_CHARS = 60_000
"""Characters of a preview that a person is shown. The stored preview has all of it."""
_MAX_SHOWN_CHANGES = 200
_GIT_WRITES = re.compile(r"((?:.*/)?)\.git/(?:index$|objects/)", re.DOTALL)
"""The paths that git writes when it notes the contents of files, with the folder of the repository."""


def execute_in_overlay(run: CommandRun) -> Output:
    """Runs an allowed command, and commits its changes if policy allows them.

    ApprovalNeededError if a person has to approve the changes. They and the output are stored until then.
    """
    with open_overlay(run) as overlay:
        profile = watch_disk(run, run.profile, overlay)
        finished = run_command(run, profile, overlay=overlay, hosts=run.hosts, joins=True)
        return judge_and_commit(run, build_preview(run, finished, overlay), overlay)


def judge_and_commit(run: CommandRun, preview: CommandPreview, overlay: Overlay) -> Output:
    """Judges the changes of a command that was allowed to run, and commits, stores or drops them."""
    with discard_output_on_error(preview.ran):
        outcome = _judge_and_commit(run, preview, overlay)
    return build_exec_output(run, preview.ran, preview.sandbox, preview.blocked, outcome)


def _judge_and_commit(run: CommandRun, preview: CommandPreview, overlay: Overlay) -> ChangeOutcome:
    if preview.ran.ending != "exit":
        return ChangeOutcome()
    context, examined = run.context, preview.examined
    configs = read_git_configs(context.workspace, overlay, examined)
    decision = context.judge(
        examined.changes, configs, partial(list_tracked_changes, context.workspace, overlay, examined)
    )
    if decision.decision == "allow":
        return commit_preview(context, run.recorder, preview, overlay)
    if decision.decision == "deny":
        return ChangeOutcome(failure=build_change_refusal(decision, "It was dropped."))
    try:
        preview_id = _store_preview(run, preview, overlay)
    except ToolError as error:
        return ChangeOutcome(failure=error)
    raise ApprovalNeededError(decision, to_permission_preview(preview, preview_id))


def commit_stored_preview(run: CommandRun, preview_id: str) -> Output:
    """Commits a preview that a person approved, or only shows its output. The command does not run again.

    The preview is deleted when the call has its result, which takes over the file of the output.
    """
    preview = load_preview(run.recorder.history, preview_id)
    outcome = _settle_approved(run, preview)
    return build_exec_output(run, preview.ran, preview.sandbox, preview.blocked, outcome)


def _settle_approved(run: CommandRun, preview: CommandPreview) -> ChangeOutcome:
    if run.context.answer == "output":
        return ChangeOutcome(dropped=bool(preview.examined.steps))
    decision = run.context.judge(preview.examined.changes, {})
    if decision.decision == "deny":  # a rule that is newer than the request: an approval lifts no deny
        return ChangeOutcome(failure=build_change_refusal(decision, "It was dropped."))
    return commit_preview(run.context, run.recorder, preview, None)


def commit_preview(
    context: CommandContext, recorder: Recorder, preview: CommandPreview, overlay: Overlay | None
) -> ChangeOutcome:
    """Makes all the changes or none. `overlay`: where the contents are. None if they are stored with the preview."""
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
                summary=summarize_command(context),
                not_covered=preview.sandbox.not_covered,
            )
    except ToolError as error:
        return ChangeOutcome(failure=_explain_conflict(context, error))
    except StoreError as error:
        if recorder.made_by(context.tool_call_id) is not None:
            raise  # the files tell whether it was made, once the store can be used again
        return ChangeOutcome(failure=build_storage_error(error))
    return ChangeOutcome(made=made, unkept=unkept)


def _explain_conflict(context: CommandContext, error: ToolError) -> ToolError:
    """A conflict in other words if there was no preview that could be out of date."""
    path = error.named_details.get("path")
    if context.preview_id is not None or error.code != "CONFLICT" or path is None:
        return error
    message = f"{path} was changed by another program while the command ran. Nothing was kept. Call again."
    return ToolError("CONFLICT", message, details=error.details)


# The preview of a command, before its approval.


def preview_command(run: CommandRun) -> Preview:
    """Runs the command as an unapproved one: it sees no credentials and has no network."""
    if run.is_proven:
        return Preview(kind="none", text="it is read-only, so approval does not help", read_only=True)
    if not run.fact.has_overlay or run.fact.hosts or run.fact.yields:
        return Preview(kind="none", text="needs the network" if run.fact.hosts else "no overlay here")
    if run.command.git_use == "among others" and _list_tracked_credentials(run):
        return Preview(kind="none", text=_MIXED)
    _refuse_without_processes(run, find_network_needs(run.command, run.fact.seen, loopback=True).loopback)

    profile, history = replace(run.profile, is_preview=True), run.recorder.history
    room, limit = history.preview_allowance()
    preview_id = ""
    try:
        with _stack_earlier_changes(run) as below, open_overlay(run, below) as overlay:
            finished = run_command(run, watch_disk(run, profile, overlay, room), overlay=overlay)
            preview = _note_access(run, build_preview(run, finished, overlay), finished.profile)
            if run.context.earlier_changes:
                preview = set_expected_changes(preview, run.context.earlier_changes)
            with discard_output_on_error(preview.ran):
                if preview.ran.ending == "disk":
                    raise build_room_error(room, limit)
                if preview.ran.ending == "cancelled":
                    raise ToolError("CANCELLED", "The call was cancelled during its preview. Nothing was changed.")
                _refuse_without_processes(run, is_refused(preview.ran))
            preview_id = _store_preview(run, preview, overlay)
            return to_permission_preview(preview, preview_id)
    except BaseException:
        if preview_id:
            delete_preview(history, preview_id)  # no request will name it
        raise


def _note_access(run: CommandRun, preview: CommandPreview, profile: SandboxProfile) -> CommandPreview:
    """Adds whether the command tried a connection, and whether all credentials were hidden from it."""
    blocked = (*preview.blocked, *([_TRIED_NETWORK] if preview.ran.tried_network else []))
    roots = run.context.workspace.roots
    masked = run.environment.sensitive_paths.scan(roots)
    credentials = (*masked.credentials, *masked.credential_folders)
    is_sealed = (
        preview.ran.tried_network is False
        and set(masked.credentials) <= {*profile.hidden_files}
        and not may_be_tracked(credentials, [root.path for root in roots])
    )
    return replace(preview, blocked=blocked, sealed=is_sealed)


def _refuse_without_processes(run: CommandRun, is_needed: bool) -> None:
    """ToolError if a preview would miss a background process. Only approved commands share the network of these."""
    with run.open_shared_network() if is_needed else nullcontext() as network:
        if network is not None:
            text = "It needs a background process of this session, which a preview cannot reach."
            raise ToolError("UNAVAILABLE", f"{text} Once approved, it runs with access to them.")


@contextmanager
def _stack_earlier_changes(run: CommandRun) -> Generator[tuple[Overlay, ...]]:
    """The changes of earlier calls of the batch, as an overlay to lie below. Empty if there are none."""
    if not run.context.earlier_changes:
        yield ()
        return
    with open_overlay(run) as overlay:
        restack(run.context.workspace, run.recorder.history, run.context.earlier_changes, overlay)
        yield (overlay,)


def _store_preview(run: CommandRun, preview: CommandPreview, overlay: Overlay) -> str:
    """Stores a preview until it is answered, and returns its id. ToolError if there is no room for it."""
    with discard_output_on_error(preview.ran):
        try:
            check_room(run.recorder, preview.examined)
            return save_preview(run.context.workspace, run.recorder.history, preview, overlay)
        except (OSError, StoreError) as error:
            raise build_storage_error(error) from None


def check_room(recorder: Recorder, examined: OverlayChanges) -> None:
    """LIMIT_EXCEEDED if changes are too large to wait for an answer."""
    room, limit = recorder.history.preview_allowance()
    if count_preview_bytes(examined) > room:
        raise build_room_error(room, limit)


def to_permission_preview(preview: CommandPreview, preview_id: str) -> Preview:
    """The part of a preview that a person is shown."""
    diffs = (preview.examined.diffs[number] for number in rank_by_harm(preview.examined.changes))
    diff, output = "".join(diffs), clean_output(preview.ran.output.head)
    return Preview(
        kind="run",
        text=diff[:_MAX_SHOWN_CHARS],
        truncated=len(diff) > _MAX_SHOWN_CHARS,
        output=output[:_MAX_SHOWN_CHARS],
        tried=_summarize_preview(preview, preview_id, output),
        time=datetime.fromtimestamp(preview.examined.started / 1e9, UTC),
    )


def _summarize_preview(preview: CommandPreview, preview_id: str, output: str) -> PreviewRun:
    examined, result = preview.examined, preview.ran
    files = [change for change in examined.changes if change.kind != "folder"]
    moved = collect_moved_paths(examined.changes)
    return PreviewRun(
        sealed=preview_id,
        exit_code=result.exit_code,
        duration_ms=round(result.seconds * 1000, 3),
        ending=result.ending,
        changes=sort_by_harm(examined.changes)[:_MAX_SHOWN_CHANGES],
        files=len(files),
        deleted=sum(is_deletion(change, moved) for change in files),
        added=sum(change.added or 0 for change in files),
        removed=sum(change.removed or 0 for change in files),
        lines=len(output.splitlines()),
        last_line=output.rstrip().rpartition("\n")[2][:200],
        blocked=preview.blocked,
        unkept=examined.unkept,
    )


# The overlay.


@contextmanager
def open_overlay(run: CommandRun, below: tuple[Overlay, ...] = ()) -> Generator[Overlay]:
    """A new overlay over all that the command may change. It is removed at the end, also after an error."""
    profile = run.profile
    if run.environment.find_overlay_obstacle(run.context.workspace.roots) is not None:
        raise build_weaker_sandbox_error()
    with run.environment.sandbox.create_overlay(profile.writable, below) as overlay:
        yield overlay


def watch_disk(
    run: CommandRun, profile: SandboxProfile, overlay: Overlay, max_bytes: int | None = None
) -> SandboxProfile:
    """The profile of a command that is stopped if it writes more than `max_bytes` to its overlay.

    Without `max_bytes` the limit is the command's own, unless a person approved it or its mode allows bulk changes.
    """
    if max_bytes is None and (run.context.answered or run.context.limits.bulk):
        return profile
    limits, uppers = profile.limits, tuple(over.upper for over in overlay.overlaid)
    return replace(profile, limits=replace(limits, disk=limits.disk if max_bytes is None else max_bytes, uppers=uppers))


def build_preview(run: CommandRun, finished: FinishedRun, overlay: Overlay) -> CommandPreview:
    """The result and the changes of a command that ran in an overlay. If it was stopped, its changes do not count."""
    result, limits, workspace = finished.result, finished.profile.limits, run.context.workspace
    if result.ending == "exit" and count_bytes_below(limits.uppers, limits.disk, whole=True) > limits.disk:
        result = replace(result, ending="disk", exit_code=None, limits=(*result.limits, "disk"))
    with discard_output_on_error(result):
        if result.ending == "exit":
            examined = examine_overlay(workspace, overlay)
            _refuse_misled_git(run, examined, finished.profile, overlay)
        else:
            examined = OverlayChanges(started=overlay.started)
        used = build_overlay_sandbox_used(run, finished.profile, finished.reached)
        return CommandPreview(ran=result, examined=examined, blocked=finished.blocked, sandbox=used)


def examine_overlay(workspace: Workspace, overlay: Overlay) -> OverlayChanges:
    """The changes in an overlay, with their diffs. CONFLICT if the workspace was moved away meanwhile."""
    try:
        examined = add_diffs(workspace, overlay, examine(workspace, overlay))
    except OSError:
        check_roots(workspace.roots, _DROPPED)
        raise
    check_roots(workspace.roots, _DROPPED)
    return examined


def _refuse_misled_git(run: CommandRun, examined: OverlayChanges, profile: SandboxProfile, overlay: Overlay) -> None:
    """CONFLICT if git wrote to a repository that tracks a hidden credential: it may have committed the empty file.

    POLICY_DENIED if git began to track a hidden credential. Later git commands would see its content, and commit it.
    """
    matches = (_GIT_WRITES.match(change.path) for change in examined.changes)
    root = run.context.workspace.main.path
    repositories = {os.path.join(root, match[1]) for match in matches if match is not None}
    if not repositories:
        return
    hidden = _list_tracked_credentials(run).intersection((*profile.hidden_files, *profile.hidden_folders))
    if any(path.startswith(repository) for path in hidden for repository in repositories):
        message = (
            "The command ran git while a credential that git tracks was hidden from it, which git took for a change."
        )
        advice = "Nothing was kept. Call git in the command itself (`git status; …`): then the file is not hidden."
        raise ToolError("CONFLICT", f"{message} {advice}")
    if added := sorted(find_indexed(run.context.workspace, overlay, examined, profile.hidden_files)):
        names = ", ".join(os.path.relpath(path, root) for path in added[:3])
        message = f"The command made git track credentials that were hidden from it as empty files: {names}."
        advice = "Nothing was kept. Name the files to add, or list the credentials in .gitignore first."
        raise ToolError("POLICY_DENIED", f"{message} {advice}")


def _list_tracked_credentials(run: CommandRun) -> frozenset[str]:
    roots = run.context.workspace.roots
    return list_tracked_credentials(run.environment.sensitive_paths.scan(roots), roots)
