"""The output of ripgrep: JSON lines on stdout, complaints on stderr."""

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text
from handrail.protocol.wire import get_json_decoder
from handrail.workspace.search import engine
from handrail.workspace.search.engine import MAX_LINE_BYTES, FileHits, HitLine

_MISHAP = re.compile(rb".*\(os error (\d+)\)")
_REFUSED = {b"1", b"13"}
_MAX_KEPT_BYTES = 8192
_MAX_STDERR_LINE_BYTES = 1 << 16


class RipgrepBytes(msgspec.Struct, frozen=True, rename={"encoded": "bytes"}):
    """Text if it is UTF-8, else base64."""

    text: str | None = None
    encoded: str | None = None

    def decode(self) -> bytes:
        """Return the bytes in the file or of the path."""
        return self.text.encode() if self.text is not None else base64.b64decode(self.encoded or "")


class RipgrepSpan(msgspec.Struct):
    start: int
    end: int


class _RipgrepData(msgspec.Struct):
    """The data of any message. Each type has some of the fields."""

    path: RipgrepBytes = RipgrepBytes()
    lines: RipgrepBytes = RipgrepBytes()
    line_number: int = 0
    absolute_offset: int = 0
    submatches: tuple[RipgrepSpan, ...] = ()
    binary_offset: int | None = None


class _RipgrepMessage(msgspec.Struct):
    type: Literal["begin", "match", "context", "end", "summary"]
    data: _RipgrepData


class HitAssembler:
    """Assembles messages to the hits of files. Of a file with too many hits it keeps the first ones."""

    def __init__(self) -> None:
        self._decoder = get_json_decoder(_RipgrepMessage)
        self._path = b""
        self._lines: list[HitLine] = []
        self._bytes = 0
        self._oversized = 0
        self.is_full = False
        """Whether no more of the current file is taken in."""
        self.is_complete = False
        """Whether ripgrep has finished."""
        self.is_binary = False
        """Whether the last file is no text."""

    def hits(self, pieces: Iterable[bytes]) -> Iterator[FileHits]:
        """Yield each text file that ended, and what came of the file that did not end."""
        for line in self._split_lines(pieces):
            message = self._decoder.decode(line)
            if message.type in {"match", "context"}:
                yield from self._add_line(message)
            elif message.type == "begin":
                self._start_file(message.data.path.decode().removeprefix(b"./"))
            elif message.type == "end":
                self.is_binary = message.data.binary_offset is not None
                if not self.is_binary and not self.is_full:
                    yield from self._take_file(unfinished=False)
                self._start_file(b"")
            else:
                self.is_complete = True
        if not self.is_full:
            yield from self._take_file(unfinished=True)

    def _start_file(self, path: bytes) -> None:
        self._path, self._lines, self._bytes, self.is_full, self._oversized = path, [], 0, False, 0

    def _add_line(self, message: _RipgrepMessage) -> Iterator[FileHits]:
        if self.is_full:
            return
        data = message.data
        text = data.lines.decode().removesuffix(b"\n").removesuffix(b"\r")
        spans = [(span.start, span.end) for span in data.submatches] if message.type == "match" else None
        line = HitLine.build(data.line_number, data.absolute_offset, text, spans)
        self._lines.append(line)
        self._bytes += len(line.data) + engine.LINE_BYTES
        if self._bytes > engine.MAX_RESULT_BYTES:
            self.is_full = True
            yield from self._take_file(unfinished=True)

    def _take_file(self, *, unfinished: bool) -> Iterator[FileHits]:
        lines, self._lines = tuple(self._lines), []
        if lines or self._oversized:
            yield FileHits(self._path, lines, self._oversized, unfinished)

    def _split_lines(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield whole lines. A line longer than MAX_LINE_BYTES is counted and dropped."""
        held: list[bytes] = []
        size = 0
        for piece in pieces:
            first, *rest = piece.split(b"\n")
            size += len(first)
            if size <= MAX_LINE_BYTES:
                held.append(first)
            if not rest:
                continue
            if size <= MAX_LINE_BYTES:
                yield b"".join(held)
            else:
                self._oversized += 1
            yield from rest[:-1]
            held, size = [rest[-1]], len(rest[-1])


class RipgrepStderr:
    """The complaints of one run."""

    def __init__(self) -> None:
        self.mishaps = 0
        """Paths that could not be opened. They do not end the search."""
        self.unreadable = 0
        """Files that the operating system refused. Others were removed meanwhile."""
        self._words = b""
        self._rest = b""

    def add(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_MAX_STDERR_LINE_BYTES]
        for line in lines:
            if mishap := _MISHAP.match(line):
                self.mishaps += 1
                self.unreadable += mishap[1] in _REFUSED
            elif len(self._words) < _MAX_KEPT_BYTES:
                self._words += line + b"\n"

    def build_error(self, status: int) -> ToolError:
        """Return why a run gave no results."""
        words = (self._words + self._rest).decode("utf-8", "replace")
        if status < 0:
            return ToolError("IO_ERROR", f"ripgrep was ended by signal {-status}; try again.")
        if "regex" in words or "literal" in words:
            return _build_refusal(words)
        return ToolError("UNAVAILABLE", f"ripgrep failed (status {status}): {clip_text(words.strip(), 300)}")


def _build_refusal(words: str) -> ToolError:
    """ripgrep shows the expression and the place. The model has the expression and needs the reason."""
    if "is not allowed in a regex" in words and r"\n" in words:
        return build_line_break_error()
    reasons: list[str] = re.findall(r"^error: (.*)$", words, re.MULTILINE)
    reason = clip_text(reasons[-1] if reasons else words.strip().removeprefix("rg: "), 300).rstrip(".")
    return build_pattern_error(reason)


def build_pattern_error(reason: str) -> ToolError:
    """Return the refusal of an expression, with a suggestion."""
    hint = r"Put a backslash before what is meant literally, as in \( \[ \{ \. \*; look-around is not supported."
    return ToolError("INVALID_ARGUMENT", f"pattern is no valid regular expression: {reason}. {hint}")


def build_line_break_error() -> ToolError:
    """Return the refusal of an expression that reaches over the end of a line."""
    message = (
        "pattern is searched for in each line by itself and cannot hold a line break; search for one of its lines."
    )
    return ToolError("INVALID_ARGUMENT", message)
