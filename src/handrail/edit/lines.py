"""Where in a text something is, in lines."""

from collections.abc import Iterable, Iterator


def list_line_ranges(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The first and the last line (from 1) of each span, in the order of the text. Each part of it is counted once."""
    at = line = 0
    for start, end in spans:
        line += text.count("\n", at, start) if start >= at else -text.count("\n", start, at)
        inner = text.count("\n", start, max(start, end - 1))  # a newline at the end belongs to the line it ends
        yield line + 1, line + 1 + inner
        at = start


def count_lines(text: str) -> int:
    """How many lines a text has."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def find_line_start(text: str, position: int, back: int = 0) -> int:
    """Where the line of a position begins, or one that is some lines before it."""
    at = text.rfind("\n", 0, position) + 1
    for _ in range(back):
        if at == 0:
            break
        at = text.rfind("\n", 0, at - 1) + 1
    return at


def find_line_end(text: str, position: int, on: int = 0) -> int:
    """Where the line of a position ends, behind its newline, or one that is some lines after it."""
    at = position
    for _ in range(on + 1):
        at = text.find("\n", at) + 1 or len(text)
    return at


def format_line_range(first: int, last: int) -> str:
    """`line 3`, or `lines 3–5`."""
    return f"line {first}" if first == last else f"lines {first}–{last}"
