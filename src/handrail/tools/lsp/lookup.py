"""The tools lsp_definition, lsp_references, lsp_hover: questions about a position in a file."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import astuple, replace

from handrail.lsp.messages import LspLocation
from handrail.lsp.servers import LanguageServers, SourceLocation
from handrail.lsp.source_text import clean_text
from handrail.protocol.text import clip_text, escape_control
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.text import format_count
from handrail.tools.tool import Context, Output, Tool, Touches

_Locations = LspLocation | tuple[LspLocation, ...]
_LOCATIONS: Any = _Locations
_MAX_LOCATIONS = 500
_MAX_HOVER_CHARS = 8_000
_MAX_LINE_CHARS = 160
_Line = Annotated[int, Meta(ge=0, le=10_000_000, description="The line, counted from 0.")]
_Character = Annotated[int, Meta(ge=0, le=10_000_000, description="The character in the line, counted from 0.")]
SourcePath = Annotated[str, Meta(description="The file, relative to the workspace.")]


class PositionArguments(Arguments, frozen=True):
    """A position in a file."""

    path: SourcePath
    line: _Line
    character: _Character


class LocationsData(Wire, frozen=True, omit_defaults=False):
    """The places."""

    locations: tuple[SourceLocation, ...]


class LspHoverData(Wire, frozen=True, omit_defaults=False):
    """The description. Empty if there is none."""

    text: str


POSITIONS = " (line:character, both from 0):"
_COUNTING = "line and character count from 0; read and grep count lines from 1."


def _build_spec(name: str, title: str, description: str, data: type[Wire], intent: str) -> ToolSpec:
    return ToolSpec(
        name=name,
        title=title,
        description=f"{description}, by a language server. {_COUNTING}",
        arguments=PositionArguments,
        data=data,
        permissions=("fs.read",),
        enabled=False,
        plain_arguments=("path",),
        stage="look",
        intent=intent,
        not_for=(("any other text", "grep"),),
    )


LSP_DEFINITION = _build_spec(
    "lsp_definition",
    "Definition",
    "Find where the symbol at a position of a file is defined",
    LocationsData,
    "find where a symbol is defined",
)
LSP_REFERENCES = _build_spec(
    "lsp_references",
    "References",
    "Find every use of the symbol at a position of a file, its definition included",
    LocationsData,
    "find every use of a symbol",
)
LSP_HOVER = _build_spec(
    "lsp_hover",
    "Hover",
    "Describe the symbol at a position of a file: its type, signature and documentation",
    LspHoverData,
    "show the type and the documentation of a symbol",
)


def build_lsp_definition_tool(servers: LanguageServers) -> Tool:
    return _build(LSP_DEFINITION, partial(_find_locations, servers, "textDocument/definition", "definition"))


def build_lsp_references_tool(servers: LanguageServers) -> Tool:
    return _build(LSP_REFERENCES, partial(_find_locations, servers, "textDocument/references", "reference"))


def build_lsp_hover_tool(servers: LanguageServers) -> Tool:
    return _build(LSP_HOVER, partial(_hover, servers))


def _build(spec: ToolSpec, run: Callable[[Context, Any], Output]) -> Tool:
    return Tool(spec, run, lambda arguments: Touches(reads=(arguments.path,)))


def _find_locations(
    servers: LanguageServers, method: str, noun: str, context: Context, arguments: PositionArguments
) -> Output:
    file = servers.open_file(arguments.path)
    params = file.locate(arguments.line, arguments.character) | {"context": {"includeDeclaration": True}}
    is_whole = noun == "reference"
    answer: _Locations | None = file.ask(method, _LOCATIONS, params, context.cancelled, whole=is_whole)
    lines = servers.locate((answer,) if isinstance(answer, LspLocation) else answer or (), file)
    found = sorted(lines) if is_whole else list(lines)
    shown = found[:_MAX_LOCATIONS]
    rows = [f"{render_position(*astuple(one))}  {clip_text(lines[one], _MAX_LINE_CHARS)}".rstrip() for one in shown]
    summary = f"{format_count(len(found), noun)} ({file.server.name})" if found else f"no {noun} found"
    output = build_list_output(summary, rows, LocationsData(locations=tuple(shown)), len(found), POSITIONS)
    if not file.server.is_indexing:
        return output
    warning = f"{file.server.name} still reads the project; the answer may be incomplete."
    return replace(output, warnings=(warning,))


def build_list_output(summary: str, rows: Sequence[str], data: Any, total: int, end: str = ".") -> Output:
    """The output of a tool that lists these rows, which may be the first of more."""
    head = f"{summary}{end}" if rows else f"{summary.capitalize()}."
    return Output(
        summary=summary,
        content="\n".join((head, *rows)) + "\n",
        data=data,
        truncated=len(rows) < total,
        meta={"returned": len(rows), "total": total},
    )


def render_position(file: str, line: int, character: int) -> str:
    return f"{escape_control(file)}:{line}:{character}"


def _hover(servers: LanguageServers, context: Context, arguments: PositionArguments) -> Output:
    file = servers.open_file(arguments.path)
    params = file.locate(arguments.line, arguments.character)
    hover = file.ask("textDocument/hover", dict[str, Any], params, context.cancelled) or {}
    text = clean_text(_render_contents(hover.get("contents")), _MAX_HOVER_CHARS)
    summary = (text.strip().partition("\n")[0] or "no description")[:_MAX_LINE_CHARS]
    return Output(summary=summary, content=f"{text or 'No description.'}\n", data=LspHoverData(text=text))


def _render_contents(contents: Any) -> str:
    """The text of MarkupContent, a MarkedString, or a list of them."""
    match contents:
        case str():
            return contents.strip()
        case {"value": str(value)}:
            return value.strip()
        case list():
            return "\n\n".join(filter(None, map(_render_contents, contents[:20])))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case _:
            return ""
