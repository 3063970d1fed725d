"""What a server lists, taken with bounds: it may list anything, any number of times."""

from collections.abc import Iterable
from typing import Any

import msgspec
from mcp import Client
from mcp_types import PaginatedRequestParams, Tool

from handrail.mcp.client.secrets import Secrets
from handrail.runtime.foreign.schema import MAX_LISTED_TOOLS
from handrail.runtime.foreign.source import ForeignTool

_MAX_PAGES = 64
_MAX_TOOLS_BYTES = 2 << 20
_MAX_TOOL_BYTES = 128 << 10
_MAX_NAME_CHARS = 128
_MAX_TOLD_PROBLEMS = 3


class ToolListing(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that are taken, and what was wrong with the others."""

    tools: tuple[ForeignTool, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def mark(self) -> bytes:
        """Another one for another list. By the bytes: to Python, true and 1 are the same."""
        return msgspec.json.encode(self.tools)


async def list_tools(client: Client, secrets: Secrets) -> ToolListing:
    """All pages, one after the other, until one has no next or there is enough."""
    found = _ToolCollector(secrets)
    cursor, seen = None, set[str]()
    for _ in range(_MAX_PAGES):
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        if not found.add(page.tools):
            break
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    else:
        found.problems.append(f"it lists more than {_MAX_PAGES} pages of tools; the others are left out")
    return found.listing()


class _ToolCollector:
    def __init__(self, secrets: Secrets) -> None:
        self.problems: list[str] = []
        self._tools: dict[str, ForeignTool] = {}
        self._bytes = 0
        self._wrong: list[str] = []
        self._secrets = secrets

    def add(self, tools: Iterable[Tool]) -> bool:
        """Whether there is room for more."""
        for tool in tools:
            if len(self._tools) >= MAX_LISTED_TOOLS or self._bytes > _MAX_TOOLS_BYTES:
                self.problems.append(
                    f"it lists more than {MAX_LISTED_TOOLS} tools, or very large ones; the rest is left out"
                )
                return False
            self._take(tool)
        return True

    def listing(self) -> ToolListing:
        more = (
            [f"and {len(self._wrong) - _MAX_TOLD_PROBLEMS:,} more like it"]
            if len(self._wrong) > _MAX_TOLD_PROBLEMS
            else []
        )
        return ToolListing(
            tools=tuple(self._tools.values()), problems=(*self.problems, *self._wrong[:_MAX_TOLD_PROBLEMS], *more)
        )

    def _take(self, tool: Tool) -> None:
        shown = repr(tool.name[:80])
        if tool.name in self._tools:
            self._wrong.append(f"it lists the tool {shown} twice; the first counts")
            return
        if not tool.name or len(tool.name) > _MAX_NAME_CHARS or not tool.name.isprintable():
            self._wrong.append(f"the tool {shown} has a name that cannot be used; it is left out")
            return
        taken = _foreign(tool, self._secrets)
        size = len(msgspec.json.encode(taken))
        if size > _MAX_TOOL_BYTES:
            self._wrong.append(f"the tool {shown} is described by {size:,} bytes; it is left out")
            return
        self._bytes += size
        self._tools[tool.name] = taken


def _foreign(tool: Tool, secrets: Secrets) -> ForeignTool:
    hints = tool.annotations
    return ForeignTool(
        name=tool.name,
        title=secrets.redact(tool.title or (hints.title if hints and hints.title else "")),
        description=secrets.redact(tool.description or ""),
        input_schema=_schema(tool.input_schema, secrets),
        output_schema=_schema(tool.output_schema, secrets) if tool.output_schema is not None else None,
        read_only=_hint(hints and hints.read_only_hint, otherwise=False),
        destructive=_hint(hints and hints.destructive_hint, otherwise=True),
        idempotent=_hint(hints and hints.idempotent_hint, otherwise=False),
        open_world=_hint(hints and hints.open_world_hint, otherwise=True),
    )


def _schema(schema: dict[str, Any], secrets: Secrets) -> dict[str, Any]:
    return secrets.redact_value(schema)


def _hint(said: Any, *, otherwise: bool) -> bool:
    return said if isinstance(said, bool) else otherwise
