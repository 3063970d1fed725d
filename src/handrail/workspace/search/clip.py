"""Lines as they are kept and shown: of a long one, the part around its first match."""

from collections.abc import Sequence

from handrail.workspace.search.engine import HitLine

MAX_SHOWN_BYTES = 500
"""About so many characters of a line are shown."""
_LEAD_BYTES = 100
"""Of them so many before the first match."""


def clip(number: int, offset: int, data: bytes, spans: Sequence[tuple[int, int]]) -> HitLine:
    """The line, or its part around the first match. Bytes are cut, never a character of UTF-8 in two."""
    if len(data) <= MAX_SHOWN_BYTES:
        return HitLine(number, offset, data, tuple(spans))
    first = spans[0][0] if spans else 0
    start = _between_characters(data, max(0, min(first - _LEAD_BYTES, len(data) - MAX_SHOWN_BYTES)))
    end = _between_characters(data, min(len(data), start + MAX_SHOWN_BYTES))
    inside = tuple((max(a, start) - start, min(b, end) - start) for a, b in spans if a <= end and b >= start)
    return HitLine(number, offset + start, data[start:end], inside, start > 0, end < len(data))


def _between_characters(data: bytes, at: int) -> int:
    """The place itself, or the nearest before it where a character begins."""
    for back in range(min(4, at)):
        if at - back >= len(data) or data[at - back] & 0xC0 != 0x80:
            return at - back
    return at
