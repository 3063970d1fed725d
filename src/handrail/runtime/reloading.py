"""Makes a call that the journal knows ready to go on."""

import time
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import ToolError
from handrail.protocol.events import ToolCallStart
from handrail.runtime.registry import ToolSet
from handrail.runtime.session import PendingCall
from handrail.store.inbox import find_last_request
from handrail.store.journal import CallEntry, SessionJournal


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
