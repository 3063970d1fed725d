"""Sources of foreign tools: what another server lists, under which names."""

import hashlib
import re
from typing import Any, ClassVar, Protocol

import msgspec

from handrail.policy.config import MCP_PREFIX
from handrail.protocol.errors import Problem
from handrail.protocol.permissions import Permission
from handrail.protocol.text import render_value
from handrail.protocol.wire import sanitize_json
from handrail.runtime.foreign.schema import find_argument_problems, find_input_problem, find_schema_problem
from handrail.tools.tool import Output, SourceContext

_MAX_LISTED_NAME_CHARS = 256
_MAX_NAME_CHARS = 64
_DIGITS = 10
_MAX_SERVER_CHARS = 20
"""Characters of a server's name in a name with a digest."""
_VALID = re.compile(r"[A-Za-z0-9_-]+")
_INVALID = re.compile(r"[^A-Za-z0-9-]+")
_WITH_DIGEST = re.compile(rf".*_[0-9a-f]{{{_DIGITS}}}")


class ForeignTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it. The server may lie, so nothing here loosens a decision by itself."""

    MAX_LISTED: ClassVar[int] = 256
    """Tools of one server. Further ones are not offered."""
    name: str
    """The name that the server uses."""
    title: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True

    def find_output_problems(self, data: object) -> tuple[Problem, ...]:
        """Why structured data does not match the output schema, found in a bounded number of steps."""
        return find_argument_problems(self.output_schema or {}, data)


class ToolSource(Protocol):
    """Another server. Any thread may call it. A failure is a ToolError of the call."""

    @property
    def server(self) -> str:
        """The name of the server in the settings: letters, digits, _ and -."""
        ...

    @property
    def reach(self) -> tuple[Permission, ...]:
        """The permissions that the server uses, for `[tools] deny`. Empty: it only computes."""
        ...

    @property
    def revision(self) -> int:
        """A number that changes with the result of `listed`. It is read before every call, so it must be cheap."""
        ...

    def listed(self) -> tuple[ForeignTool, ...]:
        """The tools of the server. Empty while it cannot be reached. It may wait for the server to start."""
        ...

    def call(self, context: SourceContext, name: str, arguments: dict[str, Any]) -> Output:
        """Calls a tool. ToolError if the call fails, is cancelled or takes too long."""
        ...

    def problems(self) -> tuple[str, ...]:
        """The present problems of the server, as texts for people."""
        ...

    def close(self) -> None:
        """Ends the server with everything it started."""


def find_tool_problem(tool: object) -> str:
    """The reason why a tool cannot be offered, or an empty text."""
    if not isinstance(tool, ForeignTool):
        return f"it is listed as {render_value(tool)}"
    if not all(isinstance(text, str) for text in (tool.name, tool.title, tool.description)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its name, title or description is not text"
    if not all(isinstance(hint, bool) for hint in (tool.read_only, tool.destructive, tool.idempotent, tool.open_world)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its hints are not true or false"
    if not sanitize_json((tool.name, tool.title, tool.description))[1]:
        return "its name, title or description is not valid Unicode"
    if not tool.name or len(tool.name) > _MAX_LISTED_NAME_CHARS:
        return f"its name has {len(tool.name)} characters; it may have 1 to {_MAX_LISTED_NAME_CHARS}"
    return find_input_problem(tool.input_schema) or find_schema_problem(tool.output_schema or {}, "outputSchema")


def build_tool_name(server: str, tool: str) -> str:
    """The name of a server's tool here: `mcp__<server>__<tool>` if that is valid and can be split again.

    Otherwise both names are cleaned and cut, and a digest of them is appended. A tool whose own name ends like a digest
    gets one too, so that no tool can take the name of another.
    """
    plain = f"{MCP_PREFIX}{server}__{tool}"
    return plain if len(plain) <= _MAX_NAME_CHARS and _can_be_split(server, tool) else _add_digest(server, tool)


def split_tool_name(name: str) -> tuple[str, str] | None:
    """The server and its tool, from a name without a digest."""
    server, separator, tool = name.removeprefix(MCP_PREFIX).partition("__")
    is_plain = separator and name.startswith(MCP_PREFIX) and build_tool_name(server, tool) == name
    return (server, tool) if is_plain else None


def _can_be_split(server: str, tool: str) -> bool:
    is_valid = _VALID.fullmatch(server) is not None and _VALID.fullmatch(tool) is not None
    return is_valid and "__" not in server and not server.endswith("_") and not _WITH_DIGEST.fullmatch(tool)


def _add_digest(server: str, tool: str) -> str:
    both = f"{len(server)} {server} {tool}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(both).hexdigest()[:_DIGITS]
    head = f"{MCP_PREFIX}{_INVALID.sub('_', server)[:_MAX_SERVER_CHARS].strip('_') or 'server'}__"
    return f"{head}{_INVALID.sub('_', tool)[: _MAX_NAME_CHARS - len(head) - _DIGITS - 1]}_{digest}"
