"""How a JSON text is laid out, and values written the same way."""

import json
import re
from typing import Any

import msgspec

from handrail.mcp.hosts.editing.places import JsoncNode

_MAX_LIST_COLUMNS = 80
"""Columns that a list of texts may take on one line."""


class Layout(msgspec.Struct, frozen=True):
    """What one step of indentation is, and what ends a line."""

    step: str = "  "
    newline: str = "\n"


def detect_layout(text: str, root: JsoncNode | None) -> Layout:
    """As the text has it; two blanks where it does not say."""
    newline = "\r\n" if "\r\n" in text else "\n"
    step = (
        find_indentation(text, root.begins[0])
        if root and root.begins and is_first_on_line(text, root.begins[0])
        else ""
    )
    return Layout(step or "  ", newline)


def find_indentation(text: str, at: int) -> str:
    """The blanks that the line of a place begins with."""
    found = re.compile(r"[ \t]*").match(text, text.rfind("\n", 0, at) + 1)
    return found[0] if found else ""


def is_first_on_line(text: str, at: int) -> bool:
    """Whether nothing but blanks is before it on its line."""
    return not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t")


def render_inline(value: Any) -> str:
    """A value without a newline."""
    return json.dumps(value, ensure_ascii=False)


def render_block(value: Any, indent: str, layout: Layout) -> str:
    """A value as people write it, its first line without the indentation."""
    short = render_inline(value)
    if not isinstance(value, dict | list) or not value or (isinstance(value, list) and len(short) <= _MAX_LIST_COLUMNS):
        return short
    deeper = indent + layout.step
    if isinstance(value, dict):
        inner = [f"{render_inline(key)}: {render_block(one, deeper, layout)}" for key, one in _members(value)]
    else:
        inner = [render_block(one, deeper, layout) for one in _items(value)]
    lines = f",{layout.newline}{deeper}".join(inner)
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{opening}{layout.newline}{deeper}{lines}{layout.newline}{indent}{closing}"


def _members(value: Any) -> list[tuple[str, Any]]:
    return list(value.items())


def _items(value: Any) -> list[Any]:
    return list(value)
