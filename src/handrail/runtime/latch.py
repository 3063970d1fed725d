"""The permission latch: questions of a batch are put together, kept until answered, and answered exactly once."""

import os
from contextlib import suppress
from functools import partial

from handrail.protocol.calls import Parked
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.events import (
    Notice,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallPermissionRequired,
)
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.protocol.text import render_value
from handrail.runtime.closing import build_start_event
from handrail.runtime.pipeline import DECIDING, take_steps
from handrail.runtime.question import request_approval as put_question
from handrail.runtime.question import require_answer
from handrail.runtime.recovery import recover
from handrail.runtime.session import PendingCall, Session
from handrail.runtime.waiting_trials import drop_preview, find_preview_id, forget_preview, list_base_previews
from handrail.store.approvals import (
    NewCall,
    StoredRequest,
    claim_ready,
    find_stored_request,
    release_claims,
    save_answer,
    save_parked_batch,
)
from handrail.store.inbox import find_answer, list_pending_questions, list_pending_requests
from handrail.store.journal import PendingEvent


def needs_answer(pending: PendingCall) -> bool:
    """Whether a person has to be asked about the call."""
    return pending.error is None and pending.decision.decision == "confirm"


def request_approvals(session: Session, batch: list[PendingCall]) -> bool:
    """Puts the questions about a batch, in its order; whether there is one. Nothing of the batch has run yet."""
    asked = False
    for number, pending in enumerate(batch):
        if needs_answer(pending):
            take_steps(session, pending, (partial(put_question, earlier=batch[:number]),))
            asked |= needs_answer(pending)
            if pending.error is not None:
                forget_preview(session, pending)
    return asked


def park_batch(session: Session, batch: list[PendingCall]) -> Parked:
    """Writes down the whole batch as waiting. Nothing of it has run."""
    from handrail.store.state_dir import save_workspace_path  # noqa: PLC0415  only where somebody has to be asked

    batch_id = batch[0].batch_id
    session.workspace.drop_cached()
    requests: list[PermissionRequest] = []
    calls: list[NewCall] = []
    for pending in batch:
        requests += [
            fields["permission_request"]
            for kind, fields in pending.pending_events
            if kind is ToolCallPermissionRequired
        ]
        drafts = (build_start_event(pending), *pending.pending_events)
        calls.append(NewCall(pending.call.tool_call_id, pending.call_context, drafts))
    _keep_variables(session, requests)
    save_workspace_path(os.path.dirname(session.folder), session.workspace.main.path)  # before anybody can answer, too
    try:
        save_parked_batch(session.journal, batch_id, tuple(calls), tuple(requests))
    except Exception:  # an interrupt may come when they are parked already: whoever looks then sees to it
        for pending in batch:
            forget_preview(session, pending)
        raise
    session.journal.deliver()
    return Parked(batch_id=batch_id, requests=tuple(requests))


def _keep_variables(session: Session, requests: list[PermissionRequest]) -> None:
    """Before anybody can answer: who does it in another shell is to carry it out as it would have been here."""
    digests = {request.environment for request in requests if request.environment is not None}
    if digests:
        from handrail.store.grants import has_variables, save_variables  # noqa: PLC0415  only where commands ask

        if all(has_variables(session.folder, digest) for digest in digests):
            return
        save_variables(session.folder, session.commands.variables(session.workspace.roots))


def load_parked(session: Session, batch_id: str | None = None) -> Parked:
    """What is open, of one batch or of the session: what needs a yes, and what the model asks."""
    database = session.journal.database
    return Parked(
        batch_id=batch_id or "",
        requests=list_pending_requests(database, batch_id),
        questions=list_pending_questions(database, batch_id),
    )


def record_answer(session: Session, request_id: str, given: Answer) -> list[str] | Parked | None:
    """Writes an answer down; with the last one this process has taken over the calls of the batch, which these are.

    None when there was an answer already; but the same answer again takes over what a killed process left of it.
    """
    while True:
        asked = load_request(session, request_id)
        _check_answer(asked.request, given)
        calls = _write_answer(session, asked, given)
        if calls is not None:
            return calls or load_parked(session, asked.request.batch_id)
        if asked.answered or load_request(session, request_id).answered:
            return _answered_before(session, asked.request, given)
        # Somebody tried it again just now: whether the answer is to that is looked up.


def load_request(session: Session, request_id: str) -> StoredRequest:
    """A request of this session as it stands now."""
    found = find_stored_request(session.journal.database, request_id)
    if found is None:
        raise UsageError(f"this session has no permission request {request_id[:80]!r}")
    return found


def _check_answer(request: PermissionRequest, given: Answer) -> None:
    if given.kind not in request.answers:
        can = " or ".join(request.answers)
        raise UsageError(f"this request can be answered with {can}, not with {render_value(given.kind)}")
    if given.kind != "deny" and (given.revision or 0) != request.revision:
        told = f"the request {request.id} was tried again since, and shows something else now"
        raise UsageError(f"{told}. Look at it, then answer what it shows: revision={request.revision}")


def _write_answer(session: Session, asked: StoredRequest, given: Answer) -> list[str] | None:
    request = asked.request
    kind = ToolCallPermissionDenied if given.kind == "deny" else ToolCallPermissionGranted
    fields = {"tool_call_id": request.tool_call_id, "tool_call_name": request.called}
    if request.tool_call_name is not None:
        fields |= {"tool_name": request.tool_name, "server_name": request.server_name}
    event: PendingEvent = (kind, {**fields, "permission_request": request, "answer": given})
    calls = save_answer(session.journal, asked, given, event)
    if calls is None:
        return None
    try:
        if given.kind == "deny" and (sealed := find_preview_id(request)):
            drop_preview(session, sealed)
        _keep_grants(session, request, given)
        session.journal.deliver()
    except Exception:  # the answer counts: somebody has to be able to run what this process took over
        release_batch(session, request.batch_id)
        raise
    return calls


def _answered_before(session: Session, request: PermissionRequest, given: Answer) -> list[str] | None:
    found = find_answer(session.journal.database, request.tool_call_id)
    if found is None or found[1].kind != given.kind:
        return None
    return claim_batch(session, request.batch_id) or None


def claim_batch(session: Session, batch_id: str) -> list[str]:
    """Takes over what a killed process left of a batch that everything is answered of; all its calls, or none."""
    recover(session)
    return claim_ready(session.journal.database, session.journal.runner, batch_id)


def release_batch(session: Session, batch_id: str) -> None:
    """Gives up what this process took over and did not begin; whoever comes next can have it."""
    with suppress(StoreError):
        release_claims(session.journal.database, session.journal.runner, batch_id)


def _keep_grants(session: Session, request: PermissionRequest, given: Answer) -> None:
    """Behind the answer: without a yes nothing is granted. A yes counts also where what it grants cannot be kept."""
    try:
        session.grants.remember(request, given)
    except StoreError as error:
        text = f"The answer counts for this call, but will be asked for again: {error}."
        session.journal.append((Notice, {"text": text, "code": "IO_ERROR"}))


def redecide(session: Session, batch: list[PendingCall]) -> None:
    """Judges the calls of a resumed batch by what is now, and holds each to its answer."""
    for pending in batch:
        take_steps(session, pending, (_apply_answer,))  # by itself: what it opens is there from the next step on
        take_steps(session, pending, (*DECIDING, require_answer))
    session.workspace.drop_cached()


def _apply_answer(session: Session, pending: PendingCall) -> None:
    """Holds a call to its answer: a no is its result, whatever has changed since; a yes is for what was asked."""
    found = find_answer(session.journal.database, pending.call.tool_call_id)
    if found is None:
        return
    request, pending.answer = found
    pending.request, pending.preview_id, pending.bound_files = request, find_preview_id(request), request.bound_files
    pending.unmet_previews = set(list_base_previews(request))
    if pending.answer.kind == "deny":
        said = f': "{pending.answer.reason}"' if pending.answer.reason else ""
        raise ToolError("PERMISSION_DENIED", f"The person refused{said}. Nothing ran. Do not repeat this call.")
    with suppress(StoreError):  # once more: whoever wrote the answer down may have been killed then
        session.grants.remember(request, pending.answer)
    if request.kind == "external_directory":
        pending.roots = session.opened_roots.open(pending.facts, pending.answer.kind)
        pending.releases += [root.close for root in pending.roots]
