"""A result of ours as the protocol carries it."""

from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.mcp.caller import Caller
from handrail.protocol.jsonrpc import INVALID_PARAMS, ProtocolError
from handrail.protocol.results import Attachment, ToolResult, render_for_model
from handrail.protocol.version import VERSION

SERVER_INFO = {"name": "handrail", "title": "handrail", "version": VERSION}
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
CACHED: dict[str, Any] = {"ttlMs": 60_000, "cacheScope": "private"}
"""How long a client without a handshake need not ask again what is offered, if it does not listen for changes."""


def build_call_result(result: ToolResult[Any]) -> dict[str, Any]:
    """What the model reads as text, what is attached beside it, and the whole result for programs. What is attached is
    not in there once more: twice would be twice as much. The result is left as it is: whatever encodes it knows how."""
    content: list[dict[str, Any]] = [{"type": "text", "text": render_for_model(result)}]
    if result.attachments:
        content += [_attached(one, one.content) for one in result.attachments if one.content is not None]
        result = replace(result, attachments=tuple(replace(one, content=None) for one in result.attachments))
    return {"content": content, "structuredContent": result, "isError": not result.ok}


def refuse_unknown_tool(result: ToolResult[Any]) -> None:
    """A tool that is not there is an error of the protocol, as its specification says: ProtocolError; all else is a
    result that the model can read and mend."""
    if result.error is not None and result.error.code == "UNKNOWN_TOOL":
        message = ". ".join((result.error.message, *result.warnings))
        raise ProtocolError(INVALID_PARAMS, message, {"tools": result.error.details})


def build_tool_list(entries: list[Any], caller: Caller) -> dict[str, Any]:
    """All tools at once, as the caller's version has them."""
    return {"tools": entries, **(CACHED if caller.modern else {})}


def complete_result(result: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """A result as the caller's version has it, and as the caller can use it: one without a handshake says what kind it
    is, and who made it."""
    if caller.reads_text:
        result = _as_text(result)
    if not caller.modern:
        return result
    meta = {SERVER_INFO_KEY: SERVER_INFO, **result.get("_meta", {})}
    return {"resultType": "complete", **result, "_meta": meta}


def _as_text(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the structure for programs, or a list of tools that promise none: a client that was promised
    structure takes a result without it for broken."""
    text = {name: value for name, value in result.items() if name != "structuredContent"}
    return text | {"tools": [_without_output(entry) for entry in text["tools"]]} if "tools" in text else text


def _without_output(entry: dict[str, Any] | msgspec.Raw) -> dict[str, Any]:
    """`entry`: as it goes over the wire, where the list was made ahead."""
    listed: dict[str, Any] = msgspec.json.decode(entry) if isinstance(entry, msgspec.Raw) else entry
    return {name: value for name, value in listed.items() if name != "outputSchema"}


def _attached(attachment: Attachment, content: str) -> dict[str, Any]:
    """Pictures and sounds have their own kinds; every other file is a resource that is sent along."""
    kind = "audio" if attachment.mime.startswith("audio/") else attachment.type
    if kind != "file":
        return {"type": kind, "data": content, "mimeType": attachment.mime}
    from urllib.parse import quote  # noqa: PLC0415  few results have files

    resource = {"uri": f"file:///{quote(attachment.path.lstrip('/'))}", "mimeType": attachment.mime, "blob": content}
    return {"type": "resource", "resource": resource}
