"""Reads what a process session has printed."""

import codecs
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from handrail.process.output import Cleaner, clean_output, count_unfinished_escape
from handrail.process.sessions.sessions import ProcessSession
from handrail.process.sessions.store import ProcessLog
from handrail.workspace.pages import MAX_LINE_CHARACTERS, TextPage, split_rows
from handrail.workspace.resolve import closing_descriptor

_PIECE_BYTES = 1 << 18
_MAX_CARRY_BYTES = 1 << 20
"""Bytes of a line that are held until its newline comes."""
_POSITION_FILE = "polled"
_POSITION_DIGITS = 20
_WAIT_SECONDS = 1.0
_PAUSE_SECONDS = 0.02


def read_log_page(log: ProcessLog, offset: int, limit: int, budget: int) -> TextPage:
    """The page of the log at a row, or at a row counted from the end. `returned` is 0 if the log is shorter.

    Rows are cleaned text, and joined pages are the log. Cleaning is slow and keeps every newline. So rows are counted
    in the bytes if no line can be more than one row, and only the rows of the page are cleaned.
    """
    start = offset - 1 if offset > 0 else max(0, sum(block.size for block in _list_blocks(log)) + offset)
    rows: list[str] = []
    used = total = 0
    full = False
    for block in _list_blocks(log):
        first = max(0, start + len(rows) - total)
        total += block.size
        if full or first >= block.size:
            continue
        for row in block.split()[first : first + limit - len(rows)]:
            used += len(row)
            full = bool(rows) and used > budget
            if full:
                break
            rows.append(row)
        full = full or len(rows) >= limit
    end = start + len(rows)
    return TextPage("".join(rows), start + 1, len(rows), total, end + 1 if end < total else None)


class _Block(NamedTuple):
    """Some rows. Whole short lines are split when they are needed."""

    size: int
    lines: bytes = b""
    rows: tuple[str, ...] = ()

    def split(self) -> list[str]:
        return split_rows(clean_output(self.lines)) if self.lines else list(self.rows)


def _list_blocks(log: ProcessLog) -> Iterator[_Block]:
    """All rows, some at a time. The last row of a part is split again with the next part, which may continue it."""
    cleaner, rest, within_line = Cleaner(), "", False
    for part in _read_parts(log):
        if not within_line and isinstance(part, bytes) and _has_short_lines(part):
            yield _Block(part.count(b"\n"), lines=part)
            continue
        within_line = isinstance(part, bytes) and not part.endswith(b"\n")
        text = cleaner.feed(part) if isinstance(part, bytes) else f"{cleaner.end()}\n{part}\n"
        rows = split_rows(rest + text)
        rest = rows.pop() if rows and not rows[-1].endswith("\n") else ""
        yield _Block(len(rows), rows=tuple(rows))
    rows = split_rows(rest + cleaner.end())
    yield _Block(len(rows), rows=tuple(rows))


def _has_short_lines(part: bytes) -> bool:
    """Whether the part is whole lines that are one row each."""
    return part.endswith(b"\n") and max(map(len, part.split(b"\n"))) <= MAX_LINE_CHARACTERS


def _read_parts(log: ProcessLog) -> Iterator[bytes | str]:
    """The log, whole lines at a time unless they are very long. A text stands for bytes that were dropped."""
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


class NewOutput(msgspec.Struct, frozen=True):
    """Output since the last poll."""

    text: str
    start: int
    end: int
    """Position in bytes from the beginning of all output."""
    skipped: int
    """Bytes before the text that the log has dropped."""
    waiting: int
    """Bytes after the text that are in the log already."""


def poll(
    process: ProcessSession, room: int, cancelled: Callable[[], bool] = lambda: False, seconds: float = _WAIT_SECONDS
) -> NewOutput:
    """Takes the output since the last poll, at most `room` bytes. If there is none, waits these seconds for it."""
    until = time.monotonic() + seconds
    while True:
        news, has_ended = _read_new(process, room)
        if news.end > news.start or news.skipped or has_ended or cancelled() or time.monotonic() >= until:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            with closing_descriptor(os.open(os.path.join(process.folder, _POSITION_FILE), flags, 0o600)) as descriptor:
                os.pwrite(descriptor, f"{news.end:0{_POSITION_DIGITS}}".encode(), 0)
            return news
        time.sleep(_PAUSE_SECONDS)


def _read_position(process: ProcessSession) -> int:
    path = os.path.join(process.folder, _POSITION_FILE)
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        return int(file.read(_POSITION_DIGITS))
    return 0


def _read_new(process: ProcessSession, room: int) -> tuple[NewOutput, bool]:
    has_ended = process.wait(0)  # first, since a process that has ended prints no more
    position = _read_position(process)
    start, data = process.log.read_from(position, room)
    size = process.log.size
    if not has_ended or start + len(data) < size:
        data = data[: _count_complete(data, full=len(data) >= room)]
    end = start + len(data)
    return NewOutput(clean_output(data), start, end, start - position, max(0, size - end)), has_ended


def _count_complete(data: bytes, *, full: bool) -> int:
    """Bytes that are complete characters and escape sequences. If the data fills the room, complete lines."""
    if full and (line := data.rfind(b"\n") + 1) > len(data) // 2:
        return line
    text, used = codecs.utf_8_decode(data, "replace", False)
    held = count_unfinished_escape(text)
    complete = max(0, used - len(text[len(text) - held :].encode())) if held else used
    return complete if complete > 0 or not full else len(data)
