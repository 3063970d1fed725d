"""A result of ours as the protocol carries it."""

from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.protocol.result import Attachment, ToolResult


def call_result(result: ToolResult[Any]) -> dict[str, Any]:
    """What the model reads as text, pictures beside it, and the whole result for programs."""
    pictures = [one for one in result.attachments if one.type == "image" and one.content is not None]
    told = replace(result, attachments=tuple(_named_only(one, pictures) for one in result.attachments))
    return {
        "content": [{"type": "text", "text": result.content}, *map(_picture, pictures)],
        "structuredContent": msgspec.to_builtins(told),
        "isError": not result.ok,
    }


def _picture(attachment: Attachment) -> dict[str, Any]:
    return {"type": "image", "data": attachment.content, "mimeType": attachment.mime}


def _named_only(attachment: Attachment, pictures: list[Attachment]) -> Attachment:
    """A picture is in the content already; twice would be twice as much."""
    return replace(attachment, content=None) if attachment in pictures else attachment
