"""Renders events for DevMinds."""

from typing import Any, cast

from msgspec import to_builtins

from handrail.protocol.events import (
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
    ToolCallRunning,
    ToolCallStart,
    ToolCallUpdate,
    User,
    get_event_kind,
)
from handrail.protocol.results import ToolResult

_PATHS = ("path", "cwd")


class DevMindsEvents:
    """Gathers the model's words of a run: its pieces, joined, are the content of its output."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._paths: dict[str, str] = {}
        """What calls that run are about, by their ids."""

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """One message, two at the end of a run, or none for what the system has no words for."""
        return tuple(
            {"ts": event.time, "taskId": event.session_id, "type": kind, "payload": payload}
            for kind, payload in self._told(event)
        )

    def _told(self, event: Event) -> list[tuple[str, dict[str, Any]]]:  # noqa: PLR0911  one a kind
        match event:
            case User():
                self._said.clear()
                return [_delta("start", prompt=event.text)]
            case Text():
                self._said.append(event.text)
                return [_delta("progress", delta=event.text)]
            case Reasoning():
                return [_delta("progress", reasoning=event.text)]
            case Display():
                return [_delta("progress", metadata=_display(event))]
            case Error():
                payload = {"code": event.code, "message": event.message, "retryable": event.retryable}
                return [("agent.run.error", payload)]
            case End():
                return self._ended(event)
            case _:
                return self._of_call(event)

    def _of_call(self, event: Event) -> list[tuple[str, dict[str, Any]]]:  # noqa: PLR0911  one a kind
        match event:
            case ToolCallStart():
                if path := _path(event.args):
                    self._paths[event.tool_call_id] = path
                return [_delta("start", **_call(event), path=path)]
            case ToolCallRunning():
                return [_delta("progress", **_call(event))]
            case ToolCallUpdate():
                partial = {"output": event.output, "title": event.title, "metadata": event.metadata}
                return [_delta("progress", **_call(event), **partial)]
            case PermissionEvent():
                asked = {"permission": get_event_kind(event).removeprefix("tool_call.")}
                request = to_builtins(event.permission_request)
                return [_delta("progress", **_call(event), metadata={**asked, "permission_request": request})]
            case ToolCallQuestionRequired():
                question = {"question": event.question, "options": list(event.options)}
                return [_delta("progress", **_call(event), metadata=question)]
            case ToolCallEnd() | ToolCallError():
                return [("agent.run.output", self._output(event.result))]
            case _:
                return []

    def _output(self, result: ToolResult[Any]) -> dict[str, Any]:
        changed = result.artifacts.files_changed
        path = self._paths.pop(result.tool_call_id, None) or (changed[0] if changed else None)
        data: Any = to_builtins(result.data)
        output: dict[str, Any] = {
            "operation": result.name,
            "toolCallId": result.tool_call_id,
            "ok": result.ok,
            "path": path,
            "summary": result.summary,
            "exitCode": data.get("exitCode") if isinstance(data, dict) else None,  # pyright: ignore[reportUnknownMemberType]
        }
        if result.error is not None:
            output["error"] = to_builtins(result.error)
        return output

    def _ended(self, event: End) -> list[tuple[str, dict[str, Any]]]:
        """The words of the run, whole, and how it ended."""
        content = "".join(self._said)
        self._said.clear()
        told: list[tuple[str, dict[str, Any]]] = []
        if content:
            told.append(("agent.run.output", {"operation": "message", "content": content}))
        if event.reason == "cancelled":
            return [*told, ("agent.run.cancelled", {"calls": event.calls})]
        left = {"reason": event.reason, "calls": event.calls, "filesChanged": list(event.files_changed)}
        return [*told, ("agent.run.finished", left)]


def _delta(phase: str, **payload: Any) -> tuple[str, dict[str, Any]]:
    given = {name: value for name, value in payload.items() if value is not None}
    return "agent.run.delta", {"phase": phase, **given}


def _call(event: ToolCallStart | ToolCallRunning | ToolCallUpdate | PermissionEvent | ToolCallQuestionRequired) -> Any:
    return {"operation": event.tool_call_name, "toolCallId": event.tool_call_id}


def _path(args: Any) -> str | None:
    given: dict[str, Any] = cast("dict[str, Any]", args) if isinstance(args, dict) else {}
    return next((given[name] for name in _PATHS if isinstance(given.get(name), str)), None)


def _display(event: Display) -> dict[str, Any]:
    return {"display": event.content, "level": event.level, "title": event.title}
