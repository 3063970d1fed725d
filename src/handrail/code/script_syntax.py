"""Whether JavaScript and TypeScript parse, by tree-sitter, which is the extra `code`. Without it: no opinion."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from handrail.code.feeding import parse_with_timeout

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree


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
    from handrail.code.script_dialect import strip_unknown_syntax  # noqa: PLC0415  few texts come to this

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
