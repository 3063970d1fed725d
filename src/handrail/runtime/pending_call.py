"""Loads and refuses calls."""

import time
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import ToolError
from handrail.protocol.events import ToolCallStart
from handrail.protocol.permissions import PermissionRequest, Preview
from handrail.runtime.registry import ToolSet
from handrail.runtime.session import PendingCall, Session
from handrail.store.inbox import find_last_request
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
    asked = find_last_request(journal.database, entry.id)
    if asked is not None and asked.edited and asked.command is not None:
        call = replace_command(call, asked.command)  # what a person made of it is what runs
    pending = PendingCall(call, time.perf_counter(), budget)
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


# § [runtime.waiting_trials] Stored previews of the requests that wait: which those are, and how they are deleted.


def find_preview_id(request: PermissionRequest) -> str | None:
    """The stored preview of a request, if it has one."""
    return get_preview_id(request.preview)


def get_preview_id(preview: Preview | None) -> str | None:
    """The same of what is shown."""
    return preview.tried.sealed if preview is not None and preview.tried is not None else None


def list_base_previews(request: PermissionRequest) -> tuple[str, ...]:
    """The previews below the one of a request."""
    preview = request.preview
    return preview.tried.on if preview is not None and preview.tried is not None else ()


def forget_preview(session: Session, pending: PendingCall) -> None:
    """A step behind the last: the call has its result, so nobody can say yes to its preview any more."""
    if pending.preview_id is not None:
        drop_preview(session, pending.preview_id)
        pending.preview_id = None


def drop_preview(session: Session, sealed: str) -> None:
    """Deletes a stored preview; what cannot be removed now is left to the sweep."""
    from handrail.changes.overlay.previews import delete_preview  # noqa: PLC0415  few commands are tried

    delete_preview(session.recorder.history, sealed)
