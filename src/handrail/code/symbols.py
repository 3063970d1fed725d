"""Lists the definitions of a file. A stand-in for Python until the module of the code tools is merged."""

import ast
from collections.abc import Iterator

import msgspec

from handrail.code.languages import MissingGrammarError


class Symbol(msgspec.Struct, frozen=True):
    """A definition in a file."""

    name: str
    kind: str
    line: int
    """The line of its name, from 1."""
    end_line: int
    parent: str | None
    """The definitions around it, as in `Outer.Inner`."""
    signature: str
    """Its text without its body, in one line."""
    doc: str = ""


def list_symbols(text: bytes, language: str) -> list[Symbol]:
    """The definitions of a text in UTF-8, in their order. MissingGrammarError if the grammar is not installed."""
    if language != "python":
        raise MissingGrammarError("UNAVAILABLE", f"The grammar of {language} is not installed.")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = text.decode(errors="replace").split("\n")
    return list(_walk(tree, "", lines))


def _walk(node: ast.AST, scope: str, lines: list[str]) -> Iterator[Symbol]:
    for one in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kind = (
                "class" if isinstance(one, ast.ClassDef) else "method" if isinstance(node, ast.ClassDef) else "function"
            )
            signature = lines[one.lineno - 1].strip().rstrip(":")
            yield Symbol(one.name, kind, one.lineno, one.end_lineno or one.lineno, scope or None, signature)
            inner = f"{scope}.{one.name}" if scope else one.name
        if isinstance(one, ast.stmt | ast.ExceptHandler):
            yield from _walk(one, inner, lines)
