"""Approves a call without a person, if its preview shows nothing to decide about or a grant covers it."""

from handrail.changes.model import CommandPreview
from handrail.changes.overlay.previews import load_preview
from handrail.policy.changeset import are_tool_caches
from handrail.policy.config import GRANTED, find_grant
from handrail.policy.decide import EDITS_ALLOWED, is_default_prompt
from handrail.policy.parse import ParsedCommand, parse_fact
from handrail.protocol.decisions import Decision
from handrail.protocol.permissions import Answer, PermissionRequest, StandingGrant
from handrail.runtime.pending_call import PendingCall, build_approval
from handrail.runtime.results import build_answer_event
from handrail.runtime.session import Session

_HARMLESS_LIMITS = frozenset({"output"})
"""Limits that only shorten the output."""


def approve_automatically(session: Session, pending: PendingCall) -> None:
    """A step after `request_approval`: the call goes on as if a person had approved it. The event names the reason."""
    request = pending.request
    if request is None:
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


# Previews without an effect: the decision stays `confirm`


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


# Plain edits


def _find_edits_grant(pending: PendingCall, request: PermissionRequest) -> Decision | None:
    """The decision by the grant for plain edits, if the preview of a command is covered by it."""
    grant = find_grant(pending.rules.grants, StandingGrant.EDITS) if pending.rules is not None else None
    if request.command is None or grant is None or "edits" not in request.answers:
        return None
    return Decision(decision="allow", rule=f"{GRANTED}{grant.id}", reason=EDITS_ALLOWED, subject=request.command)
