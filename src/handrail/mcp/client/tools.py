"""Tools of a server: listed within bounds, their answers as outputs."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from mcp import Client, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    REQUEST_TIMEOUT,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import ValidationError

from handrail import ForeignTool, Output
from handrail.mcp.client.redaction import Redactor, render_line
from handrail.protocol.errors import ToolError
from handrail.protocol.results import Attachment
from handrail.protocol.text import truncate
from handrail.settings.mcp_json import ConfiguredServer

_MAX_PAGES = 64
_MAX_TOOLS_BYTES = 2 << 20
_MAX_TOOL_BYTES = 128 << 10
_MAX_NAME_CHARS = 128
_MAX_SHOWN_PROBLEMS = 3
_MAX_ATTACHED_CHARS = 4 << 20
"""Characters of all pictures together, as base64."""
_MAX_SUMMARY_CHARS = 120
_MAX_MESSAGE_CHARS = 2_000
_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


# Listing


class ToolListing(msgspec.Struct, frozen=True, kw_only=True):
    """The accepted tools of a server, and the problems of the others."""

    tools: tuple[ForeignTool, ...] = ()
    problems: tuple[str, ...] = ()


async def list_tools(client: Client, redactor: Redactor) -> ToolListing:
    """Lists page after page until the last one or a limit."""
    collector = _ToolCollector(redactor)
    cursor, seen = None, set[str]()
    for _ in range(_MAX_PAGES):
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        if not collector.add(page.tools):
            break
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    else:
        collector.limits.append(f"it lists more than {_MAX_PAGES} pages of tools; the others are left out")
    return collector.build_listing()


class _ToolCollector:
    def __init__(self, redactor: Redactor) -> None:
        self.limits: list[str] = []
        self._tools: dict[str, ForeignTool] = {}
        self._bytes = 0
        self._problems: list[str] = []
        self._redactor = redactor

    def add(self, tools: Iterable[Tool]) -> bool:
        """Returns whether there is room for more."""
        for tool in tools:
            if len(self._tools) >= ForeignTool.MAX_LISTED or self._bytes > _MAX_TOOLS_BYTES:
                most = f"it lists more than {ForeignTool.MAX_LISTED} tools, or very large ones"
                self.limits.append(f"{most}; the rest is left out")
                return False
            if problem := self._add_tool(tool):
                self._problems.append(problem.format(repr(tool.name[:80])))
        return True

    def build_listing(self) -> ToolListing:
        more = len(self._problems) - _MAX_SHOWN_PROBLEMS
        problems = (*self.limits, *self._problems[:_MAX_SHOWN_PROBLEMS])
        problems += (f"and {more:,} more like it",) if more > 0 else ()
        return ToolListing(tools=tuple(self._tools.values()), problems=problems)

    def _add_tool(self, tool: Tool) -> str:
        """The problem of the tool, with {} for its name."""
        if tool.name in self._tools:
            return "it lists the tool {} twice; the first counts"
        if not tool.name or len(tool.name) > _MAX_NAME_CHARS or not tool.name.isprintable():
            return "the tool {} has an invalid name; it is left out"
        converted = _convert_tool(tool, self._redactor)
        size = len(msgspec.json.encode(converted))
        if size > _MAX_TOOL_BYTES:
            return f"the tool {{}} is described by {size:,} bytes; it is left out"
        self._bytes += size
        self._tools[tool.name] = converted
        return ""


def _convert_tool(tool: Tool, redactor: Redactor) -> ForeignTool:
    hints = tool.annotations
    return ForeignTool(
        name=tool.name,
        title=redactor.redact(tool.title or (hints.title if hints and hints.title else "")),
        description=redactor.redact(tool.description or ""),
        input_schema=redactor.redact_json(tool.input_schema),
        output_schema=redactor.redact_json(tool.output_schema),
        read_only=_get_hint(hints and hints.read_only_hint, default=False),
        destructive=_get_hint(hints and hints.destructive_hint, default=True),
        idempotent=_get_hint(hints and hints.idempotent_hint, default=False),
        open_world=_get_hint(hints and hints.open_world_hint, default=True),
    )


def _get_hint(hint: Any, *, default: bool) -> bool:
    return hint if isinstance(hint, bool) else default


# Answers


def build_output(answer: CallToolResult, tool: ForeignTool | None, redactor: Redactor) -> Output:
    """The output of a call. It is a failure if the server says so, or if the answer does not match its schema."""
    data: Any = redactor.redact_json(answer.structured_content)
    pictures = tuple(_list_pictures(answer.content))
    text = redactor.redact("\n".join(_list_texts(answer.content, len(pictures))))
    if not text and data is not None:
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    first_line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    failure = None
    if answer.is_error:
        failure = ToolError("IO_ERROR", text or "The server reported a failure without a reason.")
    elif problem := _find_data_problem(answer, data, tool):
        failure = ToolError(
            "UNAVAILABLE",
            f"The server ran it, but its structured result does not match its own schema: {problem}. This is a fault"
            " of the server; repeating the call does not help.",
        )
        text = f"{text}\n{failure.message}".strip()
    return Output(
        summary=truncate(first_line, _MAX_SUMMARY_CHARS) or ("failed" if failure else "done"),
        content=text or (failure.message if failure else ""),
        data=data,
        failure=failure,
        attachments=pictures,
    )


def _find_data_problem(answer: CallToolResult, data: Any, tool: ForeignTool | None) -> str:
    """Programs rely on the output schema."""
    if tool is None or tool.output_schema is None:
        return ""
    if "structured_content" not in answer.model_fields_set:
        return "it is missing"
    # Not with the SDK: a stranger's schema and value would decide how long that takes.
    problems = tool.find_output_problems(data)
    if not isinstance(data, dict) and tool.output_schema.get("type") != "object":
        return ""
    return "; ".join(one.problem for one in problems[:_MAX_SHOWN_PROBLEMS])


def _list_texts(content: list[ContentBlock], attached: int) -> Iterator[str]:
    """The texts of an answer, with a note for each block that is left out. The first `attached` pictures are not."""
    for block in content:
        match block:
            case TextContent():
                yield block.text
            case ImageContent():
                attached -= 1
                if attached < 0:
                    yield f"[a picture was left out: {block.mime_type[:80]}, {len(block.data):,} characters]"
            case AudioContent():
                yield f"[sound was left out: {block.mime_type[:80]}, {len(block.data):,} characters]"
            case ResourceLink():
                yield f"[{block.name}: {block.uri}]"
            case EmbeddedResource():
                yield _render_resource(block.resource)


def _render_resource(held: TextResourceContents | BlobResourceContents) -> str:
    if isinstance(held, TextResourceContents):
        return held.text
    return f"[{held.uri} was left out: {(held.mime_type or 'bytes')[:80]}, {len(held.blob):,} characters]"


def _list_pictures(content: list[ContentBlock]) -> Iterator[Attachment]:
    size = 0
    for number, block in enumerate((one for one in content if isinstance(one, ImageContent)), start=1):
        size += len(block.data)
        if block.mime_type not in _EXTENSIONS or size > _MAX_ATTACHED_CHARS:
            return
        name = f"picture-{number}.{_EXTENSIONS[block.mime_type]}"
        yield Attachment(type="image", path=name, mime=block.mime_type, content=block.data)


# Failures


def convert_failure(error: Exception, server: ConfiguredServer, tool: str, redactor: Redactor) -> ToolError | None:
    """The error of a call. None if the connection ended: its end has a better reason."""
    name, unknown = server.name, f"Whether {tool[:80]} had an effect is unknown."
    if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT):
        text = f"The server {name} did not answer within {server.seconds:g} seconds, and was asked to stop."
        return ToolError("TIMEOUT", f"{text} {unknown} mcp.servers.{name}.timeout allows more.")
    if isinstance(error, ValidationError):
        text = f"The server {name} sent an answer that does not follow the protocol. This is a fault of the server."
        return ToolError("UNAVAILABLE", f"{text} {unknown}")
    if not isinstance(error, MCPError) or error.code == CONNECTION_CLOSED:
        return None
    code = "INVALID_ARGUMENT" if error.code == INVALID_PARAMS else "IO_ERROR"
    reason = render_line(redactor.redact(error.message), _MAX_MESSAGE_CHARS) or "and not why"
    return ToolError(code, f"The server {name} refused: {reason} (error {error.code}).")
