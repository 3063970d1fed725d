"""A result of ours as the protocol carries it."""

from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.mcp.caller import Caller
from handrail.protocol.result import Attachment, ToolResult
from handrail.protocol.version import VERSION

SERVER_INFO = {"name": "handrail", "title": "handrail", "version": VERSION}
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"


def call_result(result: ToolResult[Any]) -> dict[str, Any]:
    """What the model reads as text, pictures beside it, and the whole result for programs."""
    pictures = [one for one in result.attachments if one.type == "image" and one.content is not None]
    told = replace(result, attachments=tuple(_named_only(one, pictures) for one in result.attachments))
    return {
        "content": [{"type": "text", "text": result.content}, *map(_picture, pictures)],
        "structuredContent": msgspec.to_builtins(told),
        "isError": not result.ok,
    }


def completed(result: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """A result as the caller's version has it: one without a handshake says what kind it is, and who made it."""
    if not caller.modern:
        return result
    meta = {SERVER_INFO_KEY: SERVER_INFO, **result.get("_meta", {})}
    return {"resultType": "complete", **result, "_meta": meta}


def _picture(attachment: Attachment) -> dict[str, Any]:
    return {"type": "image", "data": attachment.content, "mimeType": attachment.mime}


def _named_only(attachment: Attachment, pictures: list[Attachment]) -> Attachment:
    """A picture is in the content already; twice would be twice as much."""
    return replace(attachment, content=None) if attachment in pictures else attachment
