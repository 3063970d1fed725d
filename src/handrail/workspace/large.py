"""Pages of files too large to hold: only the page's own bytes are kept, at either end and in the middle."""

import os
from collections.abc import Iterator

import msgspec

from handrail.workspace.line_index import LineIndexes
from handrail.workspace.page import LINE_LIMIT, Page, shortened
from handrail.workspace.text import Encoding, decoded_page

_BLOCK = 64 * 1024
_HEAD = LINE_LIMIT * 4 + 8
"""Bytes of a line that can matter to what is shown of it."""


class LargePage(msgspec.Struct, frozen=True):
    """A page and the bytes it was made of."""

    page: Page
    start: int
    length: int
    damaged: int


class _Line(msgspec.Struct, frozen=True):
    head: bytes
    length: int


def large_page(
    descriptor: int,
    status: os.stat_result,
    encoding: Encoding,
    offset: int,
    limit: int,
    budget: int,
    indexes: LineIndexes,
) -> LargePage | None:
    """The page at a line, or at a line counted from the end; None when the file has fewer lines."""
    if offset < 0:
        start, first = _start_from_end(descriptor, status.st_size, -offset)
    else:
        start, first = indexes.start_of(descriptor, status, offset), offset
    if start is None:
        return None
    return _page(descriptor, start, first, limit, budget, encoding, indexes.total(status))


def _page(
    descriptor: int, start: int, first: int, limit: int, budget: int, encoding: Encoding, newlines: int | None
) -> LargePage:
    shown: list[str] = []
    used = length = cut = damaged = 0
    more = False
    for line in _lines_from(descriptor, start):
        text, bad = decoded_page(line.head, encoding)
        # The characters beyond the head were not decoded: their bytes are the best count there is.
        short = shortened(text.replace("\r\n", "\n"), len(text) + line.length - len(line.head))
        if len(shown) == limit or (shown and used + len(short) > budget):
            more = True
            break
        shown.append(short)
        used, length, damaged = used + len(short), length + line.length, damaged + bad
        cut += line.length > len(line.head) or len(text) > LINE_LIMIT + 1
    total = None if newlines is None else newlines + (not _ends_in_newline(descriptor))
    page = Page("".join(shown), first, len(shown), total, first + len(shown) if more else None, cut)
    return LargePage(page, start, length, damaged)


def _lines_from(descriptor: int, position: int) -> Iterator[_Line]:
    """The lines from a byte on; of each only as much as may be shown."""
    head, length = bytearray(), 0
    while block := os.pread(descriptor, _BLOCK, position):
        position += len(block)
        pieces = block.split(b"\n")
        last = pieces.pop()
        for piece in pieces:
            head += piece[: max(0, _HEAD - len(head))]
            # The newline ends the head even of a long line, so that a cut line still ends.
            yield _Line(bytes(head) + b"\n", length + len(piece) + 1)
            head, length = bytearray(), 0
        head += last[: max(0, _HEAD - len(head))]
        length += len(last)
    if length:
        yield _Line(bytes(head), length)


def _start_from_end(descriptor: int, size: int, lines: int) -> tuple[int, int]:
    """Where the last `lines` lines begin, and that line's number counted from the end."""
    wanted = lines + _ends_in_newline(descriptor, size)
    position, counted = size, 0
    while position > 0:
        block_start = max(0, position - _BLOCK)
        block = os.pread(descriptor, position - block_start, block_start)
        here = block.count(b"\n")
        if counted + here >= wanted:
            return block_start + _nth_from_end(block, wanted - counted) + 1, -lines
        counted += here
        position = block_start
    return 0, 1


def _nth_from_end(block: bytes, count: int) -> int:
    at = len(block)
    for _ in range(count):
        at = block.rindex(b"\n", 0, at)
    return at


def _ends_in_newline(descriptor: int, size: int | None = None) -> bool:
    end = os.fstat(descriptor).st_size if size is None else size
    return os.pread(descriptor, 1, max(0, end - 1)) == b"\n"
