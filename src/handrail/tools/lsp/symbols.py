"""The tool lsp_symbols."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from handrail.lsp.messages import LspSymbol
from handrail.lsp.servers import LanguageServers, ServedFile, SourceLocation
from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text, escape_control
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.lsp.lookup import POSITIONS, build_list_output, render_position
from handrail.tools.text import format_count
from handrail.tools.tool import Context, Output, Tool, Touches

_MAX_SYMBOLS = 500
_MAX_DEPTH = 20
_MAX_NAME_CHARS = 200
_KIND_NAMES = (
    "symbol file module namespace package class method property field constructor enum interface function variable "
    "constant string number boolean array object key null member struct event operator parameter"
)
_KINDS = _KIND_NAMES.split()
"""In the order of the protocol."""


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


class CodeSymbol(Wire, frozen=True, omit_defaults=False):
    """A class, a function, a variable."""

    name: str
    kind: str
    """As the protocol calls it: class, method, function, variable, …"""
    container: str
    """The name of what it is part of. Empty if it is part of nothing else."""
    file: str
    line: int
    """From 0."""
    character: int
    """From 0, in characters."""


class LspSymbolsData(Wire, frozen=True, omit_defaults=False):
    """The symbols."""

    symbols: tuple[CodeSymbol, ...]


LSP_SYMBOLS = ToolSpec(
    name="lsp_symbols",
    title="Symbols",
    description=(
        "List the classes, functions and variables of a file (path), or search the whole project for symbols by name "
        "(query), by a language server. Returns their positions, which count from 0, for the other lsp_ tools."
    ),
    arguments=LspSymbolsArguments,
    data=LspSymbolsData,
    permissions=("fs.read",),
    enabled=False,
    plain_arguments=("path",),
    stage="look",
    intent="find classes and functions by name",
    not_for=(("any other text", "grep"),),
)


def build_lsp_symbols_tool(servers: LanguageServers) -> Tool:
    def run(context: Context, arguments: LspSymbolsArguments) -> Output:
        file = servers.open_file(arguments.path) if arguments.path is not None else None
        if file is not None and arguments.query is None:
            answer = file.ask("textDocument/documentSymbol", tuple[LspSymbol, ...], {}, context.cancelled)
            found = list(_walk(file, answer or (), ""))
        else:
            found = _search(servers, context, arguments.query or "", file)
        shown = found[:_MAX_SYMBOLS]
        rows = [
            f"{render_position(one.file, one.line, one.character)}  {one.kind} "
            f"{f'{one.container}.' if one.container else ''}{one.name}"
            for one in shown
        ]
        summary = format_count(len(found), "symbol") if found else "no symbols"
        return build_list_output(summary, rows, LspSymbolsData(symbols=tuple(shown)), len(found), POSITIONS)

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
        for one in (answer or ())[:_MAX_SYMBOLS]:
            places = servers.locate((one.location,) if one.location else ())
            found += [_build_symbol(one, place, "") for place in places]
    return found


def _build_symbol(symbol: LspSymbol, place: SourceLocation, container: str) -> CodeSymbol:
    kind = _KINDS[symbol.kind] if 0 <= symbol.kind < len(_KINDS) else _KINDS[0]
    names = (symbol.name, symbol.container_name or container)
    name, container = (clip_text(escape_control(text), _MAX_NAME_CHARS) for text in names)
    return CodeSymbol(
        name=name, kind=kind, container=container, file=place.file, line=place.line, character=place.character
    )
