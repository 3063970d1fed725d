"""Lays JSON values out as text, in Python's spelling or in JSON's: on one line what fits, else one item a line."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple


def as_python(value: Any) -> str:
    """The value as Python source, just as the formatter would lay it out."""
    return _laid_out(value, _PYTHON, "", 0)


def as_json(value: Any) -> str:
    """The value as JSON for people to read."""
    return _laid_out(value, _JSON, "", 0)


class _Style(NamedTuple):
    width: int
    step: str
    last: str
    """What follows the last item when each has a line of its own."""
    scalar: Callable[[Any], str]


def _laid_out(value: Any, style: _Style, indent: str, before: int) -> str:
    flat = _flat(value, style)
    if not isinstance(value, dict | list) or not value or before + len(flat) + 1 <= style.width:
        return flat
    inner = indent + style.step
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines: list[str] = []
    for key, item in _items(value):  # pyright: ignore[reportUnknownArgumentType]
        start = f"{inner}{'' if key is None else f'{style.scalar(key)}: '}"
        lines.append(start + _laid_out(item, style, inner, len(start)))
    items = ",\n".join(lines)
    return f"{opening}\n{items}{style.last}\n{indent}{closing}"


def _flat(value: Any, style: _Style) -> str:
    if not isinstance(value, dict | list):
        return style.scalar(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    items = [
        f"{'' if key is None else f'{style.scalar(key)}: '}{_flat(item, style)}"
        for key, item in _items(value)  # pyright: ignore[reportUnknownArgumentType]
    ]
    return f"{opening}{', '.join(items)}{closing}"


def _items(value: dict[str, Any] | list[Any]) -> list[tuple[str | None, Any]]:
    return list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]


def _python_scalar(value: Any) -> str:
    if not isinstance(value, str):
        return repr(value)
    # As the formatter has it: double quotes, but for a text that has more of them than of single ones.
    quote = "'" if value.count('"') > value.count("'") else '"'
    escapes = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", quote: f"\\{quote}"}
    return f"{quote}{''.join(escapes.get(c, c) for c in value)}{quote}"


def _json_scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_PYTHON = _Style(120, " " * 4, ",", _python_scalar)
_JSON = _Style(100, " " * 2, "", _json_scalar)
