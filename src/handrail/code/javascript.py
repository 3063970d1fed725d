"""Finds syntax errors in JavaScript or TypeScript with tree-sitter, which is the extra `code`.

Each function returns the error as a sentence, or None. Without tree-sitter it returns None.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.code.treesitter import parse_with_timeout

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

_UNKNOWN = re.compile(
    rb"(?<![\w$.])accessor(?=[ \t]+(?!(?:in|instanceof|as|satisfies|of)\b)[\w$#\[\"'])"  # class A { accessor b = 1 }
    rb"|(?<=\bexport default )abstract(?= class\b)"
    rb"|(?<=\bexport )type(?= \*)"
    rb"|(?<=\bimport )(?:defer(?= \*)|source(?= (?!from\b)[\w$]+ from\b))"
    rb"|(?<=\bimport)\.(?:defer|source)(?=\()"
    rb"|(?<=[\"'] )with \{[^{}\n]{0,200}\}"  # export * from "a" with { type: "json" }
    rb"|(?<=>)\?\.(?=\()"  # a<b>?.(c)
)
_VARIANCE = re.compile(rb"([<,]\s{0,200}(?:/\*{1,2}[^*]{0,200}\*/\s{0,200})?)(in[ \t]+out|in|out)(?=[ \t]+[\w$])")
"""`in` and `out` before a type parameter."""
_IMPORTED = re.compile(
    rb"(?<![\w$.])import(\(\s{0,200}(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\")\s{0,200},?\s{0,200}\))"
    rb"(?=\.[\w$]|\s{0,200}>)"
)
"""A module in a type, as in `import("a").B` and `f<typeof import("a")>()`."""
_UNENDED = re.compile(
    rb"(?<=[\w$>\])}])(?<!=>)(\r?\n(?:[ \t]*(?://[^\n]{0,200})?\n){0,9}[ \t]{0,200})[ \t]"
    rb"(?=<[\w$\r\n]|in(?:[\d_$][\w$]*)?\??:)"
)
"""The end of an interface member, if the next line could continue its type."""


def find_javascript_problem(text: str) -> str | None:
    """Check JavaScript, with JSX."""

    def load() -> "Language":
        import tree_sitter_javascript  # noqa: PLC0415  only for files of this kind
        from tree_sitter import Language  # noqa: PLC0415

        return Language(tree_sitter_javascript.language())

    return _find_problem(text, load, "JavaScript")


def find_typescript_problem(text: str) -> str | None:
    return _find_problem(text, lambda: _load_typescript(jsx=False), "TypeScript")


def find_tsx_problem(text: str) -> str | None:
    return _find_problem(text, lambda: _load_typescript(jsx=True), "TSX")


def _load_typescript(*, jsx: bool) -> "Language":
    import tree_sitter_typescript as grammars  # noqa: PLC0415  only for files of this kind
    from tree_sitter import Language  # noqa: PLC0415

    return Language(grammars.language_tsx() if jsx else grammars.language_typescript())


def _find_problem(text: str, load: Callable[[], "Language"], name: str) -> str | None:
    data = text.encode(errors="replace")
    try:
        tree = _parse_with_errors(load(), data)
    except (ImportError, ValueError):  # not installed, or grammar and parser do not fit
        return None
    return tree and f"it is not what tree-sitter knows as {name}: {_describe_error(_find_first_error(tree), data)}"


def _parse_with_errors(language: "Language", data: bytes) -> "Tree | None":
    """The tree if it has errors. Syntax that the grammar lacks is no error."""
    tree = parse_with_timeout(language, data)
    if tree is None or not tree.root_node.has_error:
        return None
    stripped = _strip_unknown_syntax(data)
    if stripped == data:
        return tree
    tree = parse_with_timeout(language, stripped)
    return tree if tree and tree.root_node.has_error else None


def _find_first_error(tree: "Tree") -> "Node":
    """The innermost node of the first error."""
    cursor = tree.walk()
    found = cursor.node or tree.root_node
    while cursor.goto_first_child():
        while (node := cursor.node) and not node.has_error:
            if not cursor.goto_next_sibling():
                return found
        found = node or found
    return found


def _describe_error(node: "Node", data: bytes) -> str:
    """Count lines by bytes: in 0.26.0 the row of a point frees a number that is still in use."""
    first, last = (data.count(b"\n", 0, place) + 1 for place in (node.start_byte, node.end_byte))
    if node.is_missing:
        return f"{node.type} is missing in line {first}"
    return f"line {first}" if first == last else f"somewhere in lines {first}–{last}"


def _strip_unknown_syntax(data: bytes) -> bytes:
    """The program without syntax that the grammars lack. Every byte keeps its place.

    The most common case is `&` in the text of an element. `|` may stand everywhere in its place.
    """
    data = _UNKNOWN.sub(lambda found: b" " * len(found[0]), data)
    data = _VARIANCE.sub(lambda found: found[1] + b" " * len(found[2]), data)
    data = _IMPORTED.sub(lambda found: b"______" + re.sub(rb"[^\n]", b" ", found[1]), data)
    return _UNENDED.sub(_end_member, data).replace(b"&", b"|")


def _end_member(found: re.Match[bytes]) -> bytes:
    """Add a semicolon, unless the line has a comment."""
    line = found.string[found.string.rfind(b"\n", 0, found.start()) + 1 : found.start()]
    return found[0] if b"//" in line else found[1] + b";"
