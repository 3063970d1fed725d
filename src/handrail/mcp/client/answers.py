"""What a server's tool answers, as what our tools return."""

from collections.abc import Iterator
from typing import Any

import msgspec
from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from handrail.mcp.client.secrets import Secrets
from handrail.protocol.errors import ToolError
from handrail.protocol.results import Attachment
from handrail.protocol.text import truncate
from handrail.runtime.foreign.schema import find_argument_problems
from handrail.tools.tool import Output

_MAX_ATTACHED_CHARS = 4 << 20
"""Characters of base64 of all pictures together."""
_MAX_TOLD_PROBLEMS = 3
_MAX_SUMMARY_CHARS = 120
_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


def build_output(answer: CallToolResult, schema: dict[str, Any] | None, secrets: Secrets) -> Output:
    """The answer. Where the server says that it failed, or gives what it said it would not, the output says so too."""
    structured: Any = secrets.redact_value(answer.structured_content)
    pictures = tuple(_pictures(answer.content))
    text = secrets.redact("\n".join(_texts(answer.content, len(pictures))))
    if not text and structured is not None:
        text = msgspec.json.format(msgspec.json.encode(structured), indent=2).decode()
    failure = _failure(answer, text) or _lie(answer, structured, schema)
    return Output(
        summary=_first_line(text) or ("failed" if failure else "done"),
        content=text if failure is None else f"{text}\n{failure.message}".strip() if failure.message != text else text,
        data=structured,
        failure=failure,
        attachments=pictures,
    )


def _failure(answer: CallToolResult, text: str) -> ToolError | None:
    if not answer.is_error:
        return None
    return ToolError("IO_ERROR", text or "The server says that it failed, and not why.")


def _lie(answer: CallToolResult, structured: Any, schema: dict[str, Any] | None) -> ToolError | None:
    """What it gives has to be what it said it gives: programs go by that."""
    if schema is None:
        return None
    if "structured_content" not in answer.model_fields_set:
        wrong = "there is none"
    elif isinstance(structured, dict) or schema.get("type") == "object":
        # Not by the SDK: the schema and the value are a stranger's, and so would be what checking them takes.
        given: Any = structured  # pyright: ignore[reportUnknownVariableType]
        wrong = "; ".join(one.problem for one in find_argument_problems(schema, given)[:_MAX_TOLD_PROBLEMS])
    else:
        wrong = ""
    if not wrong:
        return None
    return ToolError(
        "UNAVAILABLE",
        f"The server ran it, but its structured result is not what it says it gives: {wrong}. The defect is the"
        " server's; calling again will not help.",
    )


def _texts(content: list[ContentBlock], pictures: int) -> Iterator[str]:
    left = pictures
    for block in content:
        match block:
            case TextContent():
                yield block.text
            case ImageContent():
                left -= 1
                if left < 0:
                    yield f"[a picture was left out: {block.mime_type[:80]}, {len(block.data):,} characters]"
            case AudioContent():
                yield f"[sound was left out: {block.mime_type[:80]}, {len(block.data):,} characters]"
            case ResourceLink():
                yield f"[{block.name}: {block.uri}]"
            case EmbeddedResource():
                yield _embedded(block)


def _embedded(block: EmbeddedResource) -> str:
    held = block.resource
    if isinstance(held, TextResourceContents):
        return held.text
    return f"[{held.uri} was left out: {(held.mime_type or 'bytes')[:80]}, {len(held.blob):,} characters]"


def _pictures(content: list[ContentBlock]) -> Iterator[Attachment]:
    size = 0
    for number, block in enumerate((one for one in content if isinstance(one, ImageContent)), start=1):
        size += len(block.data)
        if block.mime_type not in _EXTENSIONS or size > _MAX_ATTACHED_CHARS:
            return
        name = f"picture-{number}.{_EXTENSIONS[block.mime_type]}"
        yield Attachment(type="image", path=name, mime=block.mime_type, content=block.data)


def _first_line(text: str) -> str:
    return truncate(next((line.strip() for line in text.splitlines() if line.strip()), ""), _MAX_SUMMARY_CHARS)
