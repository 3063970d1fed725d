"""Renders events as the stream of DevMinds: `agent.run.delta`, `.output`, `.cancelled`, `.error`, `.finished`."""

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
    ToolEvent,
    User,
    Warning,  # noqa: A004  the wire calls it so
    get_event_kind,
)
from handrail.protocol.results import ToolResult

_OPERATIONS = {"exec": "shell"}
_FILE_OPERATIONS = ("read", "write", "append")
_SHOWN = ("path", "cwd", "command", "pattern", "name", "action")


class DevMindsEvents:
    """Collects the text of a run. It is the content of the run's output."""

    def __init__(self, _workspace: str = "") -> None:
        self._texts: list[str] = []
        self._paths: dict[str, str] = {}
        """Paths of running calls, by their ids."""

    def render(self, event: Event) -> tuple[dict[str, Any], ...]:
        """One message, two at the end of a run, or none for an event that DevMinds lacks."""
        return tuple(
            to_builtins(
                {"ts": event.time, "taskId": event.session_id, "agentId": "handrail", "type": kind, "payload": payload}
            )
            for kind, payload in self._render_payloads(event)
        )

    def _render_payloads(self, event: Event) -> list[tuple[str, dict[str, Any]]]:  # noqa: PLR0911  one a kind
        match event:
            case User():
                self._texts.clear()
                return [_build_delta("start", prompt=event.text)]
            case Text():
                self._texts.append(event.text)
                return [_build_delta("progress", delta=event.text)]
            case Reasoning():
                return [_build_delta("progress", reasoning=event.text)]
            case Display():
                display = {"display": event.content, "level": event.level, "title": event.title}
                return [_build_delta("progress", metadata=display)]
            case Error():
                payload = {"code": event.code, "message": event.message, "retryable": event.retryable}
                return [("agent.run.error", payload)]
            case Warning():
                warning = {"code": event.code, "message": event.text}
                return [_build_delta("progress", warning=warning, toolCallId=event.tool_call_id)]
            case End():
                return self._render_end(event)
            case _:
                return self._render_call(event)

    def _render_call(self, event: Event) -> list[tuple[str, dict[str, Any]]]:  # noqa: PLR0911  one a kind
        match event:
            case ToolCallStart():
                given: Any = event.args
                summary = _summarize_arguments(cast("dict[str, Any]", given) if isinstance(given, dict) else {})
                path, command = summary.get("path", summary.get("cwd")), summary.get("command")
                if path is not None:
                    self._paths[event.tool_call_id] = path
                return [_build_delta("start", **_name_call(event), path=path, cmd=command, args=summary)]
            case ToolCallRunning():
                return [_build_delta("progress", **_name_call(event))]
            case ToolCallUpdate():
                partial = {"output": event.output, "title": event.title, "metadata": event.metadata}
                return [_build_delta("progress", **_name_call(event), **partial)]
            case PermissionEvent():
                kind = get_event_kind(event).removeprefix("tool_call.")
                metadata = {"permission": kind, "permission_request": to_builtins(event.permission_request)}
                return [_build_delta("progress", **_name_call(event), metadata=metadata)]
            case ToolCallQuestionRequired():
                question = {"question": event.question, "options": list(event.options)}
                return [_build_delta("progress", **_name_call(event), metadata=question)]
            case ToolCallEnd() | ToolCallError():
                return [("agent.run.output", self._render_output(event.result))]
            case _:
                return []

    def _render_output(self, result: ToolResult[Any]) -> dict[str, Any]:
        changed = result.artifacts.files_changed
        path = self._paths.pop(result.tool_call_id, None) or (changed[0] if changed else None)
        data: Any = to_builtins(result.data)
        output: dict[str, Any] = {
            "operation": _OPERATIONS.get(result.name, result.name),
            "toolCallId": result.tool_call_id,
            "ok": result.ok,
            "path": path,
            "summary": result.summary,
            "durationMs": result.duration_ms,
            "limits": list(result.meta.limits),
            "exitCode": data.get("exitCode") if isinstance(data, dict) else None,  # pyright: ignore[reportUnknownMemberType]
        }
        if result.warnings:
            output["warnings"] = list(result.warnings)
        if result.error is not None:
            output["error"] = to_builtins(result.error)
        return output

    def _render_end(self, event: End) -> list[tuple[str, dict[str, Any]]]:
        """The whole text of the run, and its end."""
        content = "".join(self._texts)
        self._texts.clear()
        output = [("agent.run.output", {"operation": "message", "content": content})] if content else []
        if event.reason == "cancelled":
            return [*output, ("agent.run.cancelled", {"calls": event.calls})]
        payload = {"reason": event.reason, "calls": event.calls, "filesChanged": list(event.files_changed)}
        return [*output, ("agent.run.finished", payload)]


def _build_delta(phase: str, **payload: Any) -> tuple[str, dict[str, Any]]:
    given = {name: value for name, value in payload.items() if value is not None}
    return "agent.run.delta", {"phase": phase, **given}


def _name_call(event: ToolEvent) -> dict[str, Any]:
    name = event.tool_call_name
    tool = "workspace.shell" if name == "exec" else "workspace.fs" if name in _FILE_OPERATIONS else name
    return {"operation": _OPERATIONS.get(name, name), "name": tool, "toolCallId": event.tool_call_id}


def _summarize_arguments(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments without contents: of a text that is no place and no command only the length."""
    return {name: value if name in _SHOWN else _summarize_value(value) for name, value in args.items()}


def _summarize_value(value: Any) -> Any:
    if isinstance(value, str):
        return f"{len(value)} characters"
    return f"{len(cast('list[Any]', value))} item(s)" if isinstance(value, list | dict) else value
