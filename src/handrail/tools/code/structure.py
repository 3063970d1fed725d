"""The tools code_outline, code_analyze, code_symbols: they show the structure of one file."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import Meta

from handrail.code.analysis import Analysis, analyze_source
from handrail.code.languages import LANGUAGES, find_language
from handrail.code.symbols import MAX_BYTES, SourceFile, Symbol, build_symbols, group_kind, list_symbols
from handrail.protocol.errors import ToolError
from handrail.protocol.text import escape_unprintable, format_count, to_one_line, truncate
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.tool import Context, Output, Tool, Touches
from handrail.workspace.roots import clip_path
from handrail.workspace.search.regex import Expression
from handrail.workspace.text import decode_text

Kind = Literal["all", "function", "class", "variable", "other"]

_MAX_SYMBOLS = 2_000
_MAX_DOC_CHARS = 80
_BROKEN = "Parts of the file could not be parsed. Definitions in them may be missing."


class CodeFileArguments(Arguments, frozen=True):
    """The arguments of tools that show one file of code."""

    path: Annotated[str, Meta(description="File, relative to the workspace.")]


class CodeSymbolsArguments(CodeFileArguments, frozen=True):
    """The arguments of code_symbols."""

    kind: Annotated[
        Kind, Meta(description="Kind of symbols; class includes types, other is headings, keys and rules.")
    ] = "all"
    pattern: Annotated[str, Meta(max_length=1_000, description="Regular expression that names must match.")] = ""


class CodeOutlineData(Wire, frozen=True, omit_defaults=False):
    """What was outlined."""

    path: str
    language: str
    lines: int
    symbols: int
    has_errors: bool


class CodeAnalysisData(Analysis, frozen=True, omit_defaults=False, kw_only=True):
    """The structure of a file."""

    path: str
    language: str


class CodeSymbolsData(Wire, frozen=True, omit_defaults=False):
    """The definitions that were found."""

    path: str
    language: str
    symbols: tuple[Symbol, ...]


def _define(
    name: str,
    title: str,
    description: str,
    data: type[Wire],
    intent: str,
    not_for: tuple[str, str],
    run: Callable[[Context, Any], Output],
    arguments: type[CodeFileArguments] = CodeFileArguments,
) -> Callable[[], Tool]:
    """What builds a tool that reads one file."""
    spec = ToolSpec(
        name=name,
        title=title,
        description=description,
        arguments=arguments,
        data=data,
        permissions=("fs.read",),
        auto_execute=True,
        enabled=False,
        plain_arguments=tuple(one for one in arguments.__struct_fields__ if one != "pattern"),
        stage="look",
        intent=intent,
        not_for=(not_for,),
    )
    return lambda: Tool(spec, run, lambda given: Touches(reads=(given.path,)))


def read_source(context: Context, path: str) -> tuple[bytes, str]:
    """The text of a file in UTF-8 with plain newlines, and its language. UNAVAILABLE if there is no grammar for it."""
    language = find_language(path)
    data = context.workspace.read_small_file(path, MAX_BYTES)
    if language is None:
        known = ", ".join(one.title for one in LANGUAGES.values())
        message = f"handrail has no grammar for {clip_path(path)}, which goes by its name. It knows {known}."
        raise ToolError("UNAVAILABLE", f"{message} Use read or grep.")
    text = decode_text(data)
    if text is None:
        raise ToolError("BINARY_FILE", f"{clip_path(path)} is not text.")
    return text.text.encode("utf-8", "replace"), language


# The outline


def _outline(context: Context, arguments: CodeFileArguments) -> Output:
    text, language = read_source(context, arguments.path)
    source = SourceFile(text, language)
    symbols = build_symbols(source)
    lines = len(source.line_starts) - 1
    path = clip_path(arguments.path)
    title = f"# {path} ({LANGUAGES[language].title}, {format_count(lines, 'line')})\n"
    body, left_out = _render_outline(source, symbols, context.limits.characters - len(title))
    warnings = [_BROKEN] if source.has_errors else []
    if left_out:
        warnings.append(f"{format_count(left_out, 'definition')} did not fit. Use code_symbols with a pattern.")
    return Output(
        summary=f"{format_count(len(symbols), 'definition')} in {path}",
        content=f"{title}\n{body}" if body else f"{title}\n(no definitions)\n",
        data=CodeOutlineData(
            path=arguments.path, language=language, lines=lines, symbols=len(symbols), has_errors=source.has_errors
        ),
        truncated=left_out > 0,
        meta={"returned": len(symbols) - left_out, "total": len(symbols)},
        warnings=tuple(warnings),
    )


def _render_outline(source: SourceFile, symbols: list[Symbol], budget: int) -> tuple[str, int]:
    """The rows that fit, and how many do not. The deepest levels are left out first."""
    pairs = zip(source.definitions, symbols, strict=True)
    rows = [(one.level, f"{'  ' * one.level}- {_render_row(symbol)}\n") for one, symbol in pairs]
    deepest = max((level for level, _ in rows), default=0)
    while deepest and sum(len(row) for level, row in rows if level <= deepest) > budget:
        deepest -= 1
    shown = [row for level, row in rows if level <= deepest]
    while shown and sum(map(len, shown)) > budget:
        shown = shown[: len(shown) * 3 // 4]
    return "".join(shown), len(rows) - len(shown)


def _render_row(symbol: Symbol) -> str:
    lines = f"{symbol.line}" if symbol.end_line == symbol.line else f"{symbol.line}–{symbol.end_line}"
    doc = truncate(to_one_line(symbol.doc.partition("\n")[0]), _MAX_DOC_CHARS)
    text = symbol.name if symbol.kind == "heading" else f"`{symbol.signature or symbol.name}`"
    return escape_unprintable(f"{text} {lines}{' — ' if doc else ''}{doc}")


# The analysis


def _analyze(context: Context, arguments: CodeFileArguments) -> Output:
    text, language = read_source(context, arguments.path)
    found = analyze_source(text, language)
    fields = {name: getattr(found, name) for name in Analysis.__struct_fields__}
    return Output(
        summary=(
            f"{format_count(len(found.functions), 'function')} and {format_count(len(found.classes), 'type')}"
            f" in {clip_path(arguments.path)}, complexity {found.complexity}"
        ),
        content=_render_analysis(found),
        data=CodeAnalysisData(path=arguments.path, language=language, **fields),
        warnings=(_BROKEN,) if found.has_errors else (),
    )


def _render_analysis(found: Analysis) -> str:
    blocks = [f"{found.lines} lines, complexity {found.complexity} (McCabe), at most {found.max_complexity} a function"]
    if found.imports:
        names = (f"{one.name} as {one.alias}" if one.alias else one.name for one in found.imports)
        blocks.append(f"imports: {', '.join(names)}")
    blocks += [
        f"global {one.name}{f' = {one.value}' if one.value else ''} (line {one.line})" for one in found.global_variables
    ]
    for one in found.classes:
        bases = f"({', '.join(one.bases)})" if one.bases else ""
        methods = f": {', '.join(one.methods)}" if one.methods else ""
        blocks.append(f"{one.kind} {_qualify(one.parent, one.name)}{bases} (lines {one.line}–{one.end_line}){methods}")
    for one in found.functions:
        name = _qualify(one.parent, one.name)
        lines = f"lines {one.line}–{one.end_line}"
        blocks.append(f"function {name}({', '.join(one.args)}) ({lines}, complexity {one.complexity})")
    return "".join(f"{escape_unprintable(block)}\n" for block in blocks)


def _qualify(parent: str | None, name: str) -> str:
    return f"{parent}.{name}" if parent else name


# The symbols


def _list_symbols(context: Context, arguments: CodeSymbolsArguments) -> Output:
    text, language = read_source(context, arguments.path)
    found = [one for one in list_symbols(text, language) if _is_wanted(one, arguments.kind)]
    if arguments.pattern:
        found = _filter_by_name(found, arguments.pattern)
    shown = found[:_MAX_SYMBOLS]
    rows = "".join(f"{_render_symbol(one)}\n" for one in shown)
    return Output(
        summary=f"{format_count(len(found), 'symbol')} in {clip_path(arguments.path)}",
        content=rows or "(none)\n",
        data=CodeSymbolsData(
            path=arguments.path,
            language=language,
            symbols=tuple(shown),
        ),
        truncated=len(shown) < len(found),
        meta={"returned": len(shown), "total": len(found)},
    )


def _is_wanted(symbol: Symbol, kind: Kind) -> bool:
    return kind in ("all", group_kind(symbol.kind))


def _filter_by_name(symbols: list[Symbol], pattern: str) -> list[Symbol]:
    names = [to_one_line(one.name) for one in symbols]
    text = "\n".join(names)
    try:
        starts = {line.start for line in Expression(pattern).lines(text)}
    except ToolError as error:
        if error.code != "UNAVAILABLE":
            raise
        message = "pattern has parts that cannot be matched in bounded time. Use a simpler one."
        raise ToolError("INVALID_ARGUMENT", message) from None
    found: list[Symbol] = []
    start = 0
    for symbol, name in zip(symbols, names, strict=True):
        if start in starts:
            found.append(symbol)
        start += len(name) + 1
    return found


def _render_symbol(symbol: Symbol) -> str:
    lines = f"{symbol.line}–{symbol.end_line}"
    return escape_unprintable(f"{symbol.kind} {_qualify(symbol.parent, symbol.name)} {lines}: {symbol.signature}")


build_code_outline_tool = _define(
    "code_outline",
    "Outline",
    "Outline a file of code or markup: its classes, functions, headings and keys as a Markdown list with lines. "
    "Much shorter than the file; read the lines you need afterwards.",
    CodeOutlineData,
    "see the structure of one file",
    ("the text of a file", "read"),
    _outline,
)
build_code_analyze_tool = _define(
    "code_analyze",
    "Analyze",
    "Analyze a file of code: imports, functions with arguments and complexity (McCabe, as ruff counts it), "
    "classes with bases and methods, global variables.",
    CodeAnalysisData,
    "list imports, arguments, base classes and complexity of one file",
    ("the structure of a file", "code_outline"),
    _analyze,
)
build_code_symbols_tool = _define(
    "code_symbols",
    "Symbols",
    "List the definitions in a file by kind and name, each with its lines and signature.",
    CodeSymbolsData,
    "find definitions in one file by kind and name",
    ("text in files", "grep"),
    _list_symbols,
    CodeSymbolsArguments,
)
