"""Gives calls their result without running them: whoever makes them has come to an end."""

import time

from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import ToolError
from handrail.runtime.session import PendingCall, Session


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
