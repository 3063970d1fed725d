"""Renders events as the stream of DeepChat."""

from typing import Any, cast

from msgspec import to_builtins

from handrail.dialects.render import list_extras
from handrail.protocol.events import (
    ChangeEvent,
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
    User,
    get_event_kind,
)
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import OWN_SERVER
from handrail.protocol.wire import encode

NAMES = {"response": "STREAM_EVENTS.RESPONSE", "error": "STREAM_EVENTS.ERROR", "end": "STREAM_EVENTS.END"}

_STATES = {"permission-granted": "running", "permission-denied": "error"}
"""DeepChat has seven states of a call. An answer is the state that it leads to."""
_PERMISSION_TYPES = {"read": "read", "write": "write", "command": "command"}


class DeepChatEvents:
    """Keeps one `eventId` for a whole turn, since DeepChat finds the growing answer by it.

    DeepChat also expects the sum of tokens, and the arguments of a call in each of its messages."""

    def __init__(self, _workspace: str = "") -> None:
        self._turn: str | None = None
        self._input = 0
        self._output = 0
        self._params: dict[str, str] = {}
        """Arguments of calls without a result."""

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """One message, two if a limit ended the turn, or none for an event that DeepChat lacks."""
        if isinstance(event, User):
            self._turn = event.message_id
        head = {"eventId": self._turn or event.session_id, "conversationId": event.session_id, "seq": event.seq}
        data = self._render_data(event)
        messages = [(event.channel, data)] if data is not None else []
        if isinstance(event, End) and event.reason == "limit":
            messages.insert(0, ("response", {"maximum_tool_calls_reached": True}))
        return tuple({"event": NAMES[channel], "data": head | data} for channel, data in messages)

    def _render_data(self, event: Event) -> dict[str, Any] | None:  # noqa: PLR0911  one a kind
        match event:
            case Text():
                return {"messageId": event.message_id, "content": event.text}
            case Reasoning():
                return {"messageId": event.message_id, "reasoning_content": event.text}
            case Display():
                return {"content": event.content, "display": {"level": event.level, "title": event.title}}
            case Usage():
                return {"totalUsage": self._add_usage(event)}
            case Error():
                return {"error": event.message, "code": event.code, "retryable": event.retryable}
            case End():
                return {"reason": event.reason, "userStop": event.reason == "cancelled"}
            case ToolEvent():
                return self._render_call(event)
            case _:
                return None

    def _render_call(self, event: ToolEvent) -> dict[str, Any] | None:
        if isinstance(event, ChangeEvent):
            return None
        call_id, kind = event.tool_call_id, get_event_kind(event).removeprefix("tool_call.")
        if isinstance(event, ToolCallStart):
            self._params[call_id] = encode(event.args).decode()
        is_over = isinstance(event, ToolCallEnd | ToolCallError)
        params = self._params.pop(call_id, "") if is_over else self._params.get(call_id, "")
        head = {
            "tool_call": _STATES.get(kind, kind),
            "tool_call_id": call_id,
            "tool_call_name": event.tool_name or event.tool_call_name,
            "tool_call_params": params,
            "tool_call_server_name": event.server_name or OWN_SERVER,
        }
        denied = {"tool_call_response": "User denied the request."} if kind == "permission-denied" else {}
        return head | _render_news(event) | denied

    def _add_usage(self, event: Usage) -> dict[str, int]:
        self._input += event.input_tokens
        self._output += event.output_tokens
        return {
            "prompt_tokens": self._input,
            "completion_tokens": self._output,
            "total_tokens": self._input + self._output,
        }


def _render_news(event: ToolEvent) -> dict[str, Any]:
    match event:
        case ToolCallUpdate():
            return {"tool_call_response": event.output or "", "title": event.title, "metadata": event.metadata}
        case ToolCallEnd() | ToolCallError():
            return _render_result(event.result)
        case ToolCallQuestionRequired():
            names = ("question", "options", "multiple", "custom")
            return {"question_request": {name: to_builtins(getattr(event, name)) for name in names}}
        case PermissionEvent():
            return {"permission_request": _render_request(event.permission_request)}
        case _:
            return {}


def _render_request(request: PermissionRequest) -> dict[str, Any]:
    told: dict[str, Any] = to_builtins(request)
    return {**told, "requestId": request.id, "permissionType": _PERMISSION_TYPES.get(request.permission_type, "all")}


def _render_result(result: ToolResult[Any]) -> dict[str, Any]:
    return {"tool_call_response": result.content, "tool_call_response_raw": {"toolResult": build_tool_result(result)}}


def build_tool_result(result: ToolResult[Any]) -> dict[str, Any]:
    """The result as DeepChat stores it, also in answers of the dialect."""
    error, meta, told = result.error, list_extras(result), dict[str, Any](ok=result.error is None)
    data: Any = to_builtins(result.data)
    if error is not None:
        message = "User denied the request." if error.code == "PERMISSION_DENIED" else error.message
        told["error"] = {"code": error.code, "message": message, "recoverable": error.retryable}
    else:
        told["summary"] = result.summary
        known = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        process = known.get("process")
        process_id = cast("Any", process).get("id") if isinstance(process, dict) else known.get("sessionId")
        meta |= {} if process_id is None else {"sessionId": process_id}
        if result.artifacts.files_changed:
            meta["affectedPaths"] = list(result.artifacts.files_changed)
    if error is None or data is not None:
        told["data"] = data
    return told | {"meta": meta}
