"""Makes anything a caller may hand in fit for the journal, without losing that it was there."""

from typing import Any

from handrail.protocol.wire import Json, encode

_DEPTH = 32
_ITEMS = 1_000


def plain(value: Any) -> tuple[Json, bool]:
    """The value itself where it is JSON, else the nearest JSON to it; and whether it was JSON."""
    try:
        encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _nearest(value, _DEPTH), False
    return value, True


def readable(text: str) -> str:
    """The text with lone surrogates made visible, so that it can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _nearest(value: Any, depth: int) -> Json:
    if depth == 0:
        return "<too deep>"
    if isinstance(value, dict | list | tuple):
        return _nearest_items(value, depth - 1)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, int) and abs(value) >= 2**63:
        return "<too large>"
    return value if value is None or isinstance(value, bool | int | float) else f"<{type(value).__name__}>"


def _nearest_items(value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Json:
    if isinstance(value, dict):
        return {readable(str(key)): _nearest(item, depth) for key, item in list(value.items())[:_ITEMS]}
    return [_nearest(item, depth) for item in value[:_ITEMS]]
