"""Pages of a text, also of very large ones."""

import codecs
import hashlib
import os
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import msgspec

from handrail.edit.lines import count_lines
from handrail.workspace.text import Encoding, LineEnding, decode_page, find_byte_order_mark, trim_cut_character

# § [workspace.page] A page of lines out of a text that is already in memory.

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


# § [workspace.line_index] Where the lines of a large file begin, roughly: one count for each quarter of a megabyte,
# § kept for later pages.

CHUNK_BYTES = 256 * 1024
_MAX_KEPT_INDEXES = 8

Identity = tuple[int, int, int, int]


class LineIndex:
    """How many newlines lie before each chunk, counted as far as anybody needed."""

    def __init__(self, size: int) -> None:
        self._before = [0]
        self._size = size

    @property
    def total(self) -> int | None:
        """All newlines, once the whole file was counted."""
        return self._before[-1] if (len(self._before) - 1) * CHUNK_BYTES >= self._size else None

    def chunk_of(self, descriptor: int, newline: int) -> tuple[int, int] | None:
        """The chunk that holds the n-th newline (from 1) and the newlines before it; None when there are fewer."""
        while self._before[-1] < newline and self.total is None:
            self._count(descriptor)
        if self._before[-1] < newline:
            return None
        chunk = bisect_left(self._before, newline) - 1
        return chunk, self._before[chunk]

    def _count(self, descriptor: int) -> None:
        data = os.pread(descriptor, CHUNK_BYTES, (len(self._before) - 1) * CHUNK_BYTES)
        self._before.append(self._before[-1] + data.count(b"\n"))


class LineIndexes:
    """The indexes of the files paged last, by what the files were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Identity, LineIndex] = OrderedDict()

    def start_of(self, descriptor: int, status: os.stat_result, line: int) -> int | None:
        """The byte at which a line (from 1) begins; None when the file has fewer lines."""
        if line == 1:
            return 0
        with self._lock:
            found = self._index(status).chunk_of(descriptor, line - 1)
        if found is None:
            return None
        chunk, before = found
        data = os.pread(descriptor, CHUNK_BYTES, chunk * CHUNK_BYTES)
        pieces = data.split(b"\n", line - 1 - before)
        start = chunk * CHUNK_BYTES + len(data) - len(pieces[-1])
        return start if start < status.st_size else None

    def total(self, status: os.stat_result) -> int | None:
        """The newlines of a file, if they were counted already."""
        with self._lock:
            index = self._kept.get(_identity(status))
        return index.total if index else None

    def _index(self, status: os.stat_result) -> LineIndex:
        identity = _identity(status)
        index = self._kept.pop(identity, None) or LineIndex(status.st_size)
        self._kept[identity] = index
        if len(self._kept) > _MAX_KEPT_INDEXES:
            self._kept.popitem(last=False)
        return index


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# § [workspace.large] Pages of files too large to hold: only the page's own bytes are kept, at either end and in the
# § middle.

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


# § [workspace.rows] Pages of a text that is kept aside, in rows: read in pieces, so that memory is bounded however
# § large the text is.

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
