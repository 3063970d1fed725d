"""The permission latch: questions of a batch are put together, kept until answered, and answered exactly once."""

import os
from contextlib import suppress
from functools import partial

from handrail.protocol.batch import Parked
from handrail.protocol.error import StoreError, ToolError, UsageError
from handrail.protocol.event import (
    Notice,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallPermissionRequired,
)
from handrail.protocol.permission import Answer, PermissionRequest
from handrail.protocol.wire import encode
from handrail.protocol.wording import shown
from handrail.runtime.closing import start_draft
from handrail.runtime.pipeline import DECIDING, take_steps
from handrail.runtime.question import ask as put_question
from handrail.runtime.question import require_answer
from handrail.runtime.recovery import recover
from handrail.runtime.session import Flight, Session
from handrail.runtime.waiting_trials import drop_trial, forget_trial, sealed_in, tried_on
from handrail.store.journal import Draft, NewCall
from handrail.store.requests import Stored, answer_to, stored_request, waiting_requests


def needs_answer(flight: Flight) -> bool:
    """Whether a person has to be asked about the call."""
    return flight.error is None and flight.decision.decision == "confirm"


def ask(session: Session, flights: list[Flight]) -> bool:
    """Puts the questions about a batch, in its order; whether there is one. Nothing of the batch has run yet."""
    asked = False
    for number, flight in enumerate(flights):
        if needs_answer(flight):
            take_steps(session, flight, (partial(put_question, earlier=flights[:number]),))
            asked |= needs_answer(flight)
            if flight.error is not None:
                forget_trial(session, flight)
    return asked


def park(session: Session, flights: list[Flight]) -> Parked:
    """Writes down the whole batch as waiting. Nothing of it has run."""
    from handrail.store.places import note_place  # noqa: PLC0415  only where somebody has to be asked

    batch_id = flights[0].batch_id
    session.workspace.let_go()
    requests: list[PermissionRequest] = []
    calls: list[NewCall] = []
    for flight in flights:
        requests += [
            fields["permission_request"] for kind, fields in flight.drafts if kind is ToolCallPermissionRequired
        ]
        drafts = (start_draft(flight), *flight.drafts)
        calls.append(NewCall(flight.call.tool_call_id, flight.decided, drafts))
    rows = tuple((request.id, request.tool_call_id, encode(request)) for request in requests)
    _keep_variables(session, requests)
    note_place(os.path.dirname(session.folder), session.workspace.main.path)  # before anybody can answer, too
    try:
        session.journal.park(batch_id, tuple(calls), rows)
    except Exception:  # an interrupt may come when they are parked already: whoever looks then sees to it
        for flight in flights:
            forget_trial(session, flight)
        raise
    session.journal.deliver()
    return Parked(batch_id=batch_id, requests=tuple(requests))


def _keep_variables(session: Session, requests: list[PermissionRequest]) -> None:
    """Before anybody can answer: who does it in another shell is to carry it out as it would have been here."""
    digests = {request.environment for request in requests if request.environment is not None}
    if digests:
        from handrail.store.environments import has_variables, keep_variables  # noqa: PLC0415  only where commands ask

        if all(has_variables(session.folder, digest) for digest in digests):
            return
        keep_variables(session.folder, session.commands.variables(session.workspace.roots))


def waiting(session: Session, batch_id: str | None = None) -> Parked:
    """What is open, of one batch or of the session: what needs a yes, and what the model asks."""
    from handrail.store.questions import waiting_questions  # noqa: PLC0415  only where something waits

    database = session.journal.database
    return Parked(
        batch_id=batch_id or "",
        requests=waiting_requests(database, batch_id),
        questions=waiting_questions(database, batch_id),
    )


def answer(session: Session, request_id: str, given: Answer) -> list[str] | Parked | None:
    """Writes an answer down; with the last one this process has taken over the calls of the batch, which these are.

    None when there was an answer already; but the same answer again takes over what a killed process left of it.
    """
    while True:
        asked = known_request(session, request_id)
        _check_answer(asked.request, given)
        calls = _write_answer(session, asked, given)
        if calls is not None:
            return calls or waiting(session, asked.request.batch_id)
        if asked.answered or known_request(session, request_id).answered:
            return _answered_before(session, asked.request, given)
        # Somebody tried it again just now: whether the answer is to that is looked up.


def known_request(session: Session, request_id: str) -> Stored:
    """A request of this session as it stands now."""
    found = stored_request(session.journal.database, request_id)
    if found is None:
        raise UsageError(f"this session has no permission request {request_id[:80]!r}")
    return found


def _check_answer(request: PermissionRequest, given: Answer) -> None:
    if given.kind not in request.answers:
        can = " or ".join(request.answers)
        raise UsageError(f"this request can be answered with {can}, not with {shown(given.kind)}")
    if given.kind != "deny" and (given.revision or 0) != request.revision:
        told = f"the request {request.id} was tried again since, and shows something else now"
        raise UsageError(f"{told}. Look at it, then answer what it shows: revision={request.revision}")


def _write_answer(session: Session, asked: Stored, given: Answer) -> list[str] | None:
    request = asked.request
    kind = ToolCallPermissionDenied if given.kind == "deny" else ToolCallPermissionGranted
    fields = {"tool_call_id": request.tool_call_id, "tool_call_name": request.called}
    if request.tool_call_name is not None:
        fields |= {"tool_name": request.tool_name, "server_name": request.server_name}
    event: Draft = (kind, {**fields, "permission_request": request, "answer": given})
    calls = session.journal.answer(request.id, request.batch_id, asked.data, encode(given), event)
    if calls is None:
        return None
    try:
        if given.kind == "deny" and (sealed := sealed_in(request)):
            drop_trial(session, sealed)
        _keep_grants(session, request, given)
        session.journal.deliver()
    except Exception:  # the answer counts: somebody has to be able to run what this process took over
        let_be(session, request.batch_id)
        raise
    return calls


def _answered_before(session: Session, request: PermissionRequest, given: Answer) -> list[str] | None:
    found = answer_to(session.journal.database, request.tool_call_id)
    if found is None or found[1].kind != given.kind:
        return None
    return take_up(session, request.batch_id) or None


def take_up(session: Session, batch_id: str) -> list[str]:
    """Takes over what a killed process left of a batch that everything is answered of; all its calls, or none."""
    from handrail.store.batches import claim_ready  # noqa: PLC0415  hardly ever needed

    recover(session)
    return claim_ready(session.journal.database, session.journal.runner, batch_id)


def let_be(session: Session, batch_id: str) -> None:
    """Gives up what this process took over and did not begin; whoever comes next can have it."""
    from handrail.store.batches import release_claims  # noqa: PLC0415  hardly ever needed

    with suppress(StoreError):
        release_claims(session.journal.database, session.journal.runner, batch_id)


def _keep_grants(session: Session, request: PermissionRequest, given: Answer) -> None:
    """Behind the answer: without a yes nothing is granted. A yes counts also where what it grants cannot be kept."""
    try:
        session.grants.keep(request, given)
    except StoreError as error:
        text = f"The answer counts for this call, but will be asked for again: {error}."
        session.journal.append((Notice, {"text": text, "code": "IO_ERROR"}))


def decide_again(session: Session, flights: list[Flight]) -> None:
    """Judges the calls of a resumed batch by what is now, and holds each to its answer."""
    for flight in flights:
        take_steps(session, flight, (_apply_answer,))  # by itself: what it opens is there from the next step on
        take_steps(session, flight, (*DECIDING, require_answer))
    session.workspace.let_go()


def _apply_answer(session: Session, flight: Flight) -> None:
    """Holds a call to its answer: a no is its result, whatever has changed since; a yes is for what was asked."""
    found = answer_to(session.journal.database, flight.call.tool_call_id)
    if found is None:
        return
    request, flight.answer = found
    flight.asked, flight.tried, flight.based_on = request, sealed_in(request), request.based_on
    flight.missing = set(tried_on(request))
    if flight.answer.kind == "deny":
        said = f': "{flight.answer.reason}"' if flight.answer.reason else ""
        raise ToolError("PERMISSION_DENIED", f"The person refused{said}. Nothing ran. Do not repeat this call.")
    with suppress(StoreError):  # once more: whoever wrote the answer down may have been killed then
        session.grants.keep(request, flight.answer)
    if request.kind == "external_directory":
        flight.roots = session.outside.open(flight.facts, flight.answer.kind)
        flight.held += [root.close for root in flight.roots]
