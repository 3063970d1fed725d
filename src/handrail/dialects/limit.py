"""The budget of an answer in a dialect.

A shape often has the text and the same facts once more as data, so it gets twice the budget of the text.
"""

from typing import Any, cast

from msgspec.structs import replace

from handrail.protocol.results import ToolResult
from handrail.protocol.text import truncate_middle
from handrail.protocol.wire import Json, encode
from handrail.store.conversation_state import truncate_with_reference

_LEAST_CHARS = 100
"""A text that is cut keeps at least these."""


def shorten_page(result: ToolResult[Any], budget: int, size: int) -> ToolResult[Any] | None:
    """A read page with fewer lines, after an answer of this size. None if no line can be left out."""
    lines = result.content.split("\n")
    count = len(lines) * budget // size - 1
    if not 0 < count < len(lines) - 1 or result.meta.returned is None:
        return None
    first = getattr(result.data, "first_line", None) or 1
    meta = replace(result.meta, truncated=True, returned=count, next_offset=first + count)
    return replace(result, content="\n".join((*lines[:count], "")), meta=meta)


def limit_answer(text: str, shape: Json, budget: int, reference: str | None) -> tuple[str, Json]:
    """The text and the shape, cut to the budget. A text that is the shape stays the shape."""
    if isinstance(shape, str):
        return (cut := cut_text(text, budget, reference)), cut
    if text != encode(shape).decode():
        return cut_text(text, budget, reference), _limit(shape, [2 * budget], budget, reference)
    limited, room = shape, budget
    while len(text) > budget and room > _LEAST_CHARS:
        limited = _limit(shape, [room], room, reference)
        text, room = encode(limited).decode(), room * 3 // 4
    return text, limited


def _limit(value: Any, left: list[int], most: int, reference: str | None) -> Any:
    """The value with its first texts and items, as far as the rest of a budget goes."""
    if isinstance(value, str):
        value = cut_text(value, max(min(left[0], most), _LEAST_CHARS), reference)
        left[0] -= len(value) + 2
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        left[0] -= sum(len(name) + 4 for name in fields)
        return {name: _limit(item, left, most, reference) for name, item in fields.items()}
    if isinstance(value, list | tuple):
        return [_limit(item, left, most, reference) for item in cast("list[Any]", value) if left[0] > 0]
    left[0] -= 6
    return value


def cut_text(text: str, budget: int, reference: str | None = None) -> str:
    """The text without its middle if it is longer than the budget, with a reference to all of it if there is one."""
    if len(text) <= budget:
        return text
    if reference is not None and budget > _LEAST_CHARS:
        return truncate_with_reference(text, budget, reference)
    return truncate_middle(text, budget, "… {} characters are not shown …")
