"""Tries a command again that waits for an answer: as it is, or as a person changed it.

The question stays the same one, under its id; what it shows is replaced, in one step, as long as nobody has answered.
"""

from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from handrail.protocol.error import StoreError, ToolError, UsageError
from handrail.protocol.event import ToolCallPermissionRequired, ToolCallStart
from handrail.protocol.permission import PermissionRequest
from handrail.protocol.wire import encode
from handrail.runtime.closing import named
from handrail.runtime.latch import known_request
from handrail.runtime.outdating import is_fresh
from handrail.runtime.pipeline import DECIDING, take_steps
from handrail.runtime.question import question_about
from handrail.runtime.reloading import reloaded, with_command
from handrail.runtime.session import Flight, Session
from handrail.runtime.steps import environment_of
from handrail.runtime.waiting_trials import drop_trial, forget_trial, sealed_in
from handrail.store.journal import NewCall
from handrail.store.requests import Stored, calls_of_batch, request_about, requests_of_batch


def retry(session: Session, request_id: str, command: str | None) -> PermissionRequest:
    """Tries it anew and puts what came of that in the place of the question. ToolError where policy refuses the command
    as it was changed: then the question stays as it was."""
    asked = known_request(session, request_id)
    if not asked.answered and asked.request.command is None:
        raise UsageError(f"the permission request {request_id!r} is about no command, so there is nothing to try")
    return _ask_again(session, asked, command, same=True)


def refresh(session: Session, request_id: str) -> PermissionRequest:
    """The request if its preview is fresh, else one with a new preview and a new id: whoever saw the old preview has
    not said yes to the new one. ToolError if there can be none now: then the request stays as it was."""
    asked = known_request(session, request_id)
    if not asked.answered and is_fresh(session, asked.request):
        return asked.request
    return _ask_again(session, asked, None, same=False)


def _ask_again(session: Session, asked: Stored, command: str | None, *, same: bool) -> PermissionRequest:
    """Puts the question anew, in the place of the one that waits. The call can be cancelled meanwhile. `same`: whether
    it keeps its id."""
    request_id, here = asked.request.id, (asked.request.tool_call_id,)
    if asked.answered:
        raise UsageError(f"the permission request {request_id!r} was answered already")
    flight = _flight(session, asked.request, command)
    session.cancelling.begin(here)
    try:
        anew = _asked_anew(session, flight, asked.request)
        if same:
            anew = replace(anew, id=request_id, revision=asked.request.revision + 1)
        drafts = ((ToolCallPermissionRequired, {**named(flight), "permission_request": anew}),)
        call = NewCall(flight.call.tool_call_id, flight.decided, drafts)
        if not session.journal.renew(request_id, asked.data, (anew.id, encode(anew)), call):
            raise UsageError(_too_late(session, request_id))
    except Exception:
        forget_trial(session, flight)
        raise
    except BaseException:
        _forget_unless_put(session, flight)
        raise
    finally:
        session.cancelling.end(here)
        session.workspace.let_go()
    if old := sealed_in(asked.request):
        drop_trial(session, old)
    session.journal.deliver()
    return anew


def _forget_unless_put(session: Session, flight: Flight) -> None:
    """An interrupt may come when the question shows the new trial already."""
    with suppress(StoreError):
        asked = request_about(session.journal.database, flight.call.tool_call_id)
        if asked is None or sealed_in(asked) != flight.tried:
            forget_trial(session, flight)


def _flight(session: Session, request: PermissionRequest, command: str | None) -> Flight:
    """The call, judged afresh. One that nobody would have to be asked about still waits: somebody is at it."""
    entry = session.journal.entry(request.tool_call_id)
    if entry is None:
        raise UsageError(f"the call of the permission request {request.id!r} is not in this session")
    flight = reloaded(session.journal, session.offer, entry, session.characters)
    if command is not None:
        flight.give_args(with_command(flight.call, command))
    if request.environment is not None and environment_of(session) != request.environment:
        message = "The command would get other environment variables here and now than when the person was asked."
        raise ToolError("CONFLICT", f"{message} Nothing was tried. Try again where it was asked.")
    take_steps(session, flight, DECIDING)
    _raise_error(flight)
    return flight


def _asked_anew(session: Session, flight: Flight, request: PermissionRequest) -> PermissionRequest:
    found: list[PermissionRequest] = []

    def put(session: Session, flight: Flight) -> None:
        found.append(question_about(session, flight, _earlier(session, request)))

    take_steps(session, flight, (put,))
    _raise_error(flight)
    edited = found[0].command != _called(session, request)
    return replace(found[0], edited=edited)


def _earlier(session: Session, request: PermissionRequest) -> list[Flight]:
    """The calls before it in its batch that have no result yet, as they were judged and answered so far."""
    database = session.journal.database
    calls = calls_of_batch(database, request.batch_id)
    found = {asked.tool_call_id: (asked, said) for asked, said in requests_of_batch(database, request.batch_id)}
    earlier: list[Flight] = []
    for call_id in calls[: calls.index(request.tool_call_id)] if request.tool_call_id in calls else []:
        entry = session.journal.entry(call_id)
        if entry is None or entry.state == "finished":
            continue
        flight = reloaded(session.journal, session.offer, entry, session.characters)
        flight.asked, flight.answer = found.get(call_id, (None, None))
        flight.tried = None if flight.asked is None else sealed_in(flight.asked)
        earlier.append(flight)
    return earlier


def _called(session: Session, request: PermissionRequest) -> Any:
    """The command as the model called it."""
    entry = session.journal.entry(request.tool_call_id)
    event = session.journal.event(entry.start_seq) if entry is not None else None
    args: Any = event.args if isinstance(event, ToolCallStart) else {}
    return args.get("command")


def _raise_error(flight: Flight) -> None:
    if flight.error is not None:
        raise ToolError(flight.error.code, flight.error.message, details=flight.error.details)


def _too_late(session: Session, request_id: str) -> str:
    if known_request(session, request_id).answered:
        return f"the permission request {request_id!r} was answered meanwhile; what was tried now is dropped"
    return f"somebody else tried the permission request {request_id!r} again meanwhile; look at what it shows now"
