"""Pages of lines of texts of any size, with the marks of what a session has seen."""

import codecs
import os
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice

import msgspec

from handrail.protocol.wire import get_json_decoder
from handrail.workspace.file_state import read_chunks
from handrail.workspace.text import Encoding, LineEnding, decode_page, find_byte_order_mark, trim_cut_character

MAX_LINE_CHARACTERS = 2_000
"""Characters of a line that are shown."""
_COUNTED_CHARS = 4096
_BLOCK_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024
_MAX_HEAD_BYTES = MAX_LINE_CHARACTERS * 4 + 8
"""Bytes of a line that can matter to its shown part."""
_MAX_CACHED_INDEXES = 8
_SETTLED_NANOSECONDS, _COARSE_SETTLED_NANOSECONDS = 50_000_000, 2_000_000_000
"""Several ticks of the clock that stamps files, and of the coarsest one."""
_COARSE_NANOSECONDS = 10_000_000
"""Multiples of it are times of a file system that keeps no finer ones."""

_Identity = tuple[int, int, int, int]


class TextPage(msgspec.Struct, frozen=True):
    content: str
    first: int
    """The number of the first line, from 1; negative if it is only known from the end."""
    returned: int
    total: int | None
    next_offset: int | None
    cut: int = 0
    """Lines that were longer than MAX_LINE_CHARACTERS."""


class LargePage(msgspec.Struct, frozen=True):
    """A page of a file, and the bytes that it comes from."""

    page: TextPage
    start: int
    length: int
    damaged: int
    line_ending: LineEnding


class WholeFileMark(msgspec.Struct, frozen=True, tag="whole"):
    """The session has seen all bytes of a file."""

    hash: str


class PageMark(msgspec.Struct, frozen=True, tag="part"):
    """The session has seen one page of a large file."""

    identity: tuple[int, int, int, int] | None = None
    """Inode, size, change times of content and of the inode. None if a later change may leave them the same."""


decode_mark = get_json_decoder(WholeFileMark | PageMark).decode
encode_mark = msgspec.json.Encoder().encode


def identify_content(status: os.stat_result) -> tuple[int, int, int, int]:
    """What differs after any change of a file, unless it has the same time as the change before."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_settled(status: os.stat_result) -> bool:
    """Whether each later change of a file has another time."""
    is_coarse = status.st_ctime_ns % _COARSE_NANOSECONDS == 0
    return time.time_ns() - status.st_ctime_ns > (_COARSE_SETTLED_NANOSECONDS if is_coarse else _SETTLED_NANOSECONDS)


def build_whole_page(text: str, limit: int, budget: int) -> TextPage | None:
    """All of a short text. None if it may not fit one page."""
    if len(text) > min(budget, MAX_LINE_CHARACTERS):
        return None
    total = _count_lines(text)
    return TextPage(text, 1, total, total, None) if total <= limit else None


def build_text_page(text: str, offset: int, limit: int, budget: int) -> TextPage:
    """The page of a text at a line, or at a line counted from the end; `returned` is 0 past the last line."""
    total = _count_lines(text)
    start = max(0, total + offset) if offset < 0 else offset - 1
    lines = _take_lines(text, start, limit) if start < total else ()
    return _build_page(*_fit_to_budget(lines, budget), start, total)


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def read_large_page(
    descriptor: int,
    status: os.stat_result,
    encoding: Encoding,
    offset: int,
    limit: int,
    budget: int,
    indexes: "LineIndexes",
) -> LargePage | None:
    """The page of a large file at a line, or at a line counted from the end. None if the file has fewer lines.

    Only the bytes of the page are held in memory.
    """
    if offset < 0:
        start, first = _find_start_from_end(descriptor, status.st_size, -offset)
    else:
        start, first = indexes.find_start(descriptor, status, offset), offset
    if start is None:
        return None
    # Bytes that are appended after the file was opened do not count.
    lines = _read_large_lines(descriptor, start, status.st_size)
    read = _build_large_page(islice(lines, -first if first < 0 else None), start, first, limit, budget, encoding)
    newlines = indexes.total(status)
    if newlines is None:
        return read
    total = newlines + (not _ends_in_newline(descriptor, status.st_size))
    return msgspec.structs.replace(read, page=msgspec.structs.replace(read.page, total=total))


def read_row_page(descriptor: int, offset: int, limit: int, budget: int) -> TextPage:
    """The page of a stored output at a row, or at a row counted from the end; `returned` is 0 past the last row.

    The text is read in chunks, so memory is bounded.
    """
    total = _count_rows(descriptor, _identify(os.fstat(descriptor)))
    start = max(0, total + offset) if offset < 0 else offset - 1
    rows = islice(chain.from_iterable(_read_rows(descriptor)), start, start + limit)
    return _build_page(*_fit_to_budget(rows, budget), start, total)


def split_rows(text: str) -> list[str]:
    """The lines, those over MAX_LINE_CHARACTERS in several rows. The rows joined are the text."""
    rows: list[str] = []
    for line in _split_lines(text):
        if len(line) <= MAX_LINE_CHARACTERS:
            rows.append(line)
            continue
        # The newline goes with the last row, even if that is full.
        last = (len(line) - line.endswith("\n") - 1) // MAX_LINE_CHARACTERS * MAX_LINE_CHARACTERS
        rows += [line[at : at + MAX_LINE_CHARACTERS] for at in range(0, last, MAX_LINE_CHARACTERS)]
        rows.append(line[last:])
    return rows


class LineIndexes:
    """Caches, for the large files that were read last, the number of newlines before each chunk."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache: OrderedDict[_Identity, list[int]] = OrderedDict()

    def find_start(self, descriptor: int, status: os.stat_result, line: int) -> int | None:
        """The byte at which a line (from 1) begins. None if the file has fewer lines."""
        if line == 1:
            return 0
        newline = line - 1
        with self._lock:
            identity = _identify(status)
            counts = self._cache.setdefault(identity, [0])
            self._cache.move_to_end(identity)
            if len(self._cache) > _MAX_CACHED_INDEXES:
                self._cache.popitem(last=False)
            while counts[-1] < newline and not _is_complete(counts, status):
                data = os.pread(descriptor, _CHUNK_BYTES, (len(counts) - 1) * _CHUNK_BYTES)
                counts.append(counts[-1] + data.count(b"\n"))
            if counts[-1] < newline:
                return None
            chunk = bisect_left(counts, newline) - 1
            before = counts[chunk]
        data = os.pread(descriptor, _CHUNK_BYTES, chunk * _CHUNK_BYTES)
        pieces = data.split(b"\n", newline - before)
        start = chunk * _CHUNK_BYTES + len(data) - len(pieces[-1])
        return start if start < status.st_size else None

    def total(self, status: os.stat_result) -> int | None:
        """The number of newlines in a file, if they are all counted already."""
        with self._lock:
            counts = self._cache.get(_identify(status))
        return counts[-1] if counts and _is_complete(counts, status) else None


def _is_complete(counts: list[int], status: os.stat_result) -> bool:
    return (len(counts) - 1) * _CHUNK_BYTES >= status.st_size


def _identify(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _build_page(lines: list[str], cut: int, start: int, total: int) -> TextPage:
    end = start + len(lines)
    return TextPage("".join(lines), start + 1, len(lines), total, end + 1 if end < total else None, cut)


def _split_lines(text: str) -> list[str]:
    """The lines with their newlines. A text that ends in a newline has no empty line after it."""
    lines = text.split("\n")
    last = lines.pop()
    lines = [f"{line}\n" for line in lines]
    if last:
        lines.append(last)
    return lines


def _take_lines(text: str, start: int, count: int) -> Iterator[str]:
    position = _find_line(text, start)
    while count and position < len(text):
        end = text.find("\n", position) + 1 or len(text)
        yield text[position:end]
        position, count = end, count - 1


def _find_line(text: str, line: int) -> int:
    """The start of a line (from 0). Newlines are counted by blocks, and found one by one only in the last block."""
    position, left = 0, line
    while left and (count := text.count("\n", position, position + _COUNTED_CHARS)) < left:
        position, left = position + _COUNTED_CHARS, left - count
    for _ in range(left):
        position = text.index("\n", position) + 1
    return position


def _fit_to_budget(lines: Iterable[str], budget: int) -> tuple[list[str], int]:
    """As many lines as fit the budget of characters, at least one, and the number of those that were cut."""
    fitting: list[str] = []
    used = cut = 0
    for line in lines:
        short = line if len(line) <= MAX_LINE_CHARACTERS else _shorten_line(line)
        used += len(short)
        if fitting and used > budget:
            break
        fitting.append(short)
        cut += short is not line
    return fitting, cut


def _shorten_line(line: str, length: int | None = None) -> str:
    """Cuts a line to MAX_LINE_CHARACTERS, and notes how many are missing.

    `length`: of the whole line without its newline, if `line` is only its beginning.
    """
    end = "\n" if line.endswith("\n") else ""
    over = (len(line) - len(end) if length is None else length) - MAX_LINE_CHARACTERS
    return line if over <= 0 else f"{line[:MAX_LINE_CHARACTERS]}… [{over} more characters]{end}"


class _LargeLine(msgspec.Struct, frozen=True):
    head: bytes
    """As much of the line as may be shown, without its end."""
    beyond: int
    """Bytes of the line after the head."""
    end: str
    """Its line ending: `\\n`, `\\r\\n`, or empty."""

    @property
    def length(self) -> int:
        return len(self.head) + self.beyond + len(self.end)


def _build_large_page(
    lines: Iterator[_LargeLine], start: int, first: int, limit: int, budget: int, encoding: Encoding
) -> LargePage:
    shown: list[str] = []
    ends: set[str] = set()
    used = length = cut = damaged = 0
    more = False
    for line in lines:
        mark = find_byte_order_mark(encoding) if start + length == 0 else b""
        text, invalid, characters = _decode_line(line, mark, encoding)
        short = _shorten_line(text, characters)
        if len(shown) == limit or (shown and used + len(short) > budget):
            more = True
            break
        shown.append(short)
        ends.add(line.end)
        used, length, damaged = used + len(short), length + line.length, damaged + invalid
        cut += characters > MAX_LINE_CHARACTERS
    total = None if more or first < 0 else first + len(shown) - 1
    page = TextPage("".join(shown), first, len(shown), total, first + len(shown) if more else None, cut)
    return LargePage(page, start, length, damaged, _find_line_ending(ends - {""}))


def _decode_line(line: _LargeLine, mark: bytes, encoding: Encoding) -> tuple[str, int, int]:
    """The text of a line with a newline, the number of invalid bytes, and the length without the newline."""
    head = line.head.removeprefix(mark)
    text, damaged = decode_page(trim_cut_character(head) if line.beyond else head, encoding)
    # The rest of the line is not decoded: its bytes count as characters.
    return f"{text}\n" if line.end else text, damaged, len(text) + line.beyond


def _find_line_ending(ends: set[str]) -> LineEnding:
    if len(ends) == 2:
        return "mixed"
    return "crlf" if "\r\n" in ends else "lf" if ends else "none"


def _read_large_lines(descriptor: int, position: int, end: int) -> Iterator[_LargeLine]:
    head, length, last = bytearray(), 0, b""
    for block in read_chunks(descriptor, position, end, _BLOCK_BYTES):
        pieces = block.split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            head += piece[: max(0, _MAX_HEAD_BYTES - len(head))]
            returns = b"\r" if (piece or last).endswith(b"\r") else b""
            yield _build_large_line(bytes(head), length + len(piece), returns, "\n")
            head, length, last = bytearray(), 0, b""
        head += rest[: max(0, _MAX_HEAD_BYTES - len(head))]
        length, last = length + len(rest), rest[-1:] or last
    if length:
        yield _build_large_line(bytes(head), length, b"", "")


def _build_large_line(head: bytes, length: int, returns: bytes, end: str) -> _LargeLine:
    if length == len(head):
        head = head.removesuffix(returns)
    return _LargeLine(head, length - len(returns) - len(head), returns.decode() + end)


def _find_start_from_end(descriptor: int, size: int, lines: int) -> tuple[int, int]:
    """The start of the last `lines` lines, and the number of its line, counted from the end."""
    wanted = lines + _ends_in_newline(descriptor, size)
    position, counted = size, 0
    while position > 0:
        block_start = max(0, position - _BLOCK_BYTES)
        block = os.pread(descriptor, position - block_start, block_start)
        count = block.count(b"\n")
        if counted + count >= wanted:
            at = len(block)
            for _ in range(wanted - counted):
                at = block.rindex(b"\n", 0, at)
            return block_start + at + 1, -lines
        counted += count
        position = block_start
    return 0, 1


def _ends_in_newline(descriptor: int, size: int) -> bool:
    return os.pread(descriptor, 1, max(0, size - 1)) == b"\n"


@lru_cache(maxsize=64)
def _count_rows(descriptor: int, _file: _Identity) -> int:
    return sum(len(rows) for rows in _read_rows(descriptor))


def _read_rows(descriptor: int) -> Iterator[list[str]]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a command may print anything
    rest = ""
    for chunk in read_chunks(descriptor, size=_CHUNK_BYTES):
        rows = split_rows(rest + decoder.decode(chunk))
        # The last row may continue in the next chunk. It begins where a row begins, so it can be split again.
        rest = rows.pop() if rows and not rows[-1].endswith("\n") else ""
        yield rows
    rest += decoder.decode(b"", final=True)
    if rest:
        yield [rest]
