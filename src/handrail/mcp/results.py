"""Messages to an MCP client about a call."""

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from handrail.mcp.protocol import LEVELS, Caller, Level
from handrail.protocol.events import Display, Event, Notice, ToolCallUpdate, Warning, format_display  # noqa: A004  the wire calls it so
from handrail.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from handrail.protocol.results import Attachment, ToolResult, render_for_model
from handrail.protocol.version import VERSION

SERVER_INFO = {"name": "handrail", "title": "handrail", "version": VERSION}
INSTRUCTIONS = """\
Tools to read, search and change the files of one workspace and to run commands in it, each call under the user's \
policy. Paths are relative to the workspace. The user can undo changes (`handrail undo`).
A failed call names the reason and the next step. A call that needs approval (PERMISSION_REQUIRED) waits for the user: \
nothing has run yet. Tell the user that you wait (they answer with `handrail approvals`), then repeat the same call: \
its result comes once. Do not look for another way to do a denied action."""
CACHED: dict[str, Any] = {"ttlMs": 60_000, "cacheScope": "private"}
"""How long a modern client may cache a list, unless it subscribes to changes."""
_SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"


def build_call_result(result: ToolResult[Any], dialect: str | None = None) -> dict[str, Any]:
    """Text for the model, attachments, and the whole result for programs without the attachments' contents.

    In a dialect programs get the answer in its system's own shape.
    """
    content: list[dict[str, Any]] = [{"type": "text", "text": render_for_model(result)}]
    if result.attachments:
        content += [_build_attachment(one, one.content) for one in result.attachments if one.content is not None]
        result = replace(result, attachments=tuple(replace(one, content=None) for one in result.attachments))
    if result.error is not None and result.error.code == "PERMISSION_REQUIRED":
        result = replace(result, error=replace(result.error, details=_drop_preview(result.error.details)))
    if dialect is None:
        return {"content": content, "structuredContent": result, "isError": not result.ok}
    shape: Any = result.data
    answer: dict[str, Any] = {"structuredContent": shape} if isinstance(shape, dict) else {}
    return {"content": content, **answer, "isError": not result.ok}


def _drop_preview(details: Any) -> Any:
    """A permission request without its preview. Nobody approved the call, so the model gets no output and no diff."""
    return {name: value for name, value in details.items() if name != "preview"}


def refuse_unknown_tool(result: ToolResult[Any]) -> None:
    """Raises ProtocolError for an unknown tool, as MCP demands. Any other error is a result that the model reads."""
    if result.error is not None and result.error.code == "UNKNOWN_TOOL":
        message = ". ".join((result.error.message, *result.warnings))
        raise ProtocolError(INVALID_PARAMS, message, {"tools": result.error.details})


def build_tool_list(entries: list[Any], caller: Caller) -> dict[str, Any]:
    return {"tools": entries, **(CACHED if caller.modern else {})}


def complete_result(result: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """A result as the client's version has it and its model sees it."""
    if caller.reads_text:
        result = _drop_structure(result)
    if not caller.modern:
        return result
    meta = {_SERVER_INFO_KEY: SERVER_INFO, **result.get("_meta", {})}
    return {"resultType": "complete", **result, "_meta": meta}


def _drop_structure(result: dict[str, Any]) -> dict[str, Any]:
    """A result without structure, or a tool list without output schemas: a client rejects a result that lacks the
    structure which its tool declares."""
    text = {name: value for name, value in result.items() if name != "structuredContent"}
    return text | {"tools": [_drop_output_schema(entry) for entry in text["tools"]]} if "tools" in text else text


def _drop_output_schema(entry: dict[str, Any] | msgspec.Raw) -> dict[str, Any]:
    tool: dict[str, Any] = msgspec.json.decode(entry) if isinstance(entry, msgspec.Raw) else entry
    return {name: value for name, value in tool.items() if name != "outputSchema"}


def _build_attachment(attachment: Attachment, content: str) -> dict[str, Any]:
    """Images and sounds have their own kinds. Every other file is an embedded resource."""
    kind = "audio" if attachment.mime.startswith("audio/") else attachment.type
    if kind != "file":
        return {"type": kind, "data": content, "mimeType": attachment.mime}
    from urllib.parse import quote  # noqa: PLC0415  few results have files

    resource = {"uri": f"file:///{quote(attachment.path.lstrip('/'))}", "mimeType": attachment.mime, "blob": content}
    return {"type": "resource", "resource": resource}


# Events of a call

MESSAGE_EVENTS = (ToolCallUpdate, Warning, Notice, Display)
"""The events that become messages."""
_MAX_LINE_CHARS = 500
_DISPLAY_LEVELS: dict[str, Level] = {"warning": "warning", "error": "error"}


class EventMessage(NamedTuple):
    level: Level
    text: str
    code: str | None = None
    """The error code or the rule of a warning."""
    is_progress: bool = False

    @property
    def data(self) -> dict[str, str]:
        """The `data` of a log message."""
        return {"text": self.text} if self.code is None else {"code": self.code, "text": self.text}

    def reaches(self, least: Level) -> bool:
        """Whether it is as severe as this level."""
        return LEVELS.index(self.level) >= LEVELS.index(least)


def build_message(event: Event) -> EventMessage | None:
    match event:
        case ToolCallUpdate():
            line = _find_last_line(event)[:_MAX_LINE_CHARS]
            return EventMessage("info", line, is_progress=True) if line else None
        case Warning():
            return EventMessage("warning", event.text, event.code)
        case Notice():
            return EventMessage("notice", event.text)
        case Display():
            return EventMessage(_DISPLAY_LEVELS.get(event.level, "info"), format_display(event.title, event.content))
        case _:
            return None


def _find_last_line(event: ToolCallUpdate) -> str:
    """The last line that the call printed, or else its title."""
    printed = [line for line in (event.output or "").splitlines() if line.strip()]
    return printed[-1].strip() if printed else event.title or ""
