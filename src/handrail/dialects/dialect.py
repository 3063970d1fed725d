"""The form of a dialect: a table of foreign tools."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from handrail.dialects.parameters import Parameter, build_struct
from handrail.protocol.errors import UsageError
from handrail.protocol.records import ProcessRecord, TodoItem
from handrail.protocol.results import ToolResult
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Json, Wire
from handrail.runtime.registry import HELPED
from handrail.settings import LoadedSettings, Settings

OPTIONAL = (
    "apply_patch",
    "multi_edit",
    "delete",
    "display",
    "question",
    "todo",
    "memory",
    "skill_list",
    "skill_control",
)
"""Canonical tools that exist and are off by default."""
DIALECTS = {
    "deepchat": "deepchat",
    "devminds": "devminds",
    "clude": "clude",
    "agentica": "agentica",
    "onething": "one_thing",
    "claude-code": "claude_code",
    "codex": "codex",
    "opencode": "opencode",
}
"""The module of each dialect."""


Canonical = tuple[str, dict[str, Any]]
"""The name and the arguments of a canonical call."""


class Surface(Protocol):
    """What a dialect may use of its session."""

    memory: dict[str, Any]
    """What its tools remember, such as fields of a todo item that no canonical call has."""

    def find_kind(self, path: str) -> str: ...

    def sort_newest(self, paths: tuple[str, ...]) -> list[str]: ...

    def to_absolute(self, path: str) -> str: ...

    def to_relative(self, path: str) -> str: ...

    def read_small_file(self, path: str, most: int) -> bytes: ...

    def list_todo(self) -> tuple[TodoItem, ...]: ...

    def list_processes(self) -> tuple[ProcessRecord, ...]: ...

    def wait_for_end(self, process_id: str, milliseconds: float) -> None: ...


class _AnyData(Wire, frozen=True):
    """The answer in the form of the dialect."""


class DialectTool(Struct, frozen=True, kw_only=True):
    """A tool of another system, as a row of its dialect's table."""

    name: str
    about: str
    """The description for the model."""
    params: Mapping[str, Parameter] | None = None
    """None: those of the canonical tool."""
    to: tuple[str, ...]
    """The canonical tools that it becomes. Without any, calls answer UNAVAILABLE."""
    call: "Translate | None" = None
    """Translates the arguments. None: they are canonical."""
    show: "Show | None" = None
    """What the answer says about a success, in the form of its dialect."""
    then: "Callable[[Answered], Canonical | None] | None" = None
    """Another call that the answer needs, after the first succeeded."""
    free_text: str | None = None
    """The parameter that a call without JSON is."""
    on_request: bool = False
    """Whether it is offered only if the settings enable its canonical tools."""
    lacks: str = ""
    """Why it cannot be offered."""

    @property
    def export_name(self) -> str:
        """The name in a form that every provider accepts."""
        return self.name.replace(".", "_")


class Answered(Struct, frozen=True, kw_only=True):
    """A call of the dialect with its canonical result."""

    tool: DialectTool
    args: Any
    """The typed arguments. None: they are not known in this process."""
    given: Json
    call_id: str
    result: ToolResult[Any]
    surface: Surface
    first: ToolResult[Any] | None = None
    """The result of the call before, if there were two."""

    @property
    def data(self) -> Any:
        return self.result.data

    @property
    def ok(self) -> bool:
        return self.result.error is None

    @property
    def message(self) -> str:
        """The error in the words of the dialect."""
        return "" if self.result.error is None else self.result.error.message

    @property
    def content(self) -> str:
        return self.result.content


Translate = Callable[[Any, Surface], Canonical]
Show = Callable[[Answered], Any]


def declare(
    name: str,
    about: str,
    to: str,
    params: Mapping[str, Parameter] | None,
    call: Translate | None = None,
    show: Show | None = None,
) -> DialectTool:
    """A row of the table. `to`: the canonical tools, with blanks between."""
    return DialectTool(name=name, about=about, to=tuple(to.split()), params=params, call=call, show=show)


class DialectAnswer(NamedTuple):
    """The answer to a call."""

    text: str
    """What the model reads."""
    shape: Json
    """The whole answer in the system's own shape."""


class Dialect(Struct, frozen=True, kw_only=True):
    """The tools of another system with the shape of its answers."""

    name: str
    follows: str
    """The release or document that the tables follow."""
    tools: tuple[DialectTool, ...]
    render: Callable[[Answered, Any], DialectAnswer]
    """Makes the answer. Gets what `show` of the tool returned, or None after an error."""
    parameters: Mapping[str, str] = {}
    """Its names for canonical parameters, in messages."""
    invalid: Callable[[str, tuple[str, ...]], str] | None = None
    """Words an error of arguments."""
    unknown: str = "Unknown Agent tool: {name}"
    repairs_case: bool = False
    is_restricted: bool = False
    """Whether it works in the restricted profile."""
    splits_streams: bool = False
    """Whether its commands have two output streams."""
    keeps_canonical: bool = False
    """Whether its names are the canonical ones."""

    @property
    def canonical_tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for tool in self.tools for name in tool.to))


def load_dialect(name: str) -> Dialect:
    """UsageError if there is none of this name."""
    module = DIALECTS.get(name)
    if module is None:
        raise UsageError(f"there is no dialect {render_value(name)}; there are {', '.join(DIALECTS)}")
    return import_module(f"handrail.dialects.{module}").DIALECT


def list_helpers(dialect: Dialect) -> tuple[str, ...]:
    """The tools that exist for dialects alone and that this one uses."""
    return tuple(name for name in dialect.canonical_tools if name in HELPED)


def adapt_settings(dialect: Dialect, loaded: LoadedSettings) -> Settings:
    """The settings with the tools enabled that the dialect is made of.

    Tools that the person disabled stay off. If the managed file lists tools, others stay off too.
    """
    settings, managed = loaded.settings, loaded.managed.get("tools.enable")
    built_on = {name for tool in dialect.tools for name in tool.to if not tool.on_request}
    wanted = [name for name in OPTIONAL if name in built_on and name not in settings.tools.enable]
    allowed = wanted if not isinstance(managed, list | tuple) else [name for name in wanted if name in managed]
    tools = replace(settings.tools, enable=(*settings.tools.enable, *allowed))
    profile = "restricted" if dialect.is_restricted else settings.profile
    return replace(settings, tools=tools, profile=profile)


def build_spec(dialect: Dialect, tool: DialectTool) -> ToolSpec:
    """The spec that arguments are checked against."""
    invalid = dialect.invalid
    return ToolSpec(
        name=tool.export_name,
        title=tool.name,
        description=tool.about,
        arguments=build_struct(tool.export_name, tool.params or {}),
        data=_AnyData,
        format_error=None if invalid is None else lambda texts: invalid(tool.name, texts),
    )
