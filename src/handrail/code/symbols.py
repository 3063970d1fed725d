"""Lists the definitions of a file with tree-sitter: functions, classes, headings, keys.

The patterns of a language are in `queries`. A capture named by a kind is a definition, with its @name inside
and perhaps its @scope, the type that it belongs to. @doc is documentation inside of it. A @comment that ends above it
is its documentation too. An @attribute above it or at its start is no part of it. Broken code gives the definitions
that the parser still sees.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from textwrap import dedent
from typing import TYPE_CHECKING

from handrail.code.languages import LANGUAGES, load_grammar, load_query
from handrail.code.treesitter import parse_with_timeout
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import Wire

if TYPE_CHECKING:
    from tree_sitter import Node

_GROUPS = {
    "function": "constructor function macro method",
    "class": "class enum impl interface module namespace record struct trait type union",
    "variable": "constant field property variable",
    "other": "element heading key media rule table",
}
_GROUP_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds.split()}
_TYPES = frozenset(("class", "enum", "impl", "interface", "record", "struct", "trait", "union"))
"""A function directly in one of these is a method."""
_DECLARED_FUNCTIONS = {"field": "method", "variable": "function"}
"""What a declarator of C with parameters defines, instead of a value."""
_VALUES = frozenset(("constant", "field", "key", "property", "variable"))
"""Their signature has a part of their value."""
_FUNCTIONS = frozenset(_GROUPS["function"].split())
"""Variables in one of these are not listed."""
_MARKUP = frozenset(("media", "rule"))
"""Their signature may have several lines."""
MAX_BYTES = 8 << 20
"""A larger text is not parsed."""
_MAX_PARSE_SECONDS = 1.0
_MAX_ERROR_STEPS = 30_000**2
_MAX_SIGNATURE_CHARS = 200
_MAX_VALUE_CHARS = 80
_MAX_DOC_CHARS = 2_000
_MARKS = ("=>", "=", "{", ":", ";", ",", "\\", "; end")
_AFTER_SIGNATURE = re.compile(r"(?:\s*(?:=>|[={:;,\\]|;\s*end))+$")
_BLANK = ord("_")
_LEVEL = re.compile(r"_h(\d)_")
"""In the types of the marks of headings."""
_QUOTES = frozenset("\"'`")
_AROUND_NAME = {
    "operator_cast": re.compile(r"\(.*", re.DOTALL),
    "simple_symbol": re.compile(r"^:"),
    "inline": re.compile(r"\s+#+$"),
}
"""What is no part of a name in nodes of these types."""
_PADDING = re.compile(r"(?<=[(\[]) |,? (?=[)\]])")
_BEFORE_COMMENT = re.compile(r"^[ \t]*(?:/\*[*!]?|///?!?|#+|\*(?!/)|<!--)?[ \t]?", re.MULTILINE)
_AFTER_COMMENT = re.compile(r"\s*(?:\*/|-->)\s*$")


class Symbol(Wire, frozen=True, omit_defaults=False):
    """A definition in a file."""

    name: str
    kind: str
    """A kind of `_GROUPS`."""
    line: int
    """Its first line without attributes, from 1."""
    end_line: int
    parent: str | None
    """The definitions around it, as in `Outer.Inner`."""
    signature: str
    """Its text without its body, in one line."""
    doc: str = ""


class Definition:
    """A definition in a parsed text."""

    __slots__ = ("end", "head", "kind", "name", "node", "parent", "scopes", "start")

    def __init__(self, kind: str, node: "Node", name: "Node", scopes: Sequence["Node"]) -> None:
        self.kind, self.node, self.name, self.scopes = kind, node, name, scopes
        if name.child_count:
            self.name, is_function, outer = _enter_declarators(name)
            self.kind = _DECLARED_FUNCTIONS.get(kind, kind) if is_function else kind
            self.scopes = (*scopes, *outer)
        self.start, self.end = node.start_byte, node.end_byte
        self.head = self.start
        """Its first byte without attributes."""
        self.parent: Definition | None = None

    @property
    def level(self) -> int:
        """The number of definitions around it."""
        return 0 if self.parent is None else self.parent.level + 1


class SourceFile:
    """A parsed text with its definitions, in their order."""

    def __init__(self, text: bytes, language: str, *, analysis: bool = False) -> None:
        """MissingGrammarError, or LIMIT_EXCEEDED if the text takes too long to parse."""
        grammar = load_grammar(language)
        tree = parse_with_timeout(grammar, text, _MAX_PARSE_SECONDS) if len(text) <= MAX_BYTES else None
        if tree is None or _is_too_broken(tree.root_node):
            title = LANGUAGES[language].title
            raise ToolError("LIMIT_EXCEEDED", f"The file takes too long to parse as {title}. Use grep to search it.")
        from tree_sitter import QueryCursor  # noqa: PLC0415  only for files of a known language

        self.text, self.has_errors = text, tree.root_node.has_error
        self.line_starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
        """The last one is the end of the text."""
        self.captures: dict[str, list[Node]] = {}
        """The nodes of captures that are no definitions."""
        found: dict[int, tuple[int, Definition]] = {}
        for pattern, captures in QueryCursor(load_query(language, analysis=analysis)).matches(tree.root_node):
            if len(captures) > 1 and not self._passes(captures):
                continue
            names, scopes = captures.pop("name", None), captures.pop("scope", ())
            for kind, nodes in captures.items():
                if kind not in _GROUP_OF or not names:
                    self.captures.setdefault(kind, []).extend(nodes)
                    continue
                key = names[0].start_byte  # the earliest pattern decides about a name
                if key not in found or pattern < found[key][0]:
                    found[key] = (pattern, Definition(kind, nodes[0], names[0], scopes))
        definitions = [found[key][1] for key in sorted(found) if not self._is_blank(found[key][1].name)]
        if language == "markdown":
            _end_headings(definitions)
        self.definitions = _nest(definitions)
        self._starts = [one.start for one in self.definitions]
        self._skip_attributes()

    def _passes(self, captures: dict[str, list["Node"]]) -> bool:
        """Whether each node of a capture such as @only.h1.h2 has one of these texts. The binding leaks predicates."""
        wanted = ((name.split(".")[1:], nodes) for name, nodes in captures.items() if name.startswith("only."))
        return all(self.get_text(node).lower() in texts for texts, nodes in wanted for node in nodes)

    def _is_blank(self, name: "Node") -> bool:
        return name.end_byte == name.start_byte + 1 and self.text[name.start_byte] == _BLANK

    def _skip_attributes(self) -> None:
        ends = {node.start_byte: node.end_byte for node in self.captures.get("attribute", ())}
        if not ends:
            return
        for one in self.definitions:
            while (end := ends.get(one.head, one.end)) < one.end:
                one.head = end + len(self.text[end : one.end]) - len(self.text[end : one.end].lstrip())

    def find_definition(self, place: int) -> Definition | None:
        """The innermost definition around a byte."""
        found = bisect_right(self._starts, place)
        definition = self.definitions[found - 1] if found else None
        while definition is not None and definition.end <= place:
            definition = definition.parent
        return definition

    def find_line(self, place: int) -> int:
        """Lines are counted by bytes: in tree-sitter 0.26.0 the row of a point frees a number that is still in use."""
        return bisect_right(self.line_starts, place)

    def get_text(self, node: "Node") -> str:
        return self.text[node.start_byte : node.end_byte].decode(errors="replace")


def _is_too_broken(root: "Node") -> bool:
    """Whether a query would take long: its time grows with the square of the children of an error."""
    budget, nodes = _MAX_ERROR_STEPS, [root] if root.has_error else []
    while nodes and budget > 0:
        node = nodes.pop()
        if node.is_error:
            budget -= node.child_count**2
        nodes += [child for child in node.children if child.has_error]
    return budget <= 0


def _enter_declarators(node: "Node") -> tuple["Node", bool, list["Node"]]:
    """The name in a declarator of C, whether it is that of a function, and the types and namespaces before it."""
    is_function, scopes = False, list["Node"]()
    while node.type.endswith("_declarator") and node.named_child_count:
        is_function = node.type == "function_declarator"
        node = node.child_by_field_name("declarator") or node.named_children[-1]
    while node.type == "qualified_identifier":
        scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
        if scope is not None:
            scopes.append(scope.child_by_field_name("name") or scope)
        if name is None:
            break
        node = name
    return node, is_function, scopes


def _end_headings(definitions: Iterable[Definition]) -> None:
    """A heading of Markdown goes on to the next one of its level or above, or to the end of the quotation around it."""
    open_ones = defaultdict[int, list[tuple[int, Definition]]](list)
    for one in definitions:
        level = next((int(found[1]) for child in one.node.children if (found := _LEVEL.search(child.type))), None)
        around = one.node.parent
        if level is None or around is None:
            continue
        while around.type == "section" and around.parent is not None:
            around = around.parent
        same, one.end = open_ones[around.id], around.end_byte
        while same and same[-1][0] >= level:
            same.pop()[1].end = one.start
        same.append((level, one))


def _nest(definitions: list[Definition]) -> list[Definition]:
    """The definitions in their order. Variables of functions are left out."""
    kept, open_ones = list[Definition](), list[Definition]()
    for one in sorted(definitions, key=lambda one: (one.start, -one.end)):
        while open_ones and (open_ones[-1].end < one.end or _have_same_span(open_ones[-1], one)):
            open_ones.pop()
        one.parent = open_ones[-1] if open_ones else None
        if one.kind == "variable" and find_function(one.parent):
            continue
        open_ones.append(one)
        kept.append(one)
    return kept


def _have_same_span(one: Definition, other: Definition) -> bool:
    """Whether one declaration has several names, which are no parents of each other."""
    return one.start == other.start and one.end == other.end


def find_function(one: Definition | None) -> Definition | None:
    """The innermost function that a definition is or lies in."""
    while one is not None and one.kind not in _FUNCTIONS:
        one = one.parent
    return one


def group_kind(kind: str) -> str:
    """`function`, `class`, `variable` or `other`, for any kind of definition."""
    return _GROUP_OF[kind]


def list_symbols(text: bytes, language: str, *, has_docs: bool = True) -> list[Symbol]:
    """The definitions of a text in UTF-8, in their order. MissingGrammarError if the grammar is not installed."""
    return build_symbols(SourceFile(text, language), has_docs=has_docs)


def build_symbols(source: SourceFile, *, has_docs: bool = True) -> list[Symbol]:
    docs, comments = (_find_docs(source), _find_comments(source)) if has_docs else ({}, {})
    inner = sorted((node.start_byte, node.end_byte) for node in source.captures.get("comment", ()))
    comment_starts = {end: start for start, end in inner}
    names: dict[Definition, str] = {}
    symbols: list[Symbol] = []
    for one in source.definitions:
        scope = names[one.parent] if one.parent is not None else ""
        if one.scopes:
            scope = f"{scope}.{'::'.join(map(source.get_text, one.scopes))}".lstrip(".")
        name = _read_name(source, one.name)
        names[one] = f"{scope}.{name}" if scope else name
        symbols.append(
            Symbol(
                name=name,
                kind=_name_kind(one),
                line=source.find_line(one.head),
                end_line=source.find_line(_find_last_byte(source, one, comment_starts)),
                parent=scope or None,
                signature=_build_signature(source, one, inner),
                doc=docs.get(one) or comments.get(source.find_line(one.start) - 1, ""),
            )
        )
    return symbols


def _read_name(source: SourceFile, node: "Node") -> str:
    text = source.get_text(node)
    if text.isidentifier():
        return text
    text = " ".join(text.split())
    if text[:1] in _QUOTES and text[1:].endswith(text[0]):
        return text[1:-1]
    found = _AROUND_NAME.get(node.type)
    return found.sub("", text) if found is not None else text


def _name_kind(one: Definition) -> str:
    is_member = bool(one.scopes) or (one.parent is not None and one.parent.kind in _TYPES)
    return "method" if one.kind == "function" and is_member else one.kind


def _find_last_byte(source: SourceFile, one: Definition, comment_starts: dict[int, int]) -> int:
    """The last byte that is neither white space nor a comment behind the definition."""
    text, end = source.text, one.end
    while True:
        while end > one.start and text[end - 1] in b" \t\r\n":
            end -= 1
        start = comment_starts.get(end, -1)
        if start <= one.start:
            return max(end - 1, one.start)
        end = start


def _build_signature(source: SourceFile, one: Definition, comments: list[tuple[int, int]]) -> str:
    node, start, end = one.node, one.head, one.end
    value = None if one.kind in _VALUES else node.child_by_field_name("value") or node.child_by_field_name("right")
    body = node.child_by_field_name("body") or (value and value.child_by_field_name("body"))
    if body is not None:
        end = body.start_byte
    end = min(end, start + 4 * _MAX_SIGNATURE_CHARS)
    parts: list[bytes] = []
    for number in range(bisect_left(comments, (start,)), len(comments)):
        if comments[number][0] >= end:
            break
        parts.append(source.text[start : comments[number][0]])
        start = comments[number][1]
    text = b" ".join((*parts, source.text[start:end])).decode(errors="replace")
    most = _MAX_SIGNATURE_CHARS
    if one.kind in _VALUES:
        text, most = text.partition("\n")[0], _MAX_VALUE_CHARS
    elif one.kind == "element":
        text = f"{text.partition('>')[0]}>"
    elif body is None:
        text = text.partition("{")[0].lstrip("\n")
        text = text if one.kind in _MARKUP else text.partition("\n")[0]
    text = _PADDING.sub("", " ".join(text.split()))
    if text.endswith(_MARKS):
        text = _AFTER_SIGNATURE.sub("", text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _find_docs(source: SourceFile) -> dict[Definition, str]:
    docs: dict[Definition, str] = {}
    for node in source.captures.get("doc", ()):
        definition = source.find_definition(node.start_byte)
        if definition is not None and definition not in docs:
            first, _, rest = source.get_text(node).expandtabs().strip("\n").partition("\n")
            docs[definition] = f"{first.strip()}\n{dedent(rest)}".strip()[:_MAX_DOC_CHARS]
    return docs


def _find_comments(source: SourceFile) -> dict[int, str]:
    """The comments that have lines of their own, by their last line. Attributes below a comment count as its lines."""
    comments: dict[int, str] = {}
    nodes = [(node, kind) for kind in ("comment", "attribute") for node in source.captures.get(kind, ())]
    for node, kind in sorted(nodes, key=lambda one: one[0].start_byte):
        first, last = source.find_line(node.start_byte), source.find_line(max(node.end_byte - 1, node.start_byte))
        if kind == "comment" and source.text[source.line_starts[first - 1] : node.start_byte].strip():
            continue  # behind code
        if kind == "attribute":
            comments.setdefault(last, comments.get(first - 1, ""))
            continue
        own = _BEFORE_COMMENT.sub("", _AFTER_COMMENT.sub("", source.get_text(node)))
        comments[last] = f"{comments.pop(first - 1, '')}\n{own}".strip()[:_MAX_DOC_CHARS]
    return comments
