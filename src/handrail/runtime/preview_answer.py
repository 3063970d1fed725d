"""The answer of a preview: a result that changed nothing needs no person."""

from typing import Any

from handrail.changes.model import CommandPreview
from handrail.changes.overlay.previews import load_preview
from handrail.policy.changeset import are_tool_caches
from handrail.policy.decide import is_default_prompt
from handrail.policy.parse import ParsedCommand, parse_fact
from handrail.protocol.events import ToolCallPermissionGranted
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.runtime.pending_call import Approval, PendingCall
from handrail.runtime.results import build_event_fields
from handrail.runtime.session import Session

_HARMLESS_LIMITS = frozenset({"output"})
"""Limits that only shorten the output."""


def answer_by_preview(session: Session, pending: PendingCall) -> None:
    """A step after `request_approval`: keeps the result of a preview that shows nothing to decide about.

    The decision stays `confirm`. The event names the answerer, and the call goes on as if a person had said yes.
    """
    request = pending.request
    if request is not None and _needs_no_person(session, pending, request):
        answer = Answer(kind="once", by="preview")
        pending.approval = Approval(request, answer, request.bound_files)
        fields: dict[str, Any] = {**build_event_fields(pending), "permission_request": request, "answer": answer}
        pending.pending_events.append((ToolCallPermissionGranted, fields))


def _needs_no_person(session: Session, pending: PendingCall, request: PermissionRequest) -> bool:
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
    if preview.blocked or not preview.masked or examined.unkept or examined.outdated:
        return False
    return not examined.steps or (command.is_test_or_lint and are_tool_caches(examined.changes))
