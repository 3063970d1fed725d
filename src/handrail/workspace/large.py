"""Pages of files too large to hold: only the page's own bytes are kept, at either end and in the middle."""

import hashlib
import os
from collections.abc import Iterator
from itertools import islice

import msgspec

from handrail.workspace.line_index import LineIndexes
from handrail.workspace.page import MAX_LINE_CHARACTERS, TextPage, shorten_line
from handrail.workspace.text import Encoding, LineEnding, decode_page, find_byte_order_mark, trim_cut_character

_BLOCK_BYTES = 64 * 1024
_CHUNK_BYTES = 1 << 20
_MAX_HEAD_BYTES = MAX_LINE_CHARACTERS * 4 + 8
"""Bytes of a line that can matter to what is shown of it."""


class LargePage(msgspec.Struct, frozen=True):
    """A page and the bytes it was made of."""

    page: TextPage
    start: int
    length: int
    damaged: int
    line_ending: LineEnding


class _LargeLine(msgspec.Struct, frozen=True):
    head: bytes
    """As much of the line as may be shown, without its end."""
    beyond: int
    """Bytes of the line after the head."""
    end: str
    """How the line ends: `\\n`, `\\r\\n`, or not at all."""

    @property
    def length(self) -> int:
        return len(self.head) + self.beyond + len(self.end)


def read_large_page(
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
    # What is added to the file meanwhile is not of this page: it is as long as it was when it was opened.
    lines = _large_lines(descriptor, start, status.st_size)
    found = _page(islice(lines, -first if first < 0 else None), start, first, limit, budget, encoding)
    newlines = indexes.total(status)
    if newlines is None:
        return found
    total = newlines + (not _ends_in_newline(descriptor, status.st_size))
    return msgspec.structs.replace(found, page=msgspec.structs.replace(found.page, total=total))


def hash_range(descriptor: int, start: int, length: int) -> str:
    """The hash of some bytes of an open file, which need not fit into memory."""
    digest, end = hashlib.sha256(), start + length
    while start < end and (block := os.pread(descriptor, min(_CHUNK_BYTES, end - start), start)):
        digest.update(block)
        start += len(block)
    return digest.hexdigest()


def _page(
    lines: Iterator[_LargeLine], start: int, first: int, limit: int, budget: int, encoding: Encoding
) -> LargePage:
    shown: list[str] = []
    ends: set[str] = set()
    used = length = cut = damaged = 0
    more = False
    for line in lines:
        mark = find_byte_order_mark(encoding) if start + length == 0 else b""
        text, bad, whole = _decoded(line, mark, encoding)
        short = shorten_line(text, whole)
        if len(shown) == limit or (shown and used + len(short) > budget):
            more = True
            break
        shown.append(short)
        ends.add(line.end)
        used, length, damaged = used + len(short), length + line.length, damaged + bad
        cut += whole > MAX_LINE_CHARACTERS
    total = None if more or first < 0 else first + len(shown) - 1
    page = TextPage("".join(shown), first, len(shown), total, first + len(shown) if more else None, cut)
    return LargePage(page, start, length, damaged, _line_ending(ends - {""}))


def _decoded(line: _LargeLine, mark: bytes, encoding: Encoding) -> tuple[str, int, int]:
    """A line's text with a newline, its damaged bytes, and how long it is without the newline."""
    head = line.head.removeprefix(mark)
    text, damaged = decode_page(trim_cut_character(head) if line.beyond else head, encoding)
    # The characters beyond the head were not decoded: their bytes are the best count there is.
    return f"{text}\n" if line.end else text, damaged, len(text) + line.beyond


def _line_ending(ends: set[str]) -> LineEnding:
    if len(ends) == 2:
        return "mixed"
    return "crlf" if "\r\n" in ends else "lf" if ends else "none"


def _large_lines(descriptor: int, position: int, end: int) -> Iterator[_LargeLine]:
    """The lines from a byte on; of each only as much as may be shown."""
    head, length, last = bytearray(), 0, b""
    while position < end and (block := os.pread(descriptor, min(_BLOCK_BYTES, end - position), position)):
        position += len(block)
        pieces = block.split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            head += piece[: max(0, _MAX_HEAD_BYTES - len(head))]
            yield _line(bytes(head), length + len(piece), b"\r" if (piece or last).endswith(b"\r") else b"", "\n")
            head, length, last = bytearray(), 0, b""
        head += rest[: max(0, _MAX_HEAD_BYTES - len(head))]
        length, last = length + len(rest), rest[-1:] or last
    if length:
        yield _line(bytes(head), length, b"", "")


def _line(head: bytes, length: int, returns: bytes, end: str) -> _LargeLine:
    if length == len(head):
        head = head.removesuffix(returns)
    return _LargeLine(head, length - len(returns) - len(head), returns.decode() + end)


def _start_from_end(descriptor: int, size: int, lines: int) -> tuple[int, int]:
    """Where the last `lines` lines begin, and that line's number counted from the end."""
    wanted = lines + _ends_in_newline(descriptor, size)
    position, counted = size, 0
    while position > 0:
        block_start = max(0, position - _BLOCK_BYTES)
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


def _ends_in_newline(descriptor: int, size: int) -> bool:
    return os.pread(descriptor, 1, max(0, size - 1)) == b"\n"
