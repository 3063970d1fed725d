"""Pages of what a process session has printed: rows of cleaned text, so that pages joined are the log."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.process.cleaning import Cleaner
from handrail.workspace.page import Page, split_rows

if TYPE_CHECKING:
    from handrail.process.sessions.log import ProcessLog

_PIECE = 1 << 18


def log_page(log: "ProcessLog", offset: int, limit: int, budget: int) -> Page:
    """The page at a row, or at a row counted from the end; `returned` is 0 where there are fewer."""
    start = offset - 1 if offset > 0 else max(0, sum(len(rows) for rows in _blocks(log)) + offset)
    taken: list[str] = []
    used = total = 0
    full = False
    for rows in _blocks(log):
        first = max(0, start + len(taken) - total)
        total += len(rows)
        for row in rows[first : first + limit - len(taken)] if not full else ():
            used += len(row)
            if taken and used > budget:
                full = True
                break
            taken.append(row)
    end = start + len(taken)
    return Page("".join(taken), start + 1, len(taken), total, end + 1 if end < total else None)


def _blocks(log: "ProcessLog") -> Iterator[list[str]]:
    """All rows, some at a time. The last row may go on in the next block; it begins where a row begins, so it can be
    split again from there."""
    rest = ""
    for text in _texts(log):
        rows = split_rows(rest + text)
        rest = rows.pop() if rows and not rows[-1].endswith("\n") else ""
        if rows:
            yield rows
    if rest:
        yield [rest]


def _texts(log: "ProcessLog") -> Iterator[str]:
    """What is kept by now, cleaned, with a line in the place of what is not."""
    cleaner, position, size = Cleaner(), 0, log.size
    while position < size:
        start, data = log.read_from(position, min(_PIECE, size - position))
        data = data[: max(0, size - start)]
        if 0 < position < start and data:
            yield f"{cleaner.end()}\n… {start - position:,} bytes are not kept …\n"
        if not data:
            break
        yield cleaner.feed(data)
        position = start + len(data)
    yield cleaner.end()
