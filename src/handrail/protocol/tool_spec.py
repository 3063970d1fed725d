"""The description of a tool."""

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from handrail.protocol.errors import Problem, UsageError
from handrail.protocol.permissions import Permission
from handrail.protocol.text import render_value
from handrail.protocol.wire import Json, Wire

_Category = Literal["builtin", "custom", "mcp"]
Layer = Literal["base", "companion", "gain"]
"""`base`: the eight. `companion`: works on the conversation, on no file. `gain`: adds what the others lack."""
Stage = Literal["look", "read", "change", "run", "other"]
"""The step of work that a tool is for."""
SideEffect = Literal["files", "processes", "network", "conversation", "memory"]
"""`conversation`: it shows or asks something. `memory`: it changes the notes of the workspace."""
ASIDE: frozenset[SideEffect] = frozenset({"conversation", "memory"})
"""The effects that do not touch the workspace."""
MCP_PREFIX = "mcp__"
"""Starts the name of every MCP tool, and no other name of a tool or class of commands."""
OWN_SERVER = "handrail"
BASE_NAMES = ("read", "write", "edit", "find", "grep", "ls", "exec", "process")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""Names that every provider accepts. A list of tools with another name in it is rejected."""


class Arguments(Wire, frozen=True):
    """The typed arguments of a tool."""


class ForeignArguments(msgspec.Struct, frozen=True):
    """The arguments of another server's tool. Its own schema describes them."""

    given: dict[str, Json]


class ForeignData(Wire, frozen=True):
    """The data of another server's tool. Its own schema describes it, if there is one."""


class Foreign(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The description of another server's tool. The server wrote it and may lie."""

    name: str
    """Its name on the server, for people. The model and calls use the name of the spec."""
    input_schema: dict[str, Json]
    """As models see it."""
    output_schema: dict[str, Json] | None
    fingerprint: str
    """A digest of the whole description. With another digest it is another tool."""
    problems: Callable[[object], tuple[Problem, ...]]
    """Check arguments against the whole schema of the server."""
    reach: tuple[Permission, ...] = ()
    """The permissions that the settings give to its server. Not written by the server."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a tool except its code."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    data: type[msgspec.Struct]
    version: str = "1.0.0"
    permissions: tuple[Permission, ...] = ()
    side_effects: tuple[SideEffect, ...] = ()
    category: _Category = "builtin"
    server: str = OWN_SERVER
    auto_execute: bool = False
    idempotent: bool = False
    """Whether repeating a call changes nothing more. Always true for a tool without effects."""
    enabled: bool = True
    plain_arguments: tuple[str, ...] = ()
    """Text arguments that the audit keeps as they are. Every other text is redacted."""
    format_error: Callable[[tuple[str, ...]], str] | None = None
    """The tool's own wording of problems with arguments."""
    layer: Layer = "gain"
    """Its layer. No two tools have the same intent."""
    stage: Stage = "other"
    intent: str = ""
    """What the tool is for: "locate files by name". The prompt's rules of choice are built from it."""
    not_for: tuple[tuple[str, str], ...] = ()
    """Mistaken uses, each with the right tool: ("part of a file", "edit"). Mentioned if that tool is offered."""
    foreign: Foreign | None = None
    """Only for tools of other servers."""

    def check_name(self) -> None:
        """UsageError if a provider rejects the name, or the tool would be mistaken for a base tool."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):  # pyright: ignore[reportUnnecessaryIsInstance]
            rule = "a tool's name has letters, digits, _ and - only, at most 64, and starts with a letter or _"
            raise UsageError(f"{rule}, or model providers reject it: {render_value(self.name)}")
        if self.name.casefold() in BASE_NAMES:
            raise UsageError(f"the tool {self.name!r} would shadow a base tool; give it another name")

    @property
    def own_name(self) -> str:
        return self.name if self.foreign is None else self.foreign.name

    @property
    def label(self) -> str:
        """The tool for people: `read`, `create_issue (github)`."""
        return format_tool_label(self.own_name, self.server)


class ToolDescription(Wire, frozen=True, omit_defaults=False):
    """A spec as it is listed and exported."""

    name: str
    """The name in calls."""
    title: str
    """For people."""
    enabled: bool
    """Whether it is offered by default."""
    version: str
    description: str
    """For the model: what it does and when to use it."""
    category: _Category
    auto_execute: bool
    """A hint that it may run without approval. It counts only for tools without effects."""
    permissions: tuple[Permission, ...]
    side_effects: tuple[SideEffect, ...]
    """Its effects. Empty: it is read-only."""
    input_schema: dict[str, Json]
    """JSON Schema of the arguments."""
    output_schema: dict[str, Json]
    """JSON Schema of the result's `data`."""


def format_tool_label(name: str, server: str | None) -> str:
    """A tool, with its server if that is another one."""
    return name if server is None or server == OWN_SERVER else f"{name} ({server})"


def parse_major_version(version: str) -> int | None:
    """The first number of a version. None: it is no version."""
    first = version.split(".", 1)[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 10 else None
