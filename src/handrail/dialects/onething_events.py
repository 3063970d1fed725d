"""Renders events as the stream of one-thing: STEP_UPDATED for each change of a call."""

from posixpath import join, normpath
from typing import Any

from msgspec import Struct, to_builtins

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


_TOOL_IDS = {"exec": "bash", "find": "glob", "search_text": "grep"}


class _Step(Struct):
    message_id: str | None = None
    title: str = ""
    output: str = ""


class OneThingEvents:
    """Remembers the message, the title and the output of each running call, since not every event has them.

    `workspace`: its absolute path, for absolute paths."""

    def __init__(self, workspace: str = "") -> None:
        self._workspace = workspace
        self._steps: dict[str, _Step] = {}

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """One message about a call, and none about other events."""
        if not isinstance(event, ToolEvent) or isinstance(event, ChangeEvent):
            return ()
        call_id, name = event.tool_call_id, event.tool_call_name
        step = self._steps.setdefault(call_id, _Step(title=name))
        if isinstance(event, ToolCallStart):
            step.message_id = event.message_id
        title, more = self._render_news(event, step)
        if isinstance(event, ToolCallEnd | ToolCallError):
            del self._steps[call_id]
        metadata = {"status": _STATUS[get_event_kind(event)], "tool": _TOOL_IDS.get(name, name), **more}
        updates = {"title": title, "metadata": metadata}
        payload = {"sessionId": event.session_id, "messageId": step.message_id, "stepId": call_id, "updates": updates}
        return ({"type": "STEP_UPDATED", "payload": payload},)

    def _render_news(self, event: ToolEvent, step: _Step) -> tuple[str, dict[str, Any]]:
        """The title and the new metadata."""
        name = event.tool_call_name
        running = {"exitCode": -1} if name == "exec" else {}
        match event:
            case ToolCallStart():
                given: Any = event.args
                path = given.get("path") if isinstance(given, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                file = {"filePath": self._to_absolute(path)} if isinstance(path, str) else {}
                step.title = describe_running_call(name, given) or name
                return step.title, {"input": given, **file, **running}
            case ToolCallUpdate():
                step.title = event.title or step.title
                step.output = (step.output + (event.output or ""))[-_MAX_OUTPUT_CHARS:]
                return step.title, {"output": step.output, **running, **(event.metadata or {})}
            case ToolCallEnd() | ToolCallError():
                return event.result.title, _render_result(event.result)
            case PermissionEvent():
                request = self._render_request(event, step.message_id)
                return request["title"], {"permission_request": request}
            case ToolCallQuestionRequired():
                asked = {"options": list(event.options), "multiple": event.multiple, "custom": event.custom}
                return event.question, asked
            case _:
                return step.title, running

    def _render_request(self, event: PermissionEvent, message_id: str | None) -> dict[str, Any]:
        """The request in one-thing's terms: `external_directory`, `bash`, `edit`, or another kind."""
        request, kind = event.permission_request, event.permission_request.s4_kind
        metadata: dict[str, Any] = {"handrail": to_builtins(request)}
        if request.command is not None and kind == "bash":
            pattern = [f"{' '.join(request.command.split()[:2])} *"]
            metadata |= {"command": request.command, "pattern": pattern[0]}
        else:
            pattern = list(request.pattern or request.paths)
            path = self._to_absolute(request.paths[0]) if request.paths else ""
            operation = request.access or _TOOL_IDS.get(request.tool_name, request.tool_name)
            metadata |= {"filePath": path, "boundary": self._workspace, "operation": operation}
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

    def _to_absolute(self, path: str) -> str:
        return normpath(join(self._workspace, path)) if self._workspace else path


def _render_result(result: ToolResult[Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"output": result.content, "summary": result.summary, **to_builtins(result.meta)}
    return outcome | ({"error": to_builtins(result.error)} if result.error is not None else {})
