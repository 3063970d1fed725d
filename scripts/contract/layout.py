"""Lays a JSON value out as text: on one line if it fits, else one item a line."""

import json
from typing import Any

_WIDTH = 100
_INDENT = "  "


def as_json(value: Any) -> str:
    """The value as JSON for people to read."""
    return _lay_out(value, "", 0)


def _lay_out(value: Any, indent: str, before: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or before + len(flat) + 1 <= _WIDTH:
        return flat
    inner = indent + _INDENT
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines: list[str] = []
    for key, item in _list_items(value):  # pyright: ignore[reportUnknownArgumentType]
        start = f"{inner}{'' if key is None else f'{json.dumps(key, ensure_ascii=False)}: '}"
        lines.append(start + _lay_out(item, inner, len(start)))
    items = ",\n".join(lines)
    return f"{opening}\n{items}\n{indent}{closing}"


def _list_items(value: dict[str, Any] | list[Any]) -> list[tuple[str | None, Any]]:
    return list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
