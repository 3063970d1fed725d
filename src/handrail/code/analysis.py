"""Describes the structure of a file: imports, functions, classes, global variables, complexity.

The complexity of a function is McCabe's, as ruff's C901 counts it: 1, and 1 for each branch, loop, case, exception
handler and nested function in it. Boolean operators do not count. A file has the sum of its functions.
"""

import re
from typing import TYPE_CHECKING

from handrail.code.symbols import Definition, SourceFile, Symbol, build_symbols, find_function
from handrail.protocol.wire import Wire

if TYPE_CHECKING:
    from tree_sitter import Node

_FUNCTIONS = frozenset(("constructor", "function", "method"))
_CLASSES = frozenset(("class", "enum", "impl", "interface", "module", "record", "struct", "trait", "union"))
_VARIABLES = frozenset(("constant", "variable"))
_MAX_VALUE_CHARS = 120
_ALIAS = re.compile(r"(.+?)\s+as\s+([\w$]+)\Z", re.DOTALL)
_QUOTES = "\"'`<>"


class ImportData(Wire, frozen=True):
    """An import."""

    name: str
    line: int
    alias: str | None = None


class FunctionData(Wire, frozen=True, omit_defaults=False):
    """A function or method."""

    name: str
    args: tuple[str, ...]
    line: int
    end_line: int
    parent: str | None
    doc: str
    complexity: int


class ClassData(Wire, frozen=True, omit_defaults=False):
    """A class, or the like in its language: a struct, an interface, an enumeration."""

    name: str
    kind: str
    bases: tuple[str, ...]
    methods: tuple[str, ...]
    line: int
    end_line: int
    parent: str | None
    doc: str


class GlobalData(Wire, frozen=True, omit_defaults=False):
    """A variable or constant outside of functions and classes."""

    name: str
    value: str | None
    line: int


class Analysis(Wire, frozen=True, omit_defaults=False):
    """The structure of a file."""

    imports: tuple[ImportData, ...]
    functions: tuple[FunctionData, ...]
    """All functions, with methods and nested ones."""
    classes: tuple[ClassData, ...]
    global_variables: tuple[GlobalData, ...]
    lines: int
    complexity: int
    max_complexity: int
    """Of one function."""
    has_errors: bool
    """Whether parts of the file could not be parsed. They are missing here."""


def analyze_source(text: bytes, language: str) -> Analysis:
    """The structure of a text in UTF-8. MissingGrammarError if the grammar is not installed."""
    source = SourceFile(text, language, analysis=True)
    symbols = dict(zip(source.definitions, build_symbols(source), strict=True))
    owned = {name: _group_by_owner(source, name) for name in ("parameter", "base", "value")}
    complexity = _count_complexity(source)

    def list_texts(kind: str, one: Definition) -> tuple[str, ...]:
        return tuple(" ".join(source.get_text(node).split()) for node in owned[kind].get(one, ()))

    functions = tuple(
        FunctionData(
            name=symbol.name,
            args=list_texts("parameter", one),
            line=symbol.line,
            end_line=symbol.end_line,
            parent=symbol.parent,
            doc=symbol.doc,
            complexity=complexity[one],
        )
        for one, symbol in symbols.items()
        if one.kind in _FUNCTIONS
    )
    classes = tuple(
        ClassData(
            name=symbol.name,
            kind=symbol.kind,
            bases=list_texts("base", one),
            methods=_list_methods(one, symbol, symbols),
            line=symbol.line,
            end_line=symbol.end_line,
            parent=symbol.parent,
            doc=symbol.doc,
        )
        for one, symbol in symbols.items()
        if one.kind in _CLASSES
    )
    variables = tuple(
        GlobalData(symbol.name, next(map(_clip, list_texts("value", one)), None), symbol.line)
        for one, symbol in symbols.items()
        if one.kind in _VARIABLES and symbol.parent is None
    )
    outer = [one for one in complexity if find_function(one.parent) is None]
    return Analysis(
        imports=tuple(_list_imports(source)),
        functions=functions,
        classes=classes,
        global_variables=variables,
        lines=len(source.line_starts) - 1,
        complexity=sum(complexity[one] for one in outer),
        max_complexity=max(complexity.values(), default=0),
        has_errors=source.has_errors,
    )


def _group_by_owner(source: SourceFile, capture: str) -> "dict[Definition, list[Node]]":
    """The nodes of a capture by the definition that they belong to: an inner function has its own parameters."""
    grouped: dict[Definition, list[Node]] = {}
    for node in source.captures.get(capture, ()):
        owner = source.find_definition(node.start_byte)
        if owner is not None and not _is_comment(node):
            grouped.setdefault(owner, []).append(node)
    return grouped


def _is_comment(node: "Node") -> bool:
    return "comment" in node.type


def _count_complexity(source: SourceFile) -> dict[Definition, int]:
    counts = {one: 1 for one in source.definitions if one.kind in _FUNCTIONS}
    places = {node.start_byte for node in source.captures.get("branch", ())}
    owners = [source.find_definition(place) for place in places]
    owners += [one.parent for one in counts]  # a nested function counts for those around it
    for owner in owners:
        function = find_function(owner)
        while function is not None:
            counts[function] += 1
            function = find_function(function.parent)
    return counts


def _list_methods(one: Definition, symbol: Symbol, symbols: dict[Definition, Symbol]) -> tuple[str, ...]:
    """The methods in a class, and those that name it as their receiver elsewhere in the file."""
    full = f"{symbol.parent}.{symbol.name}" if symbol.parent else symbol.name
    return tuple(
        other.name
        for inner, other in symbols.items()
        if inner.kind in _FUNCTIONS and (inner.parent is one or (inner.scopes and other.parent == full))
    )


def _list_imports(source: SourceFile) -> list[ImportData]:
    """The imports by line. A name that is imported from a module stands behind it: `decimal.Decimal`."""
    captures = source.captures
    named = [(node.start_byte, source.get_text(node)) for node in captures.get("import", ())]
    for module, member in zip(captures.get("module", ()), captures.get("member", ()), strict=True):
        prefix = source.get_text(module)
        named.append((member.start_byte, f"{prefix}{'' if prefix.endswith('.') else '.'}{source.get_text(member)}"))
    found: list[ImportData] = []
    for start, text in sorted(set(named)):
        name, alias = " ".join(text.split()).strip(_QUOTES), None
        if aliased := _ALIAS.fullmatch(name):
            name, alias = aliased[1], aliased[2]
        found.append(ImportData(name, source.find_line(start), alias))
    return found


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[: _MAX_VALUE_CHARS - 1]}…"
