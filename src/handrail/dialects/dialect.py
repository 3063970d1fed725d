"""The form of a dialect: the tools of another system."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from handrail.dialects.limit import cut_text
from handrail.dialects.session_view import Surface
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.results import ToolResult
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import BASE_NAMES
from handrail.protocol.wire import Json
from handrail.runtime.registry import HELPED
from handrail.settings import LoadedSettings, Settings

DIALECTS = {
    name: name.replace("-", "_")
    for name in ("deepchat", "devminds", "clude", "agentica", "onething", "claude-code", "codex", "opencode")
}
"""The module of each dialect."""

Canonical = tuple[str, dict[str, Any]]
"""The name and the arguments of a canonical call. `@purpose` and `@confirm` become fields of the call, and `@shown` is
what its answer says."""
Collect = Callable[[Any], dict[str, Any]]
"""Makes canonical arguments of typed ones."""


class Parameter(NamedTuple):
    """A parameter of a foreign tool."""

    name: str
    kind: Any
    default: Any
    """NODEFAULT: it is required."""
    move: tuple[str, str] | None = None
    """The canonical parameter, and the expression that makes the value `{}` canonical."""
    within: "Mapping[str, Parameter]" = {}  # noqa: RUF012  a tuple, never changed
    """Those of the record that it is, or a list of."""


class Shown(Struct, frozen=True, gc=False):
    """What the answer says about a success. Its dialect puts it into form."""

    data: Any = {}
    title: str | None = None
    text: str | None = None
    """None: the text of the canonical result."""


NOTHING = Shown()
Show = Callable[["Answered"], Shown]


class Code(NamedTuple):
    """What a table cannot say about a tool."""

    call: Callable[[Any, dict[str, Any], Surface], Canonical] | None = None
    """Makes the canonical call of arguments and collected arguments. None: a call of the first tool."""
    show: Show | None = None
    then: "Callable[[Answered], Canonical | None] | None" = None
    """Another call that the answer needs, after the first succeeded."""


class DialectTool(Struct, frozen=True, kw_only=True):
    """A tool of another system."""

    name: str
    about: str = ""
    """The description for the model."""
    params: Mapping[str, Parameter] | None = None
    """None: those of the canonical tool."""
    to: tuple[str, ...] = ()
    """The canonical tools that it becomes. Without any, calls answer UNAVAILABLE."""
    answered_as: Mapping[str, str] = {}
    """By the canonical tool, the tool of the dialect whose answer is given."""
    collect: Collect | None = None
    """Makes canonical arguments. None: they are canonical."""
    code: "Code" = Code()
    free_text: str | None = None
    """The parameter that a call without JSON is."""
    on_request: bool = False
    """Whether it is offered only if the settings enable its canonical tools."""
    ignored: Mapping[str, str] = {}
    """Parameters without effect, and why. The answer says so if a call has one."""
    refused: Mapping[str, str] = {}
    """Parameters that cannot be used, and why."""
    lacks: str = ""
    """Why it cannot be offered."""

    @property
    def export_name(self) -> str:
        """The name in a form that every provider accepts."""
        return self.name.replace(".", "_")

    @staticmethod
    def list_given(notes: Mapping[str, str], given: Json, form: str) -> list[str]:
        """The notes of a table about the parameters that a call has."""
        named = cast("dict[str, Any]", given) if notes and isinstance(given, dict) else {}
        return [form.format(name, why) for name, why in notes.items() if named.get(name)]

    def translate(self, args: Any, given: Json, surface: Surface) -> Canonical:
        """The canonical call. `given`: the arguments before they got their types."""
        if refused := self.list_given(self.refused, given, "{}: {}. Nothing was run."):
            raise ToolError("UNAVAILABLE", refused[0])
        if self.collect is None:
            return self.to[0], given  # pyright: ignore[reportReturnType]  checked as a canonical call
        collected = self.collect(args)
        return (self.to[0], collected) if self.code.call is None else self.code.call(args, collected, surface)


class Answered(Struct, frozen=True, gc=False):
    """A call of the dialect with its canonical result. Tables name its attributes."""

    tool: DialectTool
    args: Any
    """The typed arguments. None: they are not known in this process."""
    given: Json
    call_id: str
    result: ToolResult[Any]
    data: Any
    content: str
    surface: Surface
    sent: Any = None
    """The arguments of the canonical call."""

    @property
    def message(self) -> str:
        """The error in the words of the dialect."""
        return "" if self.result.error is None else self.result.error.message

    @property
    def code(self) -> str:
        """The code of the error, empty after a success."""
        return "" if self.result.error is None else self.result.error.code

    @property
    def path(self) -> str:
        return self.surface.to_absolute(self.data.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.data.path.rpartition("/")[2]

    @property
    def stdout(self) -> str:
        """The output of a command, or its first stream."""
        return self.data.output if self.data.stdout is None else self.data.stdout

    @property
    def change(self) -> str:
        return "create" if self.data.created else "update"

    @property
    def written(self) -> str:
        """The new content of a file."""
        return self.sent["content"]

    @property
    def before(self) -> str | None:
        """The text of a file before the change. None if there was none, or it may not be read."""
        digest = self.data.before
        if digest is None or digest == self.data.hash:
            return None if digest is None else self.after
        return self.surface.read_before(self.result, self.data.path, digest)

    @property
    def after(self) -> str:
        return cut_text(self.written, self.surface.session.characters)

    @property
    def returned(self) -> int:
        return self.result.meta.returned or 0

    @property
    def first_line(self) -> int:
        return self.data.first_line or 1

    @property
    def last_line(self) -> int:
        return self.first_line + self.returned - 1

    @property
    def has_more(self) -> bool:
        """Whether there are lines after the last one that was read."""
        return self.result.meta.next_offset is not None

    @property
    def truncated(self) -> bool:
        return self.result.meta.truncated

    @property
    def is_picture(self) -> bool:
        return bool(self.result.attachments)


class DialectAnswer(Struct, frozen=True, gc=False):
    """The answer to a call."""

    text: str | None
    """What the model reads. None: the shape as JSON."""
    shape: Json
    """The whole answer in the system's own shape."""


class Dialect(Struct, frozen=True, kw_only=True):
    """The tools of another system with the shape of its answers."""

    name: str
    follows: str
    """The release or document that the tables follow."""
    tools: tuple[DialectTool, ...]
    render: Callable[[Answered, Shown], DialectAnswer]
    """Makes the answer of a success, or of an error."""
    invalid: Callable[[str, tuple[str, ...]], str] | None = None
    """Words an error of arguments."""
    unknown: str = "Unknown Agent tool: {name}"
    unwrap: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Makes the fields of a ToolCall of a call in the system's own form."""
    repairs_case: bool = False
    is_restricted: bool = False
    """Whether it works in the restricted profile."""
    splits_streams: bool = False
    """Whether its commands have two output streams."""


def load_dialect(name: str) -> Dialect:
    """UsageError if there is none of this name."""
    module = DIALECTS.get(name)
    if module is None:
        raise UsageError(f"there is no dialect {render_value(name)}; there are {', '.join(DIALECTS)}")
    return import_module(f"handrail.dialects.{module}").DIALECT


def list_helpers(dialect: Dialect) -> tuple[str, ...]:
    """The tools that exist for dialects alone and that this one uses."""
    return tuple(dict.fromkeys(name for tool in dialect.tools for name in tool.to if name in HELPED))


def adapt_settings(dialect: Dialect, loaded: LoadedSettings) -> Settings:
    """The settings with the tools enabled that the dialect is made of.

    Tools that the person disabled stay off. If the managed file lists tools, others stay off too.
    """
    settings, managed = loaded.settings, loaded.managed.get("tools.enable")
    built_on = dict.fromkeys(name for tool in dialect.tools for name in tool.to if not tool.on_request)
    wanted = [name for name in built_on if name not in {*BASE_NAMES, *HELPED, *settings.tools.enable}]
    allowed = wanted if not isinstance(managed, list | tuple) else [name for name in wanted if name in managed]
    tools = replace(settings.tools, enable=(*settings.tools.enable, *allowed))
    profile = "restricted" if dialect.is_restricted else settings.profile
    return replace(settings, tools=tools, profile=profile)
