"""Where the time of a turn went, as far as its events tell.

A phase without a recorded time is left out. The rest of a turn is handrail's own work.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

from handrail.protocol.events import (
    AnyEvent,
    BrokenEvent,
    End,
    Error,
    PermissionEvent,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallPermissionRequired,
    ToolCallQuestionRequired,
    ToolCallRunning,
    ToolCallStart,
    Usage,
    User,
)
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.wire import to_dict
from handrail.server.context import Request
from handrail.server.wire import Phase, Trace, Traces, TraceSpan

_WAITING = frozenset({"parked", "question"})
"""Ends of a turn that goes on once a person answered."""
_GOING_ON = (ToolCallPermissionGranted, ToolCallPermissionDenied, ToolCallEnd, Usage)


def get_trace(request: Request) -> Traces:
    with request.server.tasks.open_journal(request.params["task"]) as journal:
        return Traces(traces=build_traces(journal.events()))


def build_traces(events: Iterable[AnyEvent | BrokenEvent]) -> tuple[Trace, ...]:
    """The turns of a session in order. A prompt that steers a running turn is a part of this turn."""
    turns: list[_Turn] = []
    for event in events:
        if isinstance(event, BrokenEvent):
            continue
        if isinstance(event, User) and (not turns or turns[-1].state != "running"):
            turns.append(_Turn(event))
        elif turns and turns[-1].state != "ended":
            turns[-1].add(event)
    return tuple(turn.build() for turn in turns)


class _Turn:
    """A turn while its events are read."""

    def __init__(self, prompt: User) -> None:
        self.state: Literal["running", "waiting", "ended"] = "running"
        self._prompt, self._last = prompt, prompt.time
        self._free = prompt.time
        """When the model could begin: at the prompt, or after the last result."""
        self._replied = prompt.time
        """When the policy could begin: at the model's reply, or after the call before."""
        self._asked: dict[str, datetime] = {}
        self._answered: dict[str, datetime] = {}
        self._running: dict[str, datetime] = {}
        self._previews: set[str] = set()
        self._spans: list[TraceSpan] = []

    def add(self, event: AnyEvent) -> None:
        if isinstance(event, _GOING_ON):
            self.state = "running"
        self._last = event.time
        match event:
            case Usage():
                self._add("model", event.model, self._free, event.time)
                self._free = self._replied = event.time
            case ToolCallStart(policy_ms=float(taken)):
                self._add_decision(event, timedelta(milliseconds=taken))
            case PermissionEvent():
                self._add_permission(event)
            case ToolCallQuestionRequired():
                self._asked[event.tool_call_id] = event.time
            case ToolCallRunning(tool_call_id=call):
                self._running[call] = event.time
                if call in self._answered:
                    self._add("queue", event.tool_call_name, self._answered[call], event.time, call)
            case ToolCallEnd() | ToolCallError():
                self._add_result(event)
            case End() | Error():
                self.state = "waiting" if isinstance(event, End) and event.reason in _WAITING else "ended"
            case _:
                pass

    def build(self) -> Trace:
        spans = sorted(self._spans, key=lambda span: span.start_ms)
        duration = _measure(self._prompt.time, self._last)
        return Trace(turn=self._prompt.seq, prompt=self._prompt.text, duration_ms=duration, spans=tuple(spans))

    def _add_decision(self, event: ToolCallStart, taken: timedelta) -> None:
        """All calls of a reply are decided first, one after the other. The event comes later."""
        start = min(self._replied, event.time - taken)
        self._replied = start + taken
        self._add("policy", event.label, start, self._replied, event.tool_call_id)

    def _add_permission(
        self, event: ToolCallPermissionRequired | ToolCallPermissionGranted | ToolCallPermissionDenied
    ) -> None:
        if isinstance(event, ToolCallPermissionRequired):
            self._asked[event.tool_call_id] = event.time
        else:
            self._add_answer(event)
        self._add_preview(event.permission_request)

    def _add_preview(self, request: PermissionRequest) -> None:
        """The run of the command in an overlay. Its time is that of its start, by the clock of the file system."""
        preview = request.preview
        if preview is None or preview.tried is None or preview.time is None or preview.tried.sealed in self._previews:
            return
        self._previews.add(preview.tried.sealed)
        start = max(preview.time, self._replied)
        end = start + timedelta(milliseconds=preview.tried.duration_ms)
        self._add("sandbox", "preview", start, end, request.tool_call_id)

    def _add_answer(self, event: ToolCallPermissionGranted | ToolCallPermissionDenied) -> None:
        call = event.tool_call_id
        asked = self._asked.pop(call, None)
        if asked is not None and event.answer.by is None:
            self._add("person", event.answer.kind, asked, event.time, call)
        if isinstance(event, ToolCallPermissionGranted):
            self._answered[call] = event.time

    def _add_result(self, event: ToolCallEnd | ToolCallError) -> None:
        call, result = event.tool_call_id, event.result
        if (asked := self._asked.pop(call, None)) is not None:
            self._add("person", "reply", asked, event.time, call)
        self._add("tool", result.name, event.time - timedelta(milliseconds=result.duration_ms), event.time, call)
        ran, started = to_dict(result.data).get("durationMs"), self._running.get(call)
        if isinstance(ran, int | float) and started is not None and call not in self._answered:
            # An approved command ran in its preview, which has a span of its own.
            self._add("sandbox", "command", started, started + timedelta(milliseconds=ran), call)
        self._free = event.time

    def _add(self, phase: Phase, name: str, start: datetime, end: datetime, call: str | None = None) -> None:
        start_ms, duration = _measure(self._prompt.time, start), _measure(start, end)
        self._spans.append(
            TraceSpan(phase=phase, name=name, start_ms=start_ms, duration_ms=duration, tool_call_id=call)
        )


def _measure(start: datetime, end: datetime) -> float:
    """Milliseconds."""
    return max(0.0, round((end - start).total_seconds() * 1000, 3))
