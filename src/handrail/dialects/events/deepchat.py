"""DeepChat's stream: RESPONSE, ERROR and END, with the state of a call in the field `tool_call`."""

from typing import Any

from msgspec import to_builtins

from handrail.protocol.event import (
    Display,
    End,
    Error,
    Event,
    PermissionEvent,
    Reasoning,
    Text,
    ToolCallEnd,
    ToolCallError,
    ToolCallQuestionRequired,
    ToolCallStart,
    ToolCallUpdate,
    ToolEvent,
    Usage,
    kind_of,
)
from handrail.protocol.permission import PermissionRequest
from handrail.protocol.result import ToolResult
from handrail.protocol.wire import encode

NAMES = {
    "response": "STREAM_EVENTS.RESPONSE",
    "error": "STREAM_EVENTS.ERROR",
    "end": "STREAM_EVENTS.END",
}


class DeepChatEvents:
    """Sums up the tokens of a session, as its views expect them."""

    def __init__(self) -> None:
        self._input = 0
        self._output = 0

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """One message, or none for what the system has no words for."""
        told = self._told(event)
        if told is None:
            return ()
        head = {"eventId": event.event_id, "conversationId": event.session_id, "seq": event.seq}
        return ({"event": NAMES[event.channel], "data": head | told},)

    def _told(self, event: Event) -> dict[str, Any] | None:  # noqa: PLR0911  one a kind
        match event:
            case Text():
                return {"messageId": event.message_id, "content": event.text}
            case Reasoning():
                return {"messageId": event.message_id, "reasoning_content": event.text}
            case Display():
                return {"content": event.content, "display": {"level": event.level, "title": event.title}}
            case Usage():
                return {"totalUsage": self._summed_up(event)}
            case Error():
                return {"error": event.message, "code": event.code, "retryable": event.retryable}
            case End():
                limit = event.reason == "limit"
                stop = {"userStop": event.reason == "cancelled", "maximum_tool_calls_reached": limit}
                return {"reason": event.reason, **stop}
            case ToolEvent():
                return _of_call(event)
            case _:
                return None

    def _summed_up(self, event: Usage) -> dict[str, int]:
        self._input += event.input_tokens
        self._output += event.output_tokens
        return {
            "prompt_tokens": self._input,
            "completion_tokens": self._output,
            "total_tokens": self._input + self._output,
        }


def _of_call(event: ToolEvent) -> dict[str, Any] | None:  # noqa: PLR0911  one a kind
    state = kind_of(event).removeprefix("tool_call.")
    if state == "change":
        return None
    head = {"tool_call": state, "tool_call_id": event.tool_call_id, "tool_call_name": event.tool_call_name}
    match event:
        case ToolCallStart():
            return head | {"tool_call_params": encode(event.args).decode()}
        case ToolCallUpdate():
            return head | {"tool_call_response": event.output or "", "title": event.title, "metadata": event.metadata}
        case ToolCallEnd() | ToolCallError():
            return head | _response(event.result)
        case ToolCallQuestionRequired():
            return head | {"question_request": _question(event)}
        case PermissionEvent():
            return head | {"permission_request": _request(event.permission_request)}
        case _:
            return head


def _response(result: ToolResult[Any]) -> dict[str, Any]:
    said = {
        "ok": result.ok,
        "summary": result.summary,
        "data": to_builtins(result.data),
        "meta": to_builtins(result.meta),
    }
    if result.error is not None:
        said["error"] = to_builtins(result.error)
    return {"tool_call_response": result.content, "tool_call_response_raw": {"toolResult": said}}


def _question(event: ToolCallQuestionRequired) -> dict[str, Any]:
    return {
        "question": event.question,
        "options": list(event.options),
        "multiple": event.multiple,
        "custom": event.custom,
    }


def _request(request: PermissionRequest) -> dict[str, Any]:
    """All of it: what resumes the call is in it."""
    return to_builtins(request)
