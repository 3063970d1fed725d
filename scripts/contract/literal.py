"""Writes JSON values as Python source, laid out as the formatter would."""

from typing import Any

WIDTH = 120
_STEP = " " * 4


def literal(value: Any, indent: str = "", before: int = 0) -> str:
    """The value in Python: on one line where it fits behind what stands `before` it, else one item a line."""
    flat = _flat(value)
    if not isinstance(value, dict | list) or not value or before + len(flat) + len(",") <= WIDTH:
        return flat
    inner = indent + _STEP
    if isinstance(value, list):
        lines = [inner + literal(item, inner, len(inner)) for item in value]  # pyright: ignore[reportUnknownVariableType]
        return "\n".join(["[", *(f"{line}," for line in lines), f"{indent}]"])
    lines = [_entry(key, item, inner) for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return "\n".join(["{", *(f"{line}," for line in lines), f"{indent}}}"])


def _entry(key: str, value: Any, indent: str) -> str:
    start = f"{indent}{_text(key)}: "
    return start + literal(value, indent, len(start))


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(key)}: {_flat(item)}' for key, item in value.items())}}}"  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return f"[{', '.join(_flat(item) for item in value)}]"  # pyright: ignore[reportUnknownVariableType]
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """In double quotes, but for a text that has more of them than of single ones."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = "".join(_ESCAPES.get(c, c) if c != quote else f"\\{quote}" for c in text)
    return f"{quote}{escaped}{quote}"


_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
