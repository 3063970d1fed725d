"""The tools lsp_definition, lsp_references, lsp_hover, lsp_symbols: questions about a position or a name."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from handrail.lsp.messages import LspLocation, LspSymbol
from handrail.lsp.servers import LanguageServers, ServedFile, SourceLocation
from handrail.lsp.source_text import clean_text
from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text, escape_control, format_count
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Context, Output, Tool, Touches

_Entry = TypeVar("_Entry")
_Locations = LspLocation | tuple[LspLocation, ...]
_LOCATIONS: Any = _Locations
_MAX_LISTED = 500
_MAX_HOVER_CHARS = 8_000
_MAX_LINE_CHARS = 160
_MAX_DEPTH = 20
_MAX_NAME_CHARS = 200
_KIND_NAMES = (
    "symbol file module namespace package class method property field constructor enum interface function variable "
    "constant string number boolean array object key null member struct event operator parameter"
)
_KINDS = _KIND_NAMES.split()
"""In the order of the protocol."""
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


class LspSymbolsArguments(Arguments, frozen=True):
    """The arguments of lsp_symbols."""

    path: Annotated[
        str | None, Meta(description="The file whose symbols to list. With query: a file of the language to search in.")
    ] = None
    query: Annotated[
        Annotated[str, Meta(max_length=200)] | None,
        Meta(description="A part of a name, to search the whole project for."),
    ] = None

    def __post_init__(self) -> None:
        if self.path is None and self.query is None:
            raise ValueError("give path or query")


class CodeSymbol(SourceLocation, frozen=True, omit_defaults=False):
    """A class, a function, a variable."""

    name: str
    kind: str
    """As the protocol calls it: class, method, function, variable, …"""
    container: str
    """The name of what it is part of. Empty if it is part of nothing else."""


class LspSymbolsData(Wire, frozen=True, omit_defaults=False):
    """The symbols."""

    symbols: tuple[CodeSymbol, ...]


_POSITIONS = " (line:character, both from 0):"
COUNTING = "line and character count from 0; read and grep count lines from 1."


def build_spec(
    name: str,
    description: str,
    arguments: type[Arguments],
    data: type[Wire],
    intent: str,
    *not_for: tuple[str, str],
    changes: bool = False,
) -> ToolSpec:
    """The spec of a tool that asks a language server. `changes`: it changes files."""
    return ToolSpec(
        name=name,
        title=name.removeprefix("lsp_").capitalize(),
        description=description,
        arguments=arguments,
        data=data,
        permissions=("fs.read", "fs.write") if changes else ("fs.read",),
        side_effects=("files",) if changes else (),
        enabled=False,
        plain_arguments=("path",) if "path" in arguments.__struct_fields__ else (),
        stage="change" if changes else "look",
        intent=intent,
        not_for=not_for,
    )


def _define(
    name: str, description: str, data: type[Wire], intent: str, run: Callable[..., Output], *given: str
) -> Callable[[LanguageServers], Tool]:
    """What builds a tool that answers a question about a position."""
    text = f"{description}, by a language server. {COUNTING}"
    spec = build_spec(name, text, PositionArguments, data, intent, ("any other text", "grep"))
    return lambda servers: Tool(spec, partial(run, servers, *given), lambda arguments: Touches(reads=(arguments.path,)))


def _find_locations(
    servers: LanguageServers, method: str, noun: str, context: Context, arguments: PositionArguments
) -> Output:
    file = servers.open_file(arguments.path)
    params = file.locate(arguments.line, arguments.character) | {"context": {"includeDeclaration": True}}
    is_whole = noun == "reference"
    answer: _Locations | None = file.ask(method, _LOCATIONS, params, context.cancelled, whole=is_whole)
    lines = servers.locate((answer,) if isinstance(answer, LspLocation) else answer or (), file)
    found = sorted(lines) if is_whole else list(lines)
    summary = f"{format_count(len(found), noun)} ({file.server.name})" if found else f"no {noun} found"

    def render(place: SourceLocation) -> str:
        return f"{_render_position(place)}  {clip_text(lines[place], _MAX_LINE_CHARS)}".rstrip()

    output = build_list_output(summary, found, render, LocationsData, _POSITIONS)
    if not file.server.is_indexing:
        return output
    warning = f"{file.server.name} still reads the project; the answer may be incomplete."
    return replace(output, warnings=(warning,))


def build_list_output(
    summary: str,
    found: Sequence[_Entry],
    render: Callable[[_Entry], str],
    build_data: Callable[[tuple[_Entry, ...]], Any],
    end: str = ".",
) -> Output:
    """The output of a tool that lists what it found, as far as a result takes it."""
    shown = tuple(found[:_MAX_LISTED])
    head = f"{summary}{end}" if shown else f"{summary.capitalize()}."
    return Output(
        summary=summary,
        content="\n".join((head, *map(render, shown))) + "\n",
        data=build_data(shown),
        truncated=len(shown) < len(found),
        meta={"returned": len(shown), "total": len(found)},
    )


def _render_position(place: SourceLocation) -> str:
    return f"{escape_control(place.file)}:{place.line}:{place.character}"


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


build_lsp_definition_tool = _define(
    "lsp_definition",
    "Find where the symbol at a position of a file is defined",
    LocationsData,
    "find where a symbol is defined",
    *(_find_locations, "textDocument/definition", "definition"),
)
build_lsp_references_tool = _define(
    "lsp_references",
    "Find every use of the symbol at a position of a file, its definition included",
    LocationsData,
    "find every use of a symbol",
    *(_find_locations, "textDocument/references", "reference"),
)
build_lsp_hover_tool = _define(
    "lsp_hover",
    "Describe the symbol at a position of a file: its type, signature and documentation",
    LspHoverData,
    "show the type and the documentation of a symbol",
    _hover,
)


# Symbols

LSP_SYMBOLS = build_spec(
    "lsp_symbols",
    "List the classes, functions and variables of a file (path), or search the whole project for symbols by name "
    "(query), by a language server. Returns their positions, which count from 0, for the other lsp_ tools.",
    LspSymbolsArguments,
    LspSymbolsData,
    "find classes and functions by name",
    ("any other text", "grep"),
)


def build_lsp_symbols_tool(servers: LanguageServers) -> Tool:
    def run(context: Context, arguments: LspSymbolsArguments) -> Output:
        file = servers.open_file(arguments.path) if arguments.path is not None else None
        if file is not None and arguments.query is None:
            answer = file.ask("textDocument/documentSymbol", tuple[LspSymbol, ...], {}, context.cancelled)
            found = list(_walk(file, answer or (), ""))
        else:
            found = _search(servers, context, arguments.query or "", file)
        summary = format_count(len(found), "symbol") if found else "no symbols"
        return build_list_output(summary, found, _render_symbol, LspSymbolsData, _POSITIONS)

    return Tool(LSP_SYMBOLS, run, lambda arguments: Touches(reads=(arguments.path,) if arguments.path else ()))


def _walk(file: ServedFile, symbols: tuple[LspSymbol, ...], container: str, depth: int = 0) -> Iterator[CodeSymbol]:
    for one in symbols:
        place = one.selection_range or (one.location.range if one.location else None)
        if place is not None:
            location = SourceLocation(file.shown, place.start.line, file.text.to_character(place.start))
            yield _build_symbol(one, location, container)
        if depth < _MAX_DEPTH:
            yield from _walk(file, one.children or (), one.name, depth + 1)


def _search(servers: LanguageServers, context: Context, query: str, file: ServedFile | None) -> list[CodeSymbol]:
    running = [file.server] if file is not None else servers.list_project_servers()
    if not running:
        raise ToolError("UNAVAILABLE", "No language server runs yet. Give the path of a file of the language too.")
    texts = {file.path: file.text.text} if file is not None else {}
    found: list[CodeSymbol] = []
    for server in running:
        kind = tuple[LspSymbol, ...]
        answer = server.request("workspace/symbol", {"query": query}, kind, texts, context.cancelled, whole=True)
        for one in (answer or ())[:_MAX_LISTED]:
            places = servers.locate((one.location,) if one.location else ())
            found += [_build_symbol(one, place, "") for place in places]
    return found


def _render_symbol(one: CodeSymbol) -> str:
    return f"{_render_position(one)}  {one.kind} {f'{one.container}.' if one.container else ''}{one.name}"


def _build_symbol(symbol: LspSymbol, place: SourceLocation, container: str) -> CodeSymbol:
    kind = _KINDS[symbol.kind] if 0 <= symbol.kind < len(_KINDS) else _KINDS[0]
    names = (symbol.name, symbol.container_name or container)
    name, container = (clip_text(escape_control(text), _MAX_NAME_CHARS) for text in names)
    return CodeSymbol(place.file, place.line, place.character, name, kind, container)
