"""A page of lines out of a text that is already in memory."""

import msgspec

from handrail.edit.lines import count_lines

MAX_LINE_CHARACTERS = 2_000
"""Characters of a line that are shown."""
_BLOCK_CHARS = 4096


class TextPage(msgspec.Struct, frozen=True):
    """Whole lines from `first` on, and how to go on."""

    content: str
    first: int
    """1-based; negative (counted from the end) where the line's number is not known."""
    returned: int
    total: int | None
    next_offset: int | None
    cut: int = 0
    """Lines that were longer than LINE_LIMIT."""


def split_lines(text: str) -> list[str]:
    """The lines with their newlines; a text that ends in one has no empty line after it."""
    lines = text.split("\n")
    last = lines.pop()
    lines = [f"{line}\n" for line in lines]
    if last:
        lines.append(last)
    return lines


def split_rows(text: str) -> list[str]:
    """The lines, with those over LINE_LIMIT in several rows, so that the rows joined are the text."""
    rows: list[str] = []
    for line in split_lines(text):
        if len(line) <= MAX_LINE_CHARACTERS:
            rows.append(line)
            continue
        # The newline goes with the last row, even where that is full: it makes no line longer.
        last = (len(line) - line.endswith("\n") - 1) // MAX_LINE_CHARACTERS * MAX_LINE_CHARACTERS
        rows += [line[at : at + MAX_LINE_CHARACTERS] for at in range(0, last, MAX_LINE_CHARACTERS)]
        rows.append(line[last:])
    return rows


def build_whole_page(text: str, limit: int, budget: int) -> TextPage | None:
    """All of a short text, without taking it apart; None when it may not fit one page."""
    if len(text) > min(budget, MAX_LINE_CHARACTERS):
        return None
    total = count_lines(text)
    return TextPage(text, 1, total, total, None) if total <= limit else None


def build_text_page(text: str, total: int, offset: int, limit: int, budget: int) -> TextPage:
    """The page that begins at a line of a text; only the lines of the page are taken apart."""
    start = max(0, total + offset) if offset < 0 else offset - 1
    taken, cut = fit_to_budget(_lines_from(text, start, limit), budget)
    end = start + len(taken)
    return TextPage("".join(taken), start + 1, len(taken), total, end + 1 if end < total else None, cut)


def _lines_from(text: str, start: int, count: int) -> list[str]:
    position = _position(text, start)
    lines: list[str] = []
    while len(lines) < count and position < len(text):
        end = text.find("\n", position) + 1 or len(text)
        lines.append(text[position:end])
        position = end
    return lines


def _position(text: str, line: int) -> int:
    """Where a line (from 0) begins: whole blocks are counted, only the last one is walked through."""
    position, left = 0, line
    while left and (found := text.count("\n", position, position + _BLOCK_CHARS)) < left:
        position, left = position + _BLOCK_CHARS, left - found
    for _ in range(left):
        position = text.index("\n", position) + 1
    return position


def fit_to_budget(lines: list[str], budget: int) -> tuple[list[str], int]:
    """As many lines as the budget of characters holds, at least one; and how many of them were cut."""
    lengths = list(map(len, lines))
    if sum(lengths) <= budget and max(lengths, default=0) <= MAX_LINE_CHARACTERS:
        return lines, 0
    taken: list[str] = []
    used = cut = 0
    for line in lines:
        short = shorten_line(line)
        used += len(short)
        if taken and used > budget:
            break
        taken.append(short)
        cut += short is not line
    return taken, cut


def shorten_line(line: str, length: int | None = None) -> str:
    """A line of at most LINE_LIMIT characters, marked where it was cut; `length` where there is more of it than here.

    The newline is no part of the length.
    """
    end = "\n" if line.endswith("\n") else ""
    whole = len(line) - len(end) if length is None else length
    return (
        line
        if whole <= MAX_LINE_CHARACTERS
        else f"{line[:MAX_LINE_CHARACTERS]}… [{whole - MAX_LINE_CHARACTERS} more characters]{end}"
    )
