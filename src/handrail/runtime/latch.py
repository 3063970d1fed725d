"""The permission latch: questions of a batch are put together, kept until answered, and answered exactly once."""

import time

import msgspec

from handrail.protocol.batch import Parked
from handrail.protocol.call import ToolCall
from handrail.protocol.error import ToolError, UsageError
from handrail.protocol.event import (
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallPermissionRequired,
    ToolCallStart,
)
from handrail.protocol.permission import ANSWERS, Answer, AnswerKind, Basis, PermissionRequest, permission_type
from handrail.protocol.wire import encode
from handrail.runtime.closing import start_draft
from handrail.runtime.pipeline import DECIDING, take_steps
from handrail.runtime.session import Flight, Session
from handrail.runtime.steps import context_of, named
from handrail.store.database import Row
from handrail.store.identity import new_id
from handrail.store.journal import Draft

POSSIBLE: tuple[AnswerKind, ...] = ("once", "deny")
"""Grants for a session or a workspace, and output only, need more than this latch knows yet."""


def needs_answer(flight: Flight) -> bool:
    """Whether a person has to be asked about the call."""
    return flight.error is None and flight.decision.decision == "confirm"


def ask(session: Session, flight: Flight) -> None:
    """Words the question about a call, with what the call would change. A preview that fails is the call's failure."""
    if not needs_answer(flight):
        return
    tool, facts = flight.tool, flight.facts.paths
    preview = tool.preview(context_of(session, flight), flight.arguments) if tool.preview else None
    written = [fact for fact in facts if fact.access != "read"]
    request = PermissionRequest(
        id=new_id("ask"),
        tool_call_id=flight.call.tool_call_id,
        tool_name=tool.spec.name,
        server_name=tool.spec.server,
        permission_type=permission_type(tool.spec.permissions),
        description=f"{tool.spec.title} {', '.join(fact.path for fact in facts)}".strip(),
        rule=flight.decision.rule,
        reason=flight.decision.reason,
        permissions=tool.spec.permissions,
        answers=POSSIBLE,
        session_id=session.id,
        batch_id=flight.batch_id,
        paths=tuple(fact.path for fact in facts),
        preview=preview,
        based_on=tuple(Basis(path=fact.path, hash=session.workspace.hash_of(fact.path)) for fact in written),
    )
    flight.drafts.append((ToolCallPermissionRequired, {**named(flight), "permission_request": request}))


def park(session: Session, flights: list[Flight]) -> Parked:
    """Writes down the whole batch as waiting. Nothing of it has run."""
    batch_id = flights[0].batch_id
    session.workspace.let_go()
    requests: list[PermissionRequest] = []
    for flight in flights:
        requests += [
            fields["permission_request"] for kind, fields in flight.drafts if kind is ToolCallPermissionRequired
        ]
        facts, decision = encode(flight.facts), encode(flight.decision)
        drafts = (start_draft(flight), *flight.drafts)
        session.journal.record(flight.call.tool_call_id, batch_id, facts, decision, "parked", drafts)
    calls = " ".join(flight.call.tool_call_id for flight in flights)
    rows: list[tuple[str, Row]] = [("INSERT INTO batch VALUES (?, 'parked', ?)", (batch_id, calls))]
    for request in requests:
        row = (request.id, batch_id, request.tool_call_id, encode(request), None)
        rows.append(("INSERT INTO request VALUES (?, ?, ?, ?, ?)", row))
    session.journal.append(also=tuple(rows))
    return Parked(batch_id=batch_id, requests=tuple(requests))


def waiting(session: Session, batch_id: str | None = None) -> Parked:
    """The questions that are open: of one batch, or of the session."""
    rows = session.journal.database.rows(
        "SELECT data FROM request WHERE answer IS NULL AND coalesce(?, batch_id) = batch_id ORDER BY id", (batch_id,)
    )
    requests = tuple(msgspec.json.decode(row[0], type=PermissionRequest) for row in rows)
    return Parked(batch_id=batch_id or "", requests=requests)


def answer(session: Session, request_id: str, given: Answer) -> str:
    """Writes an answer down, the first one only; the batch it belongs to."""
    if given.kind not in POSSIBLE:
        known = f"; {given.kind!r} is not possible for this request" if given.kind in ANSWERS else ""
        raise UsageError(f"a request can be answered with {' or '.join(POSSIBLE)}{known}")
    database = session.journal.database
    row = database.row("SELECT data, answer FROM request WHERE id = ?", (request_id,))
    if row is None:
        raise UsageError(f"this session has no permission request {request_id[:80]!r}")
    request = msgspec.json.decode(row[0], type=PermissionRequest)
    kind = ToolCallPermissionDenied if given.kind == "deny" else ToolCallPermissionGranted
    fields = {"tool_call_id": request.tool_call_id, "tool_call_name": request.tool_name}
    event: Draft = (kind, {**fields, "permission_request": request, "answer": given})
    if not session.journal.answer(request_id, encode(given), event):
        raise UsageError(f"the permission request {request_id[:80]!r} was answered already")
    return request.batch_id


def resume(session: Session, batch_id: str) -> list[Flight] | None:
    """Takes over a batch whose questions are all answered; None when some are open or another runner has it."""
    calls = session.journal.claim(batch_id)
    if calls is None:
        return None
    flights = [_reload(session, batch_id, call_id) for call_id in calls]
    for flight in flights:
        take_steps(session, flight, (*DECIDING, _apply_answer))
    session.workspace.let_go()
    return flights


def _reload(session: Session, batch_id: str, call_id: str) -> Flight:
    entry = session.journal.entry(call_id)
    event = session.journal.event(entry.start_seq) if entry else None
    if not isinstance(event, ToolCallStart):
        raise UsageError(f"the call {call_id} cannot be read back")
    call = ToolCall(
        tool_call_id=call_id,
        name=event.tool_call_name,
        args=event.args,
        trace_id=event.trace_id,
        timestamp=event.time,
        version=event.version,
        provider_call_id=event.provider_call_id,
        message_id=event.message_id,
        requested_permissions=event.requested_permissions,
    )
    flight = Flight(call, time.perf_counter(), session.characters)
    flight.batch_id, flight.recorded = batch_id, "parked"
    return flight


def _apply_answer(session: Session, flight: Flight) -> None:
    """Holds a call to its answer: a no is its result, a yes counts for exactly what was shown."""
    if flight.decision.decision != "confirm":
        return
    row = session.journal.database.row(
        "SELECT data, answer FROM request WHERE call_id = ?", (flight.call.tool_call_id,)
    )
    if row is None or row[1] is None:
        raise _out_of_date("something about it")
    request = msgspec.json.decode(row[0], type=PermissionRequest)
    flight.answer = msgspec.json.decode(row[1], type=Answer)
    if flight.answer.kind == "deny":
        said = f': "{flight.answer.reason}"' if flight.answer.reason else ""
        raise ToolError("PERMISSION_DENIED", f"The person refused{said}. Nothing ran. Do not repeat this call.")
    for basis in request.based_on:
        if session.workspace.hash_of(basis.path) != basis.hash:
            raise _out_of_date(basis.path)


def _out_of_date(path: str) -> ToolError:
    return ToolError("CONFLICT", f"The preview was out of date: {path} changed. Nothing was kept. Call again.")
