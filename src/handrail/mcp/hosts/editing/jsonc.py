"""Puts what is wanted into a JSON text with comments: by insertions, and by exchanging values that say otherwise."""

import re
from typing import Any, NamedTuple

from handrail.mcp.hosts.editing.layout import (
    Layout,
    detect_layout,
    find_indentation,
    is_first_on_line,
    render_block,
    render_inline,
)
from handrail.mcp.hosts.editing.places import JsoncNode, parse_jsonc
from handrail.mcp.hosts.editing.wanted import (
    CannotMerge,
    ListContains,
    ServerEntry,
    is_same_json,
    merge_value,
    to_plain_value,
)

_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*(?:(?!\*/)[^\r\n])*\*/)*(?://[^\r\n]*)?")


class Edit(NamedTuple):
    """A piece of the text and what stands there instead; an insertion where the piece is empty."""

    start: int
    end: int
    text: str


def merge_jsonc(text: str, wanted: dict[str, Any]) -> str:
    """The text with what is wanted in it. Broken where it is no JSON; Misfit where there is no way."""
    root = parse_jsonc(text)
    if root is not None and root.kind != "an object":
        raise CannotMerge("it holds no object")
    result = apply_edits(text, build_edits(text, root, wanted))
    made, intended = parse_jsonc(result), merge_value(None if root is None else root.value, wanted)
    if made is None or not is_same_json(made.value, intended):
        raise CannotMerge("it cannot be changed without touching what else is in it")
    return result


def build_edits(text: str, root: JsoncNode | None, wanted: dict[str, Any]) -> list[Edit]:
    """What is to be done to a text."""
    layout = detect_layout(text, root)
    if root is None:
        between = layout.newline if text and not text.endswith("\n") else ""
        return [
            Edit(len(text), len(text), f"{between}{render_block(to_plain_value(wanted), '', layout)}{layout.newline}")
        ]
    return _Editor(text, layout).of_object(root, wanted, "")


def apply_edits(text: str, made: list[Edit]) -> str:
    """The text after all edits, which do not overlap."""
    for edit in sorted(made, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


class _Editor:
    def __init__(self, text: str, layout: Layout) -> None:
        self._text = text
        self._layout = layout

    def of_object(self, place: JsoncNode, wanted: dict[str, Any], path: str) -> list[Edit]:
        """What is to be done to an object."""
        made, new = list[Edit](), dict[str, Any]()
        for key, inner in wanted.items():
            name = f"{path}.{key}" if path else key
            found = place.members(key)
            if len(found) > 1:
                raise CannotMerge(f"it has {name} twice")
            if found:
                made += self._of_value(found[0], inner, name)
            else:
                new[key] = to_plain_value(inner)
        return made + (self._inserted(place, new) if new else [])

    def _of_value(self, place: JsoncNode, wanted: Any, path: str) -> list[Edit]:
        match wanted:
            case ServerEntry(entry=entry) if wanted.can_extend(place.value):
                return self.of_object(place, entry, path)
            case ServerEntry(entry=entry):
                return self._exchanged(place, entry)
            case dict():
                if place.kind != "an object":
                    raise CannotMerge(f"its {path} is {place.kind} and not an object")
                return self.of_object(place, _typed(wanted), path)
            case ListContains(items=items):
                if place.kind != "a list":
                    raise CannotMerge(f"its {path} is {place.kind} and not a list")
                missing = [item for item in items if item not in place.value]
                return self._inserted(place, missing) if missing else []
            case _:
                return [] if is_same_json(place.value, wanted) else self._exchanged(place, wanted)

    def _exchanged(self, place: JsoncNode, value: Any) -> list[Edit]:
        over_several = "\n" in self._text[place.start : place.end] or isinstance(value, dict)
        indent = find_indentation(self._text, place.start)
        text = render_block(value, indent, self._layout) if over_several else render_inline(value)
        return [Edit(place.start, place.end, text)]

    def _inserted(self, place: JsoncNode, new: dict[str, Any] | list[str]) -> list[Edit]:
        if not place.children:
            return self._into_empty(place, new)
        last = place.children[-1]
        behind = place.comma if place.comma >= 0 else last.end
        if "\n" not in self._text[behind : place.end]:
            pieces = self._pieces(new, None)
            if place.comma >= 0:
                return [Edit(behind, behind, "".join(f" {piece}," for piece in pieces))]
            return [Edit(behind, behind, "".join(f", {piece}" for piece in pieces))]
        indent = self._indent_of(place)
        lines = f",{self._layout.newline}{indent}".join(self._pieces(new, indent))
        at = self._end_of_line(behind)
        ending = "," if place.comma >= 0 else ""
        added = Edit(at, at, f"{self._layout.newline}{indent}{lines}{ending}")
        if place.comma >= 0:
            return [added]
        if at == behind:
            return [added._replace(text=f",{added.text}")]
        return [Edit(behind, behind, ","), added]

    def _into_empty(self, place: JsoncNode, new: dict[str, Any] | list[str]) -> list[Edit]:
        close = place.end - 1
        inner = self._text[place.start + 1 : close]
        if isinstance(new, list) and not inner.strip():
            return [Edit(close, close, ", ".join(self._pieces(new, None)))]
        outer = find_indentation(self._text, place.start)
        indent = outer + self._layout.step
        newline = self._layout.newline
        lines = f"{newline}{indent}" + f",{newline}{indent}".join(self._pieces(new, indent))
        if "\n" in inner:  # the end stands on a line of its own
            at = place.start + 1 + len(inner.rstrip(" \t\r\n"))
            return [Edit(at, at, lines)]
        return [Edit(close, close, f"{lines}{newline}{outer}")]

    def _pieces(self, new: dict[str, Any] | list[str], indent: str | None) -> list[str]:
        """The new members or items, over several lines where there is an indentation for them."""
        if isinstance(new, list):
            return [render_inline(item) for item in new]
        return [f"{render_inline(key)}: {self._written(value, indent)}" for key, value in new.items()]

    def _written(self, value: Any, indent: str | None) -> str:
        return render_inline(value) if indent is None else render_block(value, indent, self._layout)

    def _indent_of(self, place: JsoncNode) -> str:
        """What the children of a container are indented by."""
        for begin in reversed(place.begins):
            if is_first_on_line(self._text, begin):
                return find_indentation(self._text, begin)
        return find_indentation(self._text, place.end - 1) + self._layout.step

    def _end_of_line(self, at: int) -> int:
        """Behind what else is on the line: a comment there belongs to what stands before it."""
        found = _REST_OF_LINE.match(self._text, at)
        end = found.end() if found else at
        return end if self._text[end : end + 1] in {"\r", "\n"} else at


def _typed(wanted: Any) -> dict[str, Any]:
    return wanted
