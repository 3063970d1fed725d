"""The calls of a session as the journal has them: what came in, how it was answered, what came of it."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

import msgspec

from handrail.agent.replay.observing import FileObservations, collect_observations
from handrail.protocol.calls import ToolCall
from handrail.protocol.decisions import Facts, Mode
from handrail.protocol.events import ToolCallPermissionDenied, ToolCallPermissionGranted
from handrail.protocol.permissions import Answer
from handrail.protocol.results import ToolResult
from handrail.store.journal import BrokenEvent, PastCall
from handrail.store.sessions import list_past_calls, open_journal


class RecordedCall(msgspec.Struct, frozen=True):
    """One call."""

    call: ToolCall
    batch_id: str
    mode: Mode | None
    answer: Answer | None
    result: ToolResult[Any] | None
    """None where it has none that can be read."""
    facts: Facts = Facts()
    """What it was decided on."""

    @property
    def args(self) -> dict[str, Any]:
        """The arguments, where they are named ones."""
        given = self.call.args
        return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


class Recording(msgspec.Struct, frozen=True):
    """All calls of a session."""

    calls: tuple[RecordedCall, ...]
    observed: FileObservations
    unreadable: int = 0

    def batches(self) -> Iterator[tuple[RecordedCall, ...]]:
        """The calls that came in one message, in their order."""
        for _, calls in groupby(self.calls, lambda one: one.batch_id):
            yield tuple(calls)


def read_recording(folder: str) -> Recording:
    """Reads the journal in the folder of a session."""
    results: dict[str, ToolResult[Any]] = {}
    answers: dict[str, Answer] = {}
    with open_journal(folder) as journal:
        results |= {call_id: result for call_id, result in journal.finished() if result is not None}
        seen = collect_observations(journal.events())
        for event in journal.events():
            if isinstance(event, ToolCallPermissionGranted | ToolCallPermissionDenied):
                answers[event.tool_call_id] = event.answer
    found = list(list_past_calls(folder))
    calls = [_recorded(one, results, answers) for one in found if isinstance(one, PastCall)]
    return Recording(tuple(calls), seen, sum(isinstance(one, BrokenEvent) for one in found))


def _recorded(past: PastCall, results: dict[str, ToolResult[Any]], answers: dict[str, Answer]) -> RecordedCall:
    start = past.start
    call = ToolCall(
        tool_call_id=start.tool_call_id,
        name=start.tool_call_name,
        args=start.args,
        trace_id=start.trace_id,
        timestamp=start.time,
        version=start.version,
        provider_call_id=start.provider_call_id,
        message_id=start.message_id,
        requested_permissions=start.requested_permissions,
    )
    call_id = call.tool_call_id
    decided, answer = past.decided, answers.get(call_id)
    return RecordedCall(call, decided.batch_id, decided.mode, answer, results.get(call_id), decided.facts)
