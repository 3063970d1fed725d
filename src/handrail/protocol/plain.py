"""Makes anything a caller may hand in fit for the journal, without losing that it was there."""

from typing import Any

from handrail.protocol.wire import Json, encode

_MAX_LEVELS = 64
"""Levels of nesting that everything which reads a journal can take, however deep its own stack is."""
_MAX_ITEMS = 10_000


def sanitize_json(value: Any) -> tuple[Json, bool]:
    """The value itself where it is JSON, else the nearest JSON to it; and whether it was JSON."""
    try:
        # Two bytes a level: what is short cannot be deep.
        if len(encode(value)) <= 2 * _MAX_LEVELS or not _is_deeper(value, _MAX_LEVELS):
            return value, True
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return _Copy().of(value, _MAX_LEVELS), False


def escape_surrogates(text: str) -> str:
    """The text with lone surrogates made visible, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_deeper(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return False


class _Copy:
    """One copy in the making. It has room for so many items, so that what holds itself many times over has an end."""

    __slots__ = ("_room",)

    def __init__(self) -> None:
        self._room = _MAX_ITEMS

    def of(self, value: Any, depth: int) -> Json:
        if isinstance(value, dict | list | tuple):
            return self._items(value, depth - 1) if depth > 0 else "<too deep>"  # pyright: ignore[reportUnknownArgumentType]
        return _scalar(value)

    def _items(self, value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Json:
        room = self._room
        self._room = max(0, room - len(value))
        if isinstance(value, dict):
            return {_key(key): self.of(item, depth) for key, item in list(value.items())[:room]}
        return [self.of(item, depth) for item in value[:room]]


def _key(key: Any) -> str:
    return str(_scalar(key))


def _scalar(value: Any) -> Json:
    """Of a subclass, what it stands for: the encoder takes only the types themselves."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return escape_surrogates(str.__str__(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() < 64 else "<too large>"
    return float(value) if isinstance(value, float) else f"<{type(value).__name__}>"
