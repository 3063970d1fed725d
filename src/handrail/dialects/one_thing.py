"""Renders events as the stream of one-thing: STEP_UPDATED for each change of a call."""

from typing import Any

from msgspec import to_builtins

from handrail.protocol.events import (
    ChangeEvent,
    Event,
    PermissionEvent,
    ToolCallEnd,
    ToolCallError,
    ToolCallQuestionRequired,
    ToolCallStart,
    ToolCallUpdate,
    ToolEvent,
    get_event_kind,
)
from handrail.protocol.results import ToolResult

_STATUS = {
    "tool_call.start": "pending",
    "tool_call.running": "running",
    "tool_call.update": "running",
    "tool_call.end": "completed",
    "tool_call.error": "failed",
    "tool_call.permission-required": "awaiting-permission",
    "tool_call.permission-granted": "running",
    "tool_call.permission-denied": "denied",
    "tool_call.question-required": "awaiting-answer",
}


class OneThingEvents:
    """Remembers the message of each call, because only its first event names it."""

    def __init__(self) -> None:
        self._messages: dict[str, str | None] = {}

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """One message about a call, and none about other events."""
        if not isinstance(event, ToolEvent) or isinstance(event, ChangeEvent):
            return ()
        if isinstance(event, ToolCallStart):
            self._messages[event.tool_call_id] = event.message_id
        message_id = self._messages.get(event.tool_call_id)
        if isinstance(event, ToolCallEnd | ToolCallError):
            self._messages.pop(event.tool_call_id, None)
        payload = {
            "sessionId": event.session_id,
            "messageId": message_id,
            "stepId": event.tool_call_id,
            "updates": _render_updates(event),
        }
        return ({"type": "STEP_UPDATED", "payload": payload},)


def _render_updates(event: ToolEvent) -> dict[str, Any]:
    title, more = _render_news(event)
    return {
        "title": title,
        "metadata": {"status": _STATUS[get_event_kind(event)], "tool": event.tool_call_name, **more},
    }


def _render_news(event: ToolEvent) -> tuple[str, dict[str, Any]]:
    """The title and the new metadata."""
    match event:
        case ToolCallStart():
            return event.tool_call_name, {"input": event.args}
        case ToolCallUpdate():
            return event.title or event.tool_call_name, {"output": event.output, **(event.metadata or {})}
        case ToolCallEnd() | ToolCallError():
            return event.result.title, _render_result(event.result)
        case PermissionEvent():
            request = event.permission_request
            return request.description, {"permission_request": to_builtins(request)}
        case ToolCallQuestionRequired():
            asked = {"options": list(event.options), "multiple": event.multiple, "custom": event.custom}
            return event.question, asked
        case _:
            return event.tool_call_name, {}


def _render_result(result: ToolResult[Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"output": result.content, "summary": result.summary, **to_builtins(result.meta)}
    return outcome | ({"error": to_builtins(result.error)} if result.error is not None else {})
