"""Settings in JSON with comments, changed in place.

Editors accept comments and surplus commas. A parser keeps the place of each value, so that only pieces of the text are
replaced.
"""

import json
import re
from typing import Any, NamedTuple, cast

import msgspec

from handrail.mcp.hosts.merge import (
    CannotMerge,
    ConfigSyntaxError,
    ListContains,
    ServerEntry,
    is_same_json,
    merge_value,
    to_plain_value,
)

_MAX_LEVELS = 100
# What may stand between two tokens; a byte order mark only stands at the beginning.
_BETWEEN = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*[\s\S]*?\*/)*")
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?[0-9][0-9eE.+-]*|true|false|null')
_MAX_LIST_COLUMNS = 80
"""Columns that a list of strings may take on one line."""
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*(?:(?!\*/)[^\r\n])*\*/)*(?://[^\r\n]*)?")


# Parser


class JsoncNode(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its place in the text."""

    start: int
    end: int
    value: Any
    children: "tuple[JsoncNode, ...]" = ()
    """The items of a list, the values of an object."""
    keys: tuple[str, ...] = ()
    begins: tuple[int, ...] = ()
    """Where each child begins: in an object, at its key."""
    comma: int = -1
    """The position behind a comma after the last child, or -1."""

    @property
    def kind(self) -> str:
        kinds = {"dict": "an object", "list": "a list", "str": "a text", "bool": "true or false", "NoneType": "null"}
        return kinds.get(type(self.value).__name__, "a number")

    def members(self, key: str) -> "list[JsoncNode]":
        """The values of a key. A text may have it twice."""
        return [child for name, child in zip(self.keys, self.children, strict=True) if name == key]


def parse_jsonc(text: str) -> JsoncNode | None:
    """The value of a text. None if there is only white space. Raises ConfigSyntaxError."""
    reader = _JsoncReader(text)
    start = reader.skip(0)
    if start == len(text):
        return None
    node = reader.read_value(start, 0)
    if (end := reader.skip(node.end)) != len(text):
        raise reader.build_error(end, "something follows the end of the value")
    return node


class _JsoncReader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        found = _BETWEEN.match(self._text, at)
        return found.end() if found else at

    def build_error(self, at: int, why: str) -> ConfigSyntaxError:
        line = self._text.count("\n", 0, at) + 1
        return ConfigSyntaxError(f"line {line}, column {at - self._text.rfind(chr(10), 0, at)}: {why}")

    def read_value(self, at: int, depth: int) -> JsoncNode:
        if depth > _MAX_LEVELS:
            raise self.build_error(at, f"more than {_MAX_LEVELS} levels deep")
        first = self._text[at : at + 1]
        if first in {"{", "["}:
            return self._read_container(at, depth, is_object=first == "{")
        found = _SCALAR.match(self._text, at)
        if not found:
            raise self.build_error(at, f"a value was expected, not {first!r}" if first else "a value is missing")
        return JsoncNode(start=at, end=found.end(), value=self._decode(found))

    def _decode(self, found: re.Match[str]) -> Any:
        try:
            return json.loads(found[0])
        except ValueError:
            raise self.build_error(found.start(), f"{found[0][:40]!r} is not a value") from None

    def _read_container(self, start: int, depth: int, *, is_object: bool) -> JsoncNode:
        keys, begins, children = list[str](), list[int](), list[JsoncNode]()
        at, comma = self.skip(start + 1), -1
        while self._text[at : at + 1] != ("}" if is_object else "]"):
            if children and comma < 0:
                raise self.build_error(at, "a comma or the end is missing")
            begins.append(at)
            if is_object:
                key, at = self._read_key(at)
                keys.append(key)
            children.append(self.read_value(at, depth + 1))
            at, comma = self.skip(children[-1].end), -1
            if self._text[at : at + 1] == ",":
                comma = at + 1
                at = self.skip(comma)
        values: Any = [child.value for child in children]
        return JsoncNode(
            start=start,
            end=at + 1,
            value=dict(zip(keys, values, strict=True)) if is_object else values,
            children=tuple(children),
            keys=tuple(keys),
            begins=tuple(begins),
            comma=comma,
        )

    def _read_key(self, at: int) -> tuple[str, int]:
        """A key, and the position of its value."""
        found = _SCALAR.match(self._text, at)
        if not found or not found[0].startswith('"'):
            raise self.build_error(at, "a name in quotes was expected")
        colon = self.skip(found.end())
        if self._text[colon : colon + 1] != ":":
            raise self.build_error(colon, "a colon is missing")
        return self._decode(found), self.skip(colon + 1)


# Layout


class Layout(msgspec.Struct, frozen=True):
    """The indentation and the line ends of a text."""

    step: str = "  "
    newline: str = "\n"


def detect_layout(text: str, root: JsoncNode | None) -> Layout:
    """The layout of a text. By default two blanks."""
    newline = "\r\n" if "\r\n" in text else "\n"
    step = (
        find_indentation(text, root.begins[0])
        if root and root.begins and is_first_on_line(text, root.begins[0])
        else ""
    )
    return Layout(step or "  ", newline)


def find_indentation(text: str, at: int) -> str:
    """The blanks at the start of a line."""
    found = re.compile(r"[ \t]*").match(text, text.rfind("\n", 0, at) + 1)
    return found[0] if found else ""


def is_first_on_line(text: str, at: int) -> bool:
    """Whether only blanks are before a position on its line."""
    return not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t")


def render_inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def render_block(value: Any, indent: str, layout: Layout) -> str:
    """A value over several lines. Its first line is not indented."""
    short = render_inline(value)
    if not isinstance(value, dict | list) or not value or (isinstance(value, list) and len(short) <= _MAX_LIST_COLUMNS):
        return short
    deeper = indent + layout.step
    if isinstance(value, dict):
        inner = [
            f"{render_inline(key)}: {render_block(one, deeper, layout)}"
            for key, one in cast("dict[str, Any]", value).items()
        ]
    else:
        inner = [render_block(one, deeper, layout) for one in cast("list[Any]", value)]
    lines = f",{layout.newline}{deeper}".join(inner)
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{opening}{layout.newline}{deeper}{lines}{layout.newline}{indent}{closing}"


# Edits


class Edit(NamedTuple):
    """A replaced piece of a text. If the piece is empty, an insertion."""

    start: int
    end: int
    text: str


def merge_jsonc(text: str, wanted: dict[str, Any]) -> str:
    """The text with the wanted settings. Every other byte stays. Raises ConfigSyntaxError or CannotMerge."""
    root = parse_jsonc(text)
    if root is not None and root.kind != "an object":
        raise CannotMerge("it is not a JSON object")
    result = apply_edits(text, build_edits(text, root, wanted))
    made, intended = parse_jsonc(result), merge_value(None if root is None else root.value, wanted)
    if made is None or not is_same_json(made.value, intended):
        raise CannotMerge("it cannot be changed without changing other parts of it")
    return result


def build_edits(text: str, root: JsoncNode | None, wanted: dict[str, Any]) -> list[Edit]:
    layout = detect_layout(text, root)
    if root is None:
        between = layout.newline if text and not text.endswith("\n") else ""
        return [
            Edit(len(text), len(text), f"{between}{render_block(to_plain_value(wanted), '', layout)}{layout.newline}")
        ]
    return _Editor(text, layout).edit_object(root, wanted, "")


def apply_edits(text: str, made: list[Edit]) -> str:
    """The edits do not overlap."""
    for edit in sorted(made, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


class _Editor:
    def __init__(self, text: str, layout: Layout) -> None:
        self._text = text
        self._layout = layout

    def edit_object(self, place: JsoncNode, wanted: dict[str, Any], path: str) -> list[Edit]:
        made, new = list[Edit](), dict[str, Any]()
        for key, inner in wanted.items():
            name = f"{path}.{key}" if path else key
            found = place.members(key)
            if len(found) > 1:
                raise CannotMerge(f"it has {name} twice")
            if found:
                made += self._edit_value(found[0], inner, name)
            else:
                new[key] = to_plain_value(inner)
        return made + (self._insert(place, new) if new else [])

    def _edit_value(self, place: JsoncNode, wanted: Any, path: str) -> list[Edit]:
        match wanted:
            case ServerEntry(entry=entry) if wanted.can_extend(place.value):
                return self.edit_object(place, entry, path)
            case ServerEntry(entry=entry):
                return self._replace(place, entry)
            case dict():
                if place.kind != "an object":
                    raise CannotMerge(f"its {path} is {place.kind} and not an object")
                return self.edit_object(place, cast("dict[str, Any]", wanted), path)
            case ListContains(items=items):
                if place.kind != "a list":
                    raise CannotMerge(f"its {path} is {place.kind} and not a list")
                missing = [item for item in items if item not in place.value]
                return self._insert(place, missing) if missing else []
            case _:
                return [] if is_same_json(place.value, wanted) else self._replace(place, wanted)

    def _replace(self, place: JsoncNode, value: Any) -> list[Edit]:
        over_several = "\n" in self._text[place.start : place.end] or isinstance(value, dict)
        indent = find_indentation(self._text, place.start)
        text = render_block(value, indent, self._layout) if over_several else render_inline(value)
        return [Edit(place.start, place.end, text)]

    def _insert(self, place: JsoncNode, new: dict[str, Any] | list[str]) -> list[Edit]:
        if not place.children:
            return self._fill_empty(place, new)
        last = place.children[-1]
        behind = place.comma if place.comma >= 0 else last.end
        if "\n" not in self._text[behind : place.end]:
            pieces = self._render_children(new, None)
            if place.comma >= 0:
                return [Edit(behind, behind, "".join(f" {piece}," for piece in pieces))]
            return [Edit(behind, behind, "".join(f", {piece}" for piece in pieces))]
        indent = self._find_child_indentation(place)
        lines = f",{self._layout.newline}{indent}".join(self._render_children(new, indent))
        at = self._find_line_end(behind)
        ending = "," if place.comma >= 0 else ""
        added = Edit(at, at, f"{self._layout.newline}{indent}{lines}{ending}")
        if place.comma >= 0:
            return [added]
        if at == behind:
            return [added._replace(text=f",{added.text}")]
        return [Edit(behind, behind, ","), added]

    def _fill_empty(self, place: JsoncNode, new: dict[str, Any] | list[str]) -> list[Edit]:
        close = place.end - 1
        inner = self._text[place.start + 1 : close]
        if isinstance(new, list) and not inner.strip():
            return [Edit(close, close, ", ".join(self._render_children(new, None)))]
        outer = find_indentation(self._text, place.start)
        indent = outer + self._layout.step
        newline = self._layout.newline
        lines = f"{newline}{indent}" + f",{newline}{indent}".join(self._render_children(new, indent))
        if "\n" in inner:  # the end stands on a line of its own
            at = place.start + 1 + len(inner.rstrip(" \t\r\n"))
            return [Edit(at, at, lines)]
        return [Edit(close, close, f"{lines}{newline}{outer}")]

    def _render_children(self, new: dict[str, Any] | list[str], indent: str | None) -> list[str]:
        """The new members or items. With an indentation, over several lines."""
        if isinstance(new, list):
            return [render_inline(item) for item in new]
        return [f"{render_inline(key)}: {self._render(value, indent)}" for key, value in new.items()]

    def _render(self, value: Any, indent: str | None) -> str:
        return render_inline(value) if indent is None else render_block(value, indent, self._layout)

    def _find_child_indentation(self, place: JsoncNode) -> str:
        """The indentation of the children of a container."""
        for begin in reversed(place.begins):
            if is_first_on_line(self._text, begin):
                return find_indentation(self._text, begin)
        return find_indentation(self._text, place.end - 1) + self._layout.step

    def _find_line_end(self, at: int) -> int:
        """The position behind a comment, which belongs to the value before it."""
        found = _REST_OF_LINE.match(self._text, at)
        end = found.end() if found else at
        return end if self._text[end : end + 1] in {"\r", "\n"} else at
