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
from handrail.protocol.titles import describe_running_call

_MAX_OUTPUT_CHARS = 30_000
_STATUS = {
    "tool_call.start": "pending",
    "tool_call.running": "running",
    "tool_call.update": "running",
    "tool_call.end": "completed",
    "tool_call.error": "failed",
    "tool_call.permission-required": "awaiting-confirmation",
    "tool_call.permission-granted": "running",
    "tool_call.permission-denied": "failed",
    "tool_call.question-required": "awaiting-confirmation",
}


class OneThingEvents:
    """Remembers the message and the output of each call: only its first event names the one, and no event has all of
    the other."""

    def __init__(self) -> None:
        self._messages: dict[str, str | None] = {}
        self._outputs: dict[str, str] = {}

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """One message about a call, and none about other events."""
        if not isinstance(event, ToolEvent) or isinstance(event, ChangeEvent):
            return ()
        call_id, name = event.tool_call_id, event.tool_call_name
        if isinstance(event, ToolCallStart):
            self._messages[call_id] = event.message_id
        message_id = self._messages.get(call_id)
        title, more = self._render_news(event, message_id)
        if isinstance(event, ToolCallEnd | ToolCallError):
            self._messages.pop(call_id, None)
            self._outputs.pop(call_id, None)
        metadata = {"status": _STATUS[get_event_kind(event)], "tool": name, **more}
        updates = {"title": title, "metadata": metadata}
        payload = {"sessionId": event.session_id, "messageId": message_id, "stepId": call_id, "updates": updates}
        return ({"type": "STEP_UPDATED", "payload": payload},)

    def _render_news(self, event: ToolEvent, message_id: str | None) -> tuple[str, dict[str, Any]]:
        """The title and the new metadata."""
        call_id, name = event.tool_call_id, event.tool_call_name
        running = {"exitCode": -1} if name == "exec" else {}
        match event:
            case ToolCallStart():
                given: Any = event.args
                path = given.get("path") if isinstance(given, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                file = {"filePath": path} if isinstance(path, str) else {}
                return describe_running_call(name, given) or name, {"input": given, **file, **running}
            case ToolCallUpdate():
                output = (self._outputs.get(call_id, "") + (event.output or ""))[-_MAX_OUTPUT_CHARS:]
                self._outputs[call_id] = output
                return event.title or name, {"output": output, **running, **(event.metadata or {})}
            case ToolCallEnd() | ToolCallError():
                return event.result.title, _render_result(event.result)
            case PermissionEvent():
                request = _render_request(event, message_id)
                return request["title"], {"permission_request": request}
            case ToolCallQuestionRequired():
                asked = {"options": list(event.options), "multiple": event.multiple, "custom": event.custom}
                return event.question, asked
            case _:
                return name, running


def _render_request(event: PermissionEvent, message_id: str | None) -> dict[str, Any]:
    """The request in one-thing's terms: `external_directory`, `bash` or `edit`."""
    request = event.permission_request
    metadata: dict[str, Any] = {"handrail": to_builtins(request)}
    pattern = list(request.pattern)
    if request.kind == "external_directory":
        kind = "external_directory"
        path = request.paths[0] if request.paths else ""
        metadata |= {"filePath": path, "boundary": "workspace", "operation": request.access or "read"}
    elif request.command is not None:
        kind, pattern = "bash", [f"{' '.join(request.command.split()[:2])} *"]
        metadata |= {"command": request.command, "pattern": pattern[0]}
    else:
        kind, pattern = "edit", list(request.paths)
        path = request.paths[0] if request.paths else ""
        metadata |= {"filePath": path, "boundary": "workspace", "operation": request.tool_name}
    return {
        "id": request.id,
        "type": kind,
        "pattern": pattern,
        "sessionId": request.session_id,
        "messageId": message_id,
        "callId": request.tool_call_id,
        "title": request.description,
        "metadata": metadata,
        "createdAt": int(event.time.timestamp() * 1000),
    }


def _render_result(result: ToolResult[Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"output": result.content, "summary": result.summary, **to_builtins(result.meta)}
    return outcome | ({"error": to_builtins(result.error)} if result.error is not None else {})
