"""Explains why a script does not parse."""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from handrail.code.treesitter import parse_with_timeout

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree


# § [code.script_syntax] Whether JavaScript and TypeScript parse, by tree-sitter, which is the extra `code`. Without
# § it: no opinion.


def find_javascript_problem(text: str) -> str | None:
    """Why a text is no JavaScript, JSX included."""
    return _problem(text, _javascript, "JavaScript")


def find_typescript_problem(text: str) -> str | None:
    """Why a text is no TypeScript."""
    return _problem(text, partial(_typescript, jsx=False), "TypeScript")


def find_tsx_problem(text: str) -> str | None:
    """Why a text is no TypeScript with JSX."""
    return _problem(text, partial(_typescript, jsx=True), "TSX")


def _javascript() -> "Language":
    import tree_sitter_javascript  # noqa: PLC0415  only for files of this kind
    from tree_sitter import Language  # noqa: PLC0415

    return Language(tree_sitter_javascript.language())


def _typescript(*, jsx: bool) -> "Language":
    import tree_sitter_typescript as grammars  # noqa: PLC0415  as above
    from tree_sitter import Language  # noqa: PLC0415

    return Language(grammars.language_tsx() if jsx else grammars.language_typescript())


def _problem(text: str, language: Callable[[], "Language"], name: str) -> str | None:
    data = text.encode(errors="replace")
    try:
        tree = _faulty_tree(language(), data)
    except (ImportError, ValueError):  # not there, or grammar and parser are of different times
        return None
    return tree and f"it is not what tree-sitter knows as {name}: {_where(_first_error(tree), data)}"


def _faulty_tree(language: "Language", data: bytes) -> "Tree | None":
    """A tree with errors; None where there are none, but for what the grammar does not know."""
    tree = parse_with_timeout(language, data)
    if tree is None or not tree.root_node.has_error:
        return None

    told = strip_unknown_syntax(data)
    if told == data:
        return tree
    tree = parse_with_timeout(language, told)
    return tree if tree and tree.root_node.has_error else None


def _first_error(tree: "Tree") -> "Node":
    """The innermost of the first nodes that do not parse."""
    cursor = tree.walk()
    found = cursor.node or tree.root_node
    while cursor.goto_first_child():
        while (node := cursor.node) and not node.has_error:
            if not cursor.goto_next_sibling():
                return found
        found = node or found
    return found


def _where(node: "Node", data: bytes) -> str:
    """By bytes: asking a point for its row frees a number that others still use, in 0.26.0."""
    first, last = (data.count(b"\n", 0, place) + 1 for place in (node.start_byte, node.end_byte))
    if node.is_missing:
        return f"{node.type} is missing in line {first}"
    return f"line {first}" if first == last else f"somewhere in lines {first}–{last}"


# § [code.script_dialect] What JavaScript and TypeScript have and the grammars of tree-sitter do not: put into words
# § that they know. Every byte keeps its place, and every line its number. It is meant for texts that did not parse,
# § to tell their errors from the grammar's; a text that has none of this comes back as it is.

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
"""`in` and `out` before a parameter of a type."""
_IMPORTED = re.compile(
    rb"(?<![\w$.])import(\(\s{0,200}(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\")\s{0,200},?\s{0,200}\))"
    rb"(?=\.[\w$]|\s{0,200}>)"
)
"""Another module in a type, as in `import("a").B` and `f<typeof import("a")>()`."""
_UNENDED = re.compile(
    rb"(?<=[\w$>\])}])(?<!=>)(\r?\n(?:[ \t]*(?://[^\n]{0,200})?\n){0,9}[ \t]{0,200})[ \t]"
    rb"(?=<[\w$\r\n]|in(?:[\d_$][\w$]*)?\??:)"
)
"""The end of a member of an interface, where the next line could go on with its type."""


def strip_unknown_syntax(data: bytes) -> bytes:
    """The same program without what the grammars do not know.

    `&` in the text of an element is the commonest of it: everywhere, `|` may stand in its place.
    """
    data = _UNKNOWN.sub(lambda found: b" " * len(found[0]), data)
    data = _VARIANCE.sub(lambda found: found[1] + b" " * len(found[2]), data)
    data = _IMPORTED.sub(lambda found: b"______" + re.sub(rb"[^\n]", b" ", found[1]), data)
    return _UNENDED.sub(_ended, data).replace(b"&", b"|")


def _ended(found: re.Match[bytes]) -> bytes:
    """A comment is no end of a member: what is before it may have one."""
    line = found.string[found.string.rfind(b"\n", 0, found.start()) + 1 : found.start()]
    return found[0] if b"//" in line else found[1] + b";"
