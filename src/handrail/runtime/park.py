"""A batch that is parked until its requests are answered."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import asdict, replace

from handrail.protocol.calls import Parked
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import ToolCallPermissionRequired, ToolCallQuestionRequired
from handrail.protocol.permissions import PermissionRequest, Question
from handrail.runtime.decide import DECIDING
from handrail.runtime.execute import close_call, take_steps
from handrail.runtime.novelty import add_novelty
from handrail.runtime.pending_call import Approval, PendingCall, drop_preview, load_answer
from handrail.runtime.permission_request import (
    bind_files,
    build_request,
    drop_preview_on_failure,
    request_approval,
    require_answer,
)
from handrail.runtime.preview import approve_automatically
from handrail.runtime.recovery import recover
from handrail.runtime.results import build_event_fields, build_start_event
from handrail.runtime.session import Session
from handrail.store.approvals import CallToPark, claim_ready, save_parked
from handrail.store.grants import has_variables, save_variables
from handrail.store.inbox import list_pending_questions, list_pending_requests
from handrail.store.state_dir import save_workspace_path
from handrail.tools.tool import ApprovalNeededError

# Parking


def park_for_approval(session: Session, batch: list[PendingCall]) -> Parked | None:
    """Requests the approvals that a batch needs, then parks all of it. Nothing of the batch has run. None if no call
    needs a person any more: each of them failed in its preview, or was approved by its preview or a grant."""
    for number, pending in enumerate(batch):
        if pending.needs_approval:
            take_steps(session, pending, (partial(request_approval, earlier=batch[:number]), approve_automatically))
    asking = [pending for pending in batch if pending.needs_approval and pending.answer is None]
    return park(session, batch, asking) if asking else None


def park_after_run(
    session: Session, pending: PendingCall, batch: Sequence[PendingCall], needed: ApprovalNeededError
) -> Parked | None:
    """Parks an allowed call because its outcome needs approval, with the calls of its batch after it. Nothing of the
    outcome is committed yet. A command whose snapshot failed has not even run. None if the request cannot be built:
    then the call has failed with that."""
    pending.outcome_decision = needed.decision
    try:
        with drop_preview_on_failure(session, needed.preview):
            bound_files = bind_files(session, pending) if needed.preview.id is None else ()
            pending.approval = Approval(build_request(session, pending, needed.preview, bound_files))
        return park(session, batch, [pending])
    except ToolError as error:
        pending.fail(error)
        close_call(session, pending)
        return None


def park_question(session: Session, pending: PendingCall) -> Parked | None:
    """Parks a call that asks the user a question, alone in its batch. None if it asks nothing or has failed."""
    ask = pending.tool.asks
    if ask is None or pending.error is not None or session.is_cancelled(pending.call.tool_call_id):
        return None
    question = ask(pending.call.tool_call_id, pending.arguments)
    # The inbox finds a question right after the start of its call.
    pending.pending_events.insert(0, (ToolCallQuestionRequired, {**build_event_fields(pending), **asdict(question)}))
    return replace(park(session, [pending], []), questions=(question,))


def park(session: Session, batch: Sequence[PendingCall], asking: Sequence[PendingCall]) -> Parked:
    """Parks all calls of a batch that have no result, in one transaction with the requests about `asking`."""
    batch_id = batch[0].batch_id
    add_novelty(session, asking)
    requests = tuple(pending.request for pending in asking if pending.request is not None)
    answered = tuple(
        (one.request, one.answer) for one in batch if one.request and one.answer and one.journal_state is None
    )
    calls = tuple(_to_park(one, asks=one in asking) for one in batch if one.journal_state in {None, "started"})
    try:
        # First what another process needs to resume the batch, since it can answer at once.
        save_workspace_path(os.path.dirname(session.folder), session.workspace.main.path)
        digests = {request.environment for request in requests if request.environment is not None}
        if not all(has_variables(session.folder, digest) for digest in digests):
            save_variables(session.folder, session.commands.variables(session.workspace.roots))
        save_parked(session.journal, batch_id, calls, tuple(one.call.tool_call_id for one in batch), requests, answered)
    except Exception:  # not after an interrupt: the calls may be parked already
        for pending in batch:
            drop_preview(session, pending.preview_id if pending in asking or pending.journal_state is None else None)
        raise
    finally:
        session.workspace.drop_cached()
        for release in reversed([release for pending in batch for release in pending.releases]):
            release()
    for pending in batch:
        if pending.journal_state != "finished":
            pending.journal_state = "parked"
            pending.pending_events.clear()
    session.journal.deliver()
    return Parked(batch_id=batch_id, requests=requests)


def _to_park(pending: PendingCall, *, asks: bool) -> CallToPark:
    events = list(pending.pending_events)
    started = pending.journal_state == "started"
    if not started:
        events.insert(0, build_start_event(pending))
    if asks:
        request = {**build_event_fields(pending), "permission_request": pending.request}
        events.append((ToolCallPermissionRequired, request))
    return CallToPark(pending.call.tool_call_id, pending.call_context, tuple(events), started)


# Parked batches


def load_parked(session: Session, batch_id: str | None = None) -> Parked:
    """What is pending, in one batch or in the session."""
    return Parked(
        batch_id=batch_id or "",
        requests=list_pending_requests(session.journal.database, batch_id),
        questions=list_pending_questions(session.journal, batch_id),
    )


def is_pending(session: Session, subject: PermissionRequest | Question | str) -> bool:
    """Whether a request or a question has no answer. A request also has to be as it was shown. By the id of a request,
    any revision of it counts."""
    parked = load_parked(session)
    if isinstance(subject, str):
        return subject in {request.id for request in parked.requests}
    if isinstance(subject, PermissionRequest):
        return (subject.id, subject.revision) in {(request.id, request.revision) for request in parked.requests}
    return subject.tool_call_id in {question.tool_call_id for question in parked.questions}


# Resuming


def claim_batch(session: Session, batch_id: str) -> list[str]:
    """Claims an answered batch that a killed process left. Returns all its calls, or none if no call is ready."""
    recover(session)
    return claim_ready(session.journal, batch_id)


def release_batch(session: Session, batch_id: str) -> None:
    """Releases the calls of a batch that this process claimed and did not begin."""
    with suppress(StoreError):
        session.journal.release_claims(session.journal.runner, batch_id)


def redecide(session: Session, batch: list[PendingCall]) -> None:
    """Decides the calls of a resumed batch by the facts of now, and applies their answers."""
    for pending in batch:
        take_steps(session, pending, (_apply_answer,))  # separate: the next steps see the roots that it opens
        take_steps(session, pending, (*DECIDING, require_answer))
    session.workspace.drop_cached()


def _apply_answer(session: Session, pending: PendingCall) -> None:
    load_answer(session, pending)
    request, answer = pending.request, pending.answer
    if request is None or answer is None:
        return
    if answer.by == "expiry":
        message = f"The permission request was not answered: {answer.reason}. Nothing ran."
        raise ToolError("PERMISSION_DENIED", f"{message} Make the call again if you still need it.")
    if answer.kind == "deny":
        reason = f': "{answer.reason}"' if answer.reason else ""
        raise ToolError(
            "PERMISSION_DENIED",
            f"The user denied the request{reason}. Nothing ran. Do not repeat this call.",
            details={"answer": "deny", "reason": answer.reason or ""},
        )
    with suppress(StoreError):  # the process that stored the answer may have been killed before it stored the grant
        session.grants.remember(request, answer)
    if request.kind == "external_directory":
        pending.roots = session.opened_roots.open(pending.facts, answer.kind)
        pending.releases += [root.close for root in pending.roots]
