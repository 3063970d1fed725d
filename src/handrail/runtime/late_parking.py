"""Parks a call late: it was allowed and has run in its overlay, and what it changed there asks.

Nothing of that is committed yet; it waits, sealed, for the answer. The calls of its batch that come after it wait with
it, and the results of those before it are returned when the batch is done. A command that was to run without an overlay
may ask late too, and has not run then: no snapshot could be taken.
"""

import os
from collections.abc import Sequence

from handrail.protocol.calls import Parked
from handrail.protocol.events import ToolCallPermissionRequired
from handrail.protocol.permissions import PermissionRequest
from handrail.runtime.basis import bind_files
from handrail.runtime.closing import build_event_fields, build_start_event
from handrail.runtime.question import build_request
from handrail.runtime.session import PendingCall, Session
from handrail.runtime.waiting_trials import forget_preview, get_preview_id
from handrail.store.approvals import NewCall, save_parked_call
from handrail.store.grants import save_variables
from handrail.store.state_dir import save_workspace_path
from handrail.tools.contract import ApprovalNeededError


def park_after_run(
    session: Session, pending: PendingCall, batch: Sequence[PendingCall], asks: ApprovalNeededError
) -> Parked:
    """Writes the call down as waiting, in one step with all that waits with it. `batch`: the calls that it was brought
    in with, in their order."""
    pending.outcome_decision = asks.decision
    pending.preview_id = get_preview_id(asks.preview)
    based_on = bind_files(session, pending) if pending.preview_id is None else ()
    request = build_request(session, pending, asks.preview, based_on)
    try:
        _write_down(session, pending, batch, request)
    except Exception:  # an interrupt may come when it is parked already: whoever looks then sees to it
        forget_preview(session, pending)
        raise
    finally:
        _let_go(session, batch)
    session.journal.deliver()
    return Parked(batch_id=pending.batch_id, requests=(request,))


def _write_down(
    session: Session, pending: PendingCall, batch: Sequence[PendingCall], request: PermissionRequest
) -> None:
    asked = (ToolCallPermissionRequired, {**build_event_fields(pending), "permission_request": request})
    begun = NewCall(pending.call.tool_call_id, pending.call_context, (*pending.pending_events, asked))
    later = tuple(_new_call(other) for other in batch if other.journal_state is None)
    calls = tuple(other.call.tool_call_id for other in batch)
    # Before anybody can answer: who does it in another shell is to carry it out as it would have been here.
    save_workspace_path(os.path.dirname(session.folder), session.workspace.main.path)
    save_variables(session.folder, session.commands.variables(session.workspace.roots))
    save_parked_call(session.journal, begun, later, calls, request)
    for other in batch:
        if other.journal_state != "finished":
            other.journal_state = "parked"
            other.pending_events.clear()


def _new_call(pending: PendingCall) -> NewCall:
    return NewCall(
        pending.call.tool_call_id, pending.call_context, (build_start_event(pending), *pending.pending_events)
    )


def _let_go(session: Session, batch: Sequence[PendingCall]) -> None:
    """What was opened to the calls after it, for when they run, is opened again then."""
    session.workspace.drop_cached()
    for pending in batch:
        for release in reversed(pending.releases):
            release()
