"""The exact match in ASCII with plain newlines, which most files are, without making a text of all the bytes."""

from typing import NamedTuple

from handrail.edit.hunks import CONTEXT_LINES


class UniqueMatch(NamedTuple):
    """Where something is, and the lines around it."""

    start: int
    end: int
    text: str
    """Whole lines, enough of them for a diff."""
    text_start: int
    lines_before: int


def find_unique_match(data: bytes, old: str) -> UniqueMatch | None:
    """The only place of a text; None where there is none or another, or the bytes are not that plain."""
    if not old.isascii() or "\r" in old or not data.isascii() or b"\r" in data or b"\0" in data:
        return None
    wanted = old.encode()
    start = data.find(wanted)
    if start < 0 or data.find(wanted, start + 1) >= 0:
        return None
    low, high = _around(data, start, start + len(wanted))
    return UniqueMatch(start, start + len(wanted), data[low:high].decode(), low, data.count(b"\n", 0, low))


def _around(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The lines of a span, and some before and after it."""
    low = data.rfind(b"\n", 0, start) + 1
    for _ in range(CONTEXT_LINES + 1):
        low = data.rfind(b"\n", 0, max(0, low - 1)) + 1
        end = data.find(b"\n", end) + 1 or len(data)
    return low, end
