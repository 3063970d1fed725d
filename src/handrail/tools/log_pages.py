"""Pages of what a process session has printed: rows of cleaned text, so that pages joined are the log.

Cleaning a text takes its time and keeps every newline. So rows are counted in the bytes where no line can be more than
one row, and only what is on the page is cleaned.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from handrail.process.cleaning import Cleaner, clean_output
from handrail.workspace.pages import MAX_LINE_CHARACTERS, TextPage, split_rows

if TYPE_CHECKING:
    from handrail.process.sessions.log import ProcessLog

_PIECE_BYTES = 1 << 18
_MAX_CARRY_BYTES = 1 << 20
"""Bytes of a line that are kept until its newline comes."""


def read_log_page(log: "ProcessLog", offset: int, limit: int, budget: int) -> TextPage:
    """The page at a row, or at a row counted from the end; `returned` is 0 where there are fewer."""
    start = offset - 1 if offset > 0 else max(0, sum(block.size for block in _blocks(log)) + offset)
    taken: list[str] = []
    used = total = 0
    full = False
    for block in _blocks(log):
        first = max(0, start + len(taken) - total)
        total += block.size
        if full or first >= block.size:
            continue
        for row in block.rows()[first : first + limit - len(taken)]:
            used += len(row)
            full = bool(taken) and used > budget
            if full:
                break
            taken.append(row)
        full = full or len(taken) >= limit
    end = start + len(taken)
    return TextPage("".join(taken), start + 1, len(taken), total, end + 1 if end < total else None)


class _Block(NamedTuple):
    """Some rows; those of whole short lines are made when they are needed."""

    size: int
    lines: bytes = b""
    made: tuple[str, ...] = ()

    def rows(self) -> list[str]:
        return split_rows(clean_output(self.lines)) if self.lines else list(self.made)


def _blocks(log: "ProcessLog") -> Iterator[_Block]:
    """All rows, some at a time. A last row that may go on begins where a row begins, so it can be split again there."""
    cleaner, rest, within_line = Cleaner(), "", False
    for part in _parts(log):
        if not within_line and isinstance(part, bytes) and _has_short_lines(part):
            yield _Block(part.count(b"\n"), lines=part)
            continue
        within_line = isinstance(part, bytes) and not part.endswith(b"\n")
        text = cleaner.feed(part) if isinstance(part, bytes) else f"{cleaner.end()}\n{part}\n"
        rows = split_rows(rest + text)
        rest = rows.pop() if rows and not rows[-1].endswith("\n") else ""
        yield _Block(len(rows), made=tuple(rows))
    rows = split_rows(rest + cleaner.end())
    yield _Block(len(rows), made=tuple(rows))


def _has_short_lines(part: bytes) -> bool:
    """Whether it is whole lines, each of which is one row."""
    return part.endswith(b"\n") and max(map(len, part.split(b"\n"))) <= MAX_LINE_CHARACTERS


def _parts(log: "ProcessLog") -> Iterator[bytes | str]:
    """What is kept by now, whole lines at a time where they are not too long; a text in the place of what is not."""
    carry, position, size = b"", 0, log.size
    while position < size:
        start, data = log.read_from(position, min(_PIECE_BYTES, size - position))
        data = data[: max(0, size - start)]
        if not data:
            break
        if 0 < position < start:
            yield carry
            yield f"… {start - position:,} bytes are not kept …"
            carry = b""
        position = start + len(data)
        lines, newline, carry = (carry + data).rpartition(b"\n")
        if newline:
            yield lines + newline
        if len(carry) > _MAX_CARRY_BYTES:
            yield carry
            carry = b""
    if carry:
        yield carry
