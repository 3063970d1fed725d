"""Parks a call late: it was allowed and has run in its layer, and what it changed there asks.

Nothing of that is kept yet; it waits, sealed, for the answer. The calls of its batch that come after it wait with it,
and the results of those before it are returned when the batch is done. A command that was to run without a layer may
ask late too, and has not run then: what was there before could not be kept.
"""

import os
from collections.abc import Sequence

from handrail.protocol.batch import Parked
from handrail.protocol.event import ToolCallPermissionRequired
from handrail.protocol.permission import PermissionRequest
from handrail.protocol.wire import encode
from handrail.runtime.basis import basis_of
from handrail.runtime.closing import named, start_draft
from handrail.runtime.question import worded
from handrail.runtime.session import Flight, Session
from handrail.runtime.waiting_trials import forget_trial, sealed_of
from handrail.store.environments import keep_variables
from handrail.store.journal import NewCall
from handrail.store.places import note_place
from handrail.tools.contract import AsksError


def park_late(session: Session, flight: Flight, batch: Sequence[Flight], asks: AsksError) -> Parked:
    """Writes the call down as waiting, in one step with all that waits with it. `batch`: the calls that it was brought
    in with, in their order."""
    flight.judged = asks.decision
    flight.tried = sealed_of(asks.preview)
    based_on = basis_of(session, flight) if flight.tried is None else ()
    request = worded(session, flight, asks.preview, based_on)
    try:
        _write_down(session, flight, batch, request)
    except Exception:  # an interrupt may come when it is parked already: whoever looks then sees to it
        forget_trial(session, flight)
        raise
    finally:
        _let_go(session, batch)
    session.journal.deliver()
    return Parked(batch_id=flight.batch_id, requests=(request,))


def _write_down(session: Session, flight: Flight, batch: Sequence[Flight], request: PermissionRequest) -> None:
    asked = (ToolCallPermissionRequired, {**named(flight), "permission_request": request})
    begun = NewCall(flight.call.tool_call_id, flight.decided, (*flight.drafts, asked))
    later = tuple(_new_call(other) for other in batch if other.recorded is None)
    calls = tuple(other.call.tool_call_id for other in batch)
    # Before anybody can answer: who does it in another shell is to carry it out as it would have been here.
    note_place(os.path.dirname(session.folder), session.workspace.main.path)
    keep_variables(session.folder, session.commands.variables(session.workspace.roots))
    row = (request.id, request.tool_call_id, encode(request))
    session.journal.park_late(flight.batch_id, begun, later, calls, row)
    for other in batch:
        if other.recorded != "finished":
            other.recorded = "parked"
            other.drafts.clear()


def _new_call(flight: Flight) -> NewCall:
    return NewCall(flight.call.tool_call_id, flight.decided, (start_draft(flight), *flight.drafts))


def _let_go(session: Session, batch: Sequence[Flight]) -> None:
    """What was opened to the calls after it, for when they run, is opened again then."""
    session.workspace.let_go()
    for flight in batch:
        for release in reversed(flight.held):
            release()
