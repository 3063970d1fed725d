"""Loads and refuses calls."""

import time
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import ToolError
from handrail.protocol.events import ToolCallStart
from handrail.runtime.registry import ToolSet
from handrail.runtime.session import Approval, PendingCall, Session
from handrail.store.inbox import find_answer, find_last_request
from handrail.store.journal import CallEntry, SessionJournal

# § [runtime.reloading] Makes a call that the journal knows ready to go on.


def load_call(journal: SessionJournal, offer: ToolSet, entry: CallEntry, budget: int) -> PendingCall:
    """The call as it was when it was written down. One that cannot be read has failed with that."""
    event = journal.event(entry.start_seq)
    if isinstance(event, ToolCallStart):
        call, broken = _call_of(event), False
    else:
        now = datetime.now(UTC)
        call = ToolCall(tool_call_id=entry.id, name="unknown", args=None, trace_id=entry.id, timestamp=now)
        broken = True
    request = find_last_request(journal.database, entry.id)
    if request is not None and request.edited and request.command is not None:
        call = replace_command(call, request.command)
    pending = PendingCall(call, time.perf_counter(), budget)
    pending.approval = Approval(request) if request is not None else None
    pending.batch_id, pending.journal_state = entry.batch_id, entry.state
    pending.tool = (
        offer.get_registered(call.name) or pending.tool
    )  # whether it is still offered is asked before it runs
    pending.facts, pending.decision, pending.outcome_decision = entry.facts, entry.decision, entry.judged
    if broken:
        pending.fail(ToolError("INTERNAL", "The journal's record of this call cannot be read. Nothing more was run."))
    return pending


def replace_command(call: ToolCall, command: str) -> ToolCall:
    """The call with another command."""
    args: Any = call.args
    return replace(call, args={**args, "command": command} if isinstance(args, dict) else args)


def _call_of(event: ToolCallStart) -> ToolCall:
    return ToolCall(
        tool_call_id=event.tool_call_id,
        name=event.tool_call_name,
        args=event.args,
        trace_id=event.trace_id,
        timestamp=event.time,
        version=event.version,
        provider_call_id=event.provider_call_id,
        message_id=event.message_id,
        requested_permissions=event.requested_permissions,
    )


# § [runtime.refusing] Gives calls their result without running them: whoever makes them has come to an end.


def build_refused_calls(session: Session, calls: tuple[ToolCall, ...], error: ToolError) -> list[PendingCall]:
    """Flights that fail with this error, each written down and audited like any other call."""
    batch: list[PendingCall] = []
    for call in calls:
        pending = PendingCall(call, time.perf_counter(), session.characters)
        pending.batch_id = calls[0].tool_call_id
        pending.tool = session.offer.get(call.name) or pending.tool
        pending.fail(error)
        batch.append(pending)
    return batch


def load_answer(session: Session, pending: PendingCall) -> None:
    """Loads the answer to the last request about a call, if there is one."""
    found = find_answer(session.journal.database, pending.call.tool_call_id)
    if found is not None:
        request, answer = found
        pending.approval = Approval(request, answer, request.bound_files, frozenset(request.base_previews))


def forget_preview(session: Session, pending: PendingCall) -> None:
    """The last step: deletes the stored preview, because the call has its result."""
    if pending.request is not None:
        drop_preview(session, pending.request.preview_id)


def drop_preview(session: Session, preview_id: str | None) -> None:
    """Deletes a stored preview, if there is one. Can be repeated."""
    if preview_id is not None:
        from handrail.changes.overlay.previews import delete_preview  # noqa: PLC0415  few commands have a preview

        delete_preview(session.recorder.history, preview_id)
