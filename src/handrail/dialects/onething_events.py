"""Renders events as the stream of one-thing: STEP_UPDATED for each change of a call."""

from typing import Any, cast

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
from handrail.protocol.text import to_one_line

_MAX_TITLE_CHARS = 100

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
        title, more = _render_news(event, message_id)
        payload = {
            "sessionId": event.session_id,
            "messageId": message_id,
            "stepId": event.tool_call_id,
            "updates": {
                "title": title,
                "metadata": {"status": _STATUS[get_event_kind(event)], "tool": event.tool_call_name, **more},
            },
        }
        return ({"type": "STEP_UPDATED", "payload": payload},)


def _render_news(event: ToolEvent, message_id: str | None) -> tuple[str, dict[str, Any]]:
    """The title and the new metadata."""
    match event:
        case ToolCallStart():
            return _announce(event)
        case ToolCallUpdate():
            return event.title or event.tool_call_name, {"output": event.output, **(event.metadata or {})}
        case ToolCallEnd() | ToolCallError():
            return event.result.title, _render_result(event.result)
        case PermissionEvent():
            request = _render_request(event, message_id)
            return request["title"], {"permission_request": request}
        case ToolCallQuestionRequired():
            asked = {"options": list(event.options), "multiple": event.multiple, "custom": event.custom}
            return event.question, asked
        case _:
            return event.tool_call_name, {}


_VERBS = {
    "read": ("Reading", "path"),
    "write": ("Writing", "path"),
    "edit": ("Editing", "path"),
    "find": ("Searching:", "pattern"),
    "grep": ("Searching:", "pattern"),
    "exec": ("Running:", "command"),
}
"""How a call announces itself: the verb, and the argument behind it."""


def _announce(event: ToolCallStart) -> tuple[str, dict[str, Any]]:
    args: Any = event.args
    given: dict[str, Any] = cast("dict[str, Any]", args) if isinstance(args, dict) else {}
    verb, name = _VERBS.get(event.tool_call_name, ("", ""))
    subject = given.get(name)
    if not isinstance(subject, str):
        return event.tool_call_name, {"input": args}
    is_file = name == "path"
    title = f"{verb} {to_one_line(subject.rpartition('/')[2] if is_file else subject)[:_MAX_TITLE_CHARS]}"
    running = {"exitCode": -1} if event.tool_call_name == "exec" else {}
    return title, {"input": args, **({"filePath": subject} if is_file else {}), **running}


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
