"""The preview of a call for its permission request, which it may answer itself."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.changes import read_preview_configs
from handrail.changes.overlay.previews import load_preview
from handrail.policy.changeset import are_tool_caches
from handrail.policy.config import GRANTED, find_grant
from handrail.policy.decide import EDITS_ALLOWED, is_default_prompt
from handrail.policy.parse import ParsedCommand, parse_command, parse_fact
from handrail.policy.verdict import build_change_refusal
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import Preview
from handrail.protocol.decisions import CommandFact, Decision, DecisionPart, Mode
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import Answer, PermissionRequest, StandingGrant
from handrail.protocol.text import truncate
from handrail.protocol.tool_spec import ASIDE
from handrail.runtime.decide import judge_call_changes
from handrail.runtime.execute import build_context
from handrail.runtime.pending_call import PendingCall, build_approval, drop_preview
from handrail.runtime.results import build_answer_event
from handrail.runtime.session import Session
from handrail.store.change_log import Step
from handrail.tools.file_tool import FileTool, SimulatedFiles
from handrail.tools.tool import CommandContext
from handrail.workspace.facts import may_be_tracked

_REFUSALS = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE", "CANCELLED"})
"""Errors of the command in its preview, not of the preview. No approval is requested then."""
_HARMLESS_LIMITS = frozenset({"output"})
"""Limits that only shorten the output."""
_MAX_SUBJECT_CHARS = 80
_MAX_EXIT_CODE = 128
"""A higher one means that a signal ended the command."""
_MAX_FILE_BYTES = 8 * 1024 * 1024


def build_preview(session: Session, pending: PendingCall, earlier: Sequence[PendingCall]) -> Preview | None:
    """The preview of a call. If the call fails in it, the call has failed. If there can be none, the preview says why.
    `earlier`: the calls before it in its batch."""
    command = pending.facts.command
    if command is None:
        return _run_preview(session, pending, [])
    reason = _find_obstacle(session, pending, command)
    if reason is not None:
        return build_missing_preview(reason)
    base = _simulate_calls(session, [one for one in earlier if _can_change_files(one)])
    if base is None:
        return build_missing_preview("an earlier call of this batch changes files first")
    return _preview_command(session, pending, base)


def build_missing_preview(reason: str) -> Preview:
    return Preview(kind="none", text=reason)


def find_preview_obstacle(command: CommandFact, *, mode: Mode, tries: bool) -> str | None:
    """Why a command has no preview, as far as that does not depend on the machine."""
    if not tries:
        return "the setting preview is never"
    if mode == "plan":
        return "plan mode tries nothing"
    if command.background:
        return "it runs in the background"
    if command.yields:
        return "it may continue in the background (yieldMs)"
    return None


def _find_obstacle(session: Session, pending: PendingCall, command: CommandFact) -> str | None:
    mode = (pending.rules or session.rules).mode
    reason = find_preview_obstacle(command, mode=mode, tries=session.preview_enabled)
    if reason is None and command.hosts:
        reason = f"needs the network ({_find_network_part(command, pending.decision)})"
    if reason is None and not command.has_overlay:
        why = session.commands.find_overlay_obstacle(session.workspace.roots)
        reason = f"no overlay here: {why or 'the sandbox has none'}"
    return reason


def _find_network_part(command: CommandFact, decision: Decision) -> str:
    """The part of the command that needs the network. If that is unknown, the hosts."""
    from handrail.policy.network.needs import NetworkNeeds, find_network_needs  # noqa: PLC0415  few commands need it

    for part in decision.parts or (decision,):
        if find_network_needs(parse_command(part.subject, command.cwd)) != NetworkNeeds():
            return truncate(part.subject, _MAX_SUBJECT_CHARS + 1)
    return ", ".join(command.hosts[:3])


def _preview_command(session: Session, pending: PendingCall, base: "list[_SimulatedChange]") -> Preview:
    """Runs a command in an overlay over `base`. If there is no room for the overlay, the preview says so."""
    try:
        preview = _run_preview(session, pending, base)
    except ToolError as error:
        if error.code in _REFUSALS or "limits" in error.named_details:
            raise
        return build_missing_preview(f"its preview failed: {error.message}")
    except (OSError, StoreError) as error:
        return build_missing_preview(f"its preview failed: {error}")
    if preview is None:
        return build_missing_preview("its tool has no preview")
    if session.is_cancelled(pending.call.tool_call_id):
        drop_preview(session, preview.id)
        raise ToolError("CANCELLED", "The call was cancelled. Nothing was kept.")
    if preview.tried is None:
        return preview
    return replace(preview, tried=replace(preview.tried, on=tuple(change.name for change in base)))


def _run_preview(session: Session, pending: PendingCall, base: "list[_SimulatedChange]") -> Preview | None:
    if pending.tool.preview is None:
        return None
    report = partial(_report_output, session, pending.call)
    report(output="")
    context = replace(build_context(session, pending), metadata=report)
    if isinstance(context, CommandContext):
        context = replace(context, earlier_changes=tuple(change.examined for change in base))
    preview = pending.tool.preview(context, pending.arguments)
    return replace(preview, time=preview.time or datetime.now(UTC))


def _report_output(session: Session, call: ToolCall, /, output: str | None = None, **_: object) -> None:
    for listener in session.preview_listeners:
        listener(call, output or "")


def _ignore_metadata(**_: object) -> None:
    """The call has not begun, so there are no events about it."""


class JudgedPreview(NamedTuple):
    """What policy says of a preview. All changes are judged, not only those that are shown."""

    parts: tuple[DecisionPart, ...] = ()
    """The changes that need approval by themselves."""
    edits: bool = False
    """Whether the grant for plain edits covers the call."""


def judge_preview(session: Session, pending: PendingCall, preview: Preview | None) -> JudgedPreview:
    """ToolError if no approval can allow one of the changes: then none is requested."""
    if preview is None or preview.id is None:
        return JudgedPreview(edits=pending.decision.edits and pending.facts.command is None)
    stored = load_preview(session.recorder.history, preview.id)
    configs = read_preview_configs(session.workspace, session.recorder.history, stored.examined)
    decision = judge_call_changes(session, pending, stored.examined.changes, configs)
    if decision.decision == "deny":
        raise build_change_refusal(decision, "It was dropped.", "what it would change")
    edits = pending.decision.edits and decision.edits and _is_whole(stored) and not _has_tracked_credentials(session)
    if pending.facts.command is not None and parse_fact(pending.facts.command).may_leave_processes:
        edits = False
    if decision.decision == "allow":
        return JudgedPreview(edits=edits)
    pending.outcome_decision = None  # the request is about the command, and shows these parts beside it
    parts = decision.parts or (decision.to_part(),)
    return JudgedPreview(tuple(part for part in parts if part.decision == "confirm"), edits)


def _is_whole(preview: CommandPreview) -> bool:
    """Whether the command ended by itself, was denied nothing that it tried, and changed something. All its changes can
    be committed, and set no modes and no hard links."""
    ran, examined = preview.ran, preview.examined
    is_ended = ran.ending == "exit" and ran.exit_code is not None and ran.exit_code <= _MAX_EXIT_CODE
    if not is_ended or ran.warnings or preview.blocked or examined.unkept or not examined.steps:
        return False
    has_links = any(placement.linked_to is not None for placement in examined.manners)
    return not has_links and all(map(_has_plain_mode, examined.steps))


def _has_plain_mode(step: Step) -> bool:
    """Whether the mode stays. A new path is for its owner to write, and not for everybody."""
    if step.before is not None or step.after is None or step.after.mode is None:
        return step.before is None or step.after is None or step.before.mode == step.after.mode
    return step.after.mode & 0o602 == 0o600


def _has_tracked_credentials(session: Session) -> bool:
    """Whether git tracks a credential here. Its content is also in git's objects, where a preview can read it."""
    roots = session.workspace.roots
    masked = session.commands.sensitive_paths.scan(roots)
    credentials = (*masked.credentials, *masked.credential_folders)
    return may_be_tracked(credentials, [root.path for root in roots])


# Approval without a person, if the preview shows nothing to decide about or a grant covers it.


def approve_automatically(session: Session, pending: PendingCall) -> None:
    """A step after `request_approval`: the call goes on as if a person had approved it. The event names the reason."""
    request = pending.request
    if request is None or pending.call.confirm:
        return
    if _is_answered_by_preview(session, pending, request):
        answer = Answer(kind="once", revision=request.revision, by="preview")
    elif (granted := _find_edits_grant(pending, request)) is not None:
        answer = Answer(kind="once", revision=request.revision, by="grant")
        pending.outcome_decision = granted
    else:
        return
    pending.approval = build_approval(request, answer)
    pending.pending_events.append(build_answer_event(request, answer))


def _is_answered_by_preview(session: Session, pending: PendingCall, request: PermissionRequest) -> bool:
    command, rules = pending.facts.command, pending.rules
    if not session.keeps_empty_previews or command is None or rules is None or request.preview_id is None:
        return False
    # Parts that were added are changes that need approval. What lies on unapproved changes may never exist.
    if request.parts != pending.decision.parts or request.base_previews:
        return False
    if not is_default_prompt(pending.tool.spec, pending.call.requested_permissions, pending.facts, rules):
        return False
    parsed = parse_fact(command)
    if not command.has_overlay or command.unopened or parsed.may_leave_processes:
        return False
    return _is_harmless(load_preview(session.recorder.history, request.preview_id), parsed)


def _is_harmless(preview: CommandPreview, command: ParsedCommand) -> bool:
    """Whether the command ended by itself, saw no credential, tried no connection, and changed at most caches."""
    ran, examined = preview.ran, preview.examined
    if ran.ending != "exit" or ran.warnings or not _HARMLESS_LIMITS.issuperset(ran.limits):
        return False
    if preview.blocked or not preview.sealed or examined.unkept or examined.outdated:
        return False
    return not examined.steps or (command.is_test_or_lint and are_tool_caches(examined.changes))


def _find_edits_grant(pending: PendingCall, request: PermissionRequest) -> Decision | None:
    """The decision by the grant for plain edits, if the preview of a command is covered by it."""
    grant = find_grant(pending.rules.grants, StandingGrant.EDITS) if pending.rules is not None else None
    if request.command is None or grant is None or "edits" not in request.answers:
        return None
    return Decision(decision="allow", rule=f"{GRANTED}{grant.id}", reason=EDITS_ALLOWED, subject=request.command)


# Earlier calls of the batch: the preview of a command builds on their changes. A command has left them in its own
# preview. A file tool runs on copies of its files.


class _SimulatedChange(NamedTuple):
    """The changes that one call of a batch would leave."""

    name: str
    """The id of its stored preview. Of a file tool, the id of the call."""
    examined: OverlayChanges


def _can_change_files(pending: PendingCall) -> bool:
    if pending.error is not None or ASIDE.issuperset(pending.tool.spec.side_effects):
        return False
    if pending.request is not None and "once" not in pending.request.answers:
        return False  # its preview was stopped, so nothing of it can be committed
    if pending.answer is not None and pending.answer.kind in {"deny", "output"}:
        return False
    command = pending.facts.command
    if command is None:
        return pending.facts.process is None
    return not parse_fact(command).is_read_only


def _simulate_calls(session: Session, batch: Sequence[PendingCall]) -> list[_SimulatedChange] | None:
    """The changes of each call, in their order. None if those of a call cannot be known."""
    files, changes = SimulatedFiles(session.journal, session.recorder), list[_SimulatedChange]()
    for pending in batch:
        try:
            change = pending.simulated or _simulate_call(session, pending, files)
        except (ToolError, StoreError, OSError):
            return None
        if change is None:
            return None
        pending.simulated = change  # the same for every command after it
        files.add(change.examined, is_file_tool=pending.preview_id is None)
        if change.examined.steps:
            changes.append(change)
    return changes


def _simulate_call(session: Session, pending: PendingCall, files: SimulatedFiles) -> _SimulatedChange | None:
    if (preview_id := pending.preview_id) is not None:
        return _SimulatedChange(preview_id, load_preview(session.recorder.history, preview_id).examined)
    if not isinstance(pending.tool, FileTool):
        return None
    if not all(_is_plain(session, fact.path, fact.real, fact.kind) for fact in pending.facts.paths):
        return None
    context = replace(build_context(session, pending), metadata=_ignore_metadata)
    return _SimulatedChange(pending.call.tool_call_id, pending.tool.simulate(context, pending.arguments, files))


def _is_plain(session: Session, path: str, real: str | None, kind: str) -> bool:
    """Whether a path leads to a small file of the workspace, or to none, without a link on the way."""
    if real is None or os.path.isabs(real) or os.path.normpath(path) != real or kind not in {"file", "missing"}:
        return False
    return kind == "missing" or os.path.getsize(os.path.join(session.workspace.main.path, real)) <= _MAX_FILE_BYTES
