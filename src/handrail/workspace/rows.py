"""Pages of a text that is kept aside, in rows: read in pieces, so that memory is bounded however large the text is."""

import codecs
import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from handrail.workspace.page import TextPage, split_rows

_ROW_BLOCK_BYTES = 256 * 1024


def read_row_page(descriptor: int, offset: int, limit: int, budget: int) -> TextPage:
    """The page at a row, or at a row counted from the end; `returned` is 0 where there are fewer."""
    total = _total(descriptor, _row_identity(descriptor))
    start = max(0, total + offset) if offset < 0 else offset - 1
    taken: list[str] = []
    used = 0
    for row in islice(_rows(descriptor), start, start + limit):
        used += len(row)
        if taken and used > budget:
            break
        taken.append(row)
    end = start + len(taken)
    return TextPage("".join(taken), start + 1, len(taken), total, end + 1 if end < total else None)


def _row_identity(descriptor: int) -> tuple[int, ...]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=64)
def _total(descriptor: int, _text: tuple[int, ...]) -> int:
    """How many rows there are; kept, since who pages through a large text asks for every page."""
    return sum(len(rows) for rows in _blocks(descriptor))


def _rows(descriptor: int) -> Iterator[str]:
    for rows in _blocks(descriptor):
        yield from rows


def _blocks(descriptor: int) -> Iterator[list[str]]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # what a command printed may be anything
    position, rest = 0, ""
    while block := os.pread(descriptor, _ROW_BLOCK_BYTES, position):
        position += len(block)
        rows = split_rows(rest + decoder.decode(block))
        # The last row may go on in the next block. It begins where a row begins, so it can be split again from there.
        rest = rows.pop() if rows and not rows[-1].endswith("\n") else ""
        yield rows
    rest += decoder.decode(b"", final=True)
    if rest:
        yield [rest]
