"""The description of a tool."""

from collections.abc import Callable
from typing import Literal

import msgspec

from handrail.protocol.errors import Problem
from handrail.protocol.permissions import Permission
from handrail.protocol.wire import Json, Wire

Category = Literal["builtin", "custom", "mcp"]
Layer = Literal["base", "companion", "gain"]
"""`base`: the eight. `companion`: works on the conversation, on no file. `gain`: adds what the others lack."""
Stage = Literal["look", "read", "change", "run", "other"]
"""The step of work that a tool serves."""
SideEffect = Literal["files", "processes", "network", "conversation", "memory"]
"""`conversation`: what it says or asks, which stands in the journal with its result or not at all; `memory`: the notes
of the workspace."""
ASIDE: frozenset[SideEffect] = frozenset({"conversation", "memory"})
"""The effects that touch nothing of the workspace."""
OWN_SERVER = "handrail"
BASE_NAMES = ("read", "write", "edit", "find", "grep", "ls", "exec", "process")


class Arguments(Wire, frozen=True):
    """The typed arguments of a tool."""


class ForeignArguments(msgspec.Struct, frozen=True):
    """The arguments of another server's tool, as they were given: what they may be, its own schema says."""

    given: dict[str, Json]


class ForeignData(Wire, frozen=True):
    """Stands for what another server's tool gives, which is as its own schema says, or nothing."""


class Foreign(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What only a tool of another server has. Its server wrote all of this, and may lie."""

    name: str
    """What its server calls it. The model and calls use the spec's name; people are shown this one."""
    input_schema: dict[str, Json]
    """As models are shown it."""
    output_schema: dict[str, Json] | None
    fingerprint: str
    """A digest of all that its server says of it: another one is another tool."""
    problems: Callable[[object], tuple[Problem, ...]]
    """What is wrong with arguments, by its server's whole schema."""
    reach: tuple[Permission, ...] = ()
    """What the settings open to its server, and so to who calls it: the only thing here that no server wrote."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a tool but what it does."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    data: type[msgspec.Struct]
    version: str = "1.0.0"
    permissions: tuple[Permission, ...] = ()
    side_effects: tuple[SideEffect, ...] = ()
    category: Category = "builtin"
    server: str = OWN_SERVER
    auto_execute: bool = False
    idempotent: bool = False
    """Whether the same call again, with nothing in between, changes nothing more. Goes without saying for one without
    effects."""
    enabled: bool = True
    plain_arguments: tuple[str, ...] = ()
    """Text arguments the audit keeps as they are; every other text is redacted."""
    format_error: Callable[[tuple[str, ...]], str] | None = None
    """Words the problems of wrong arguments in the tool's own way."""
    layer: Layer = "gain"
    """Where it stands. No tool may have the intent of another, least of all of one that stands below it."""
    stage: Stage = "other"
    intent: str = ""
    """What somebody wants who should take this tool: "locate files by name". Rules of choice are made of it."""
    not_for: tuple[tuple[str, str], ...] = ()
    """What it could be taken for and should not, each with the name of the tool for that: ("part of a file", "edit").
    Told only where that tool is offered."""
    foreign: Foreign | None = None
    """For tools of other servers."""

    @property
    def own_name(self) -> str:
        """What whoever offers the tool calls it."""
        return self.name if self.foreign is None else self.foreign.name

    @property
    def label(self) -> str:
        """The tool as people are shown it: `read`, `create_issue (github)`."""
        return format_tool_label(self.own_name, self.server)


class ToolDescription(Wire, frozen=True, omit_defaults=False):
    """A spec as it is listed and exported."""

    name: str
    """What a call names."""
    title: str
    """For people."""
    enabled: bool
    """Whether it is offered without being asked for."""
    version: str
    description: str
    """For the model: what it does and when to use it."""
    category: Category
    auto_execute: bool
    """A hint that it may run unasked; counts only for tools without effects."""
    permissions: tuple[Permission, ...]
    """What it needs."""
    side_effects: tuple[SideEffect, ...]
    """What it may change; empty for a tool that only looks."""
    input_schema: dict[str, Json]
    """JSON Schema of the arguments."""
    output_schema: dict[str, Json]
    """JSON Schema of the result's `data`."""


def format_tool_label(name: str, server: str | None) -> str:
    """A tool and who offers it, where that is another server."""
    return name if server is None or server == OWN_SERVER else f"{name} ({server})"


def parse_major_version(version: str) -> int | None:
    """The first number of a version, or None when it is none."""
    first = version.split(".", 1)[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 10 else None
