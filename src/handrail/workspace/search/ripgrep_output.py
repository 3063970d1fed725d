"""Reads the output of ripgrep."""

import base64
import re
from collections.abc import Iterable, Iterator

import msgspec

from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text
from handrail.protocol.wire import get_json_decoder
from handrail.workspace.search import engine
from handrail.workspace.search.engine import MAX_LINE_BYTES, FileHits, HitLine, clip

# § [workspace.search.messages] ripgrep's JSON lines, put together to the hits of whole files.


class RipgrepBytes(msgspec.Struct, rename={"encoded": "bytes"}):
    """Text where it is UTF-8, else base64."""

    text: str | None = None
    encoded: str | None = None

    def raw(self) -> bytes:
        """As it is in the file or on the disk."""
        return self.text.encode() if self.text is not None else base64.b64decode(self.encoded or "")


class RipgrepSpan(msgspec.Struct):
    start: int
    end: int


class RipgrepBeginData(msgspec.Struct):
    path: RipgrepBytes


class RipgrepBegin(msgspec.Struct, tag="begin"):
    data: RipgrepBeginData


class RipgrepLineData(msgspec.Struct):
    lines: RipgrepBytes
    line_number: int
    absolute_offset: int
    submatches: list[RipgrepSpan]

    def line(self) -> HitLine:
        """The line without its end, cut to what is shown."""
        data = self.lines.raw().removesuffix(b"\n").removesuffix(b"\r")
        return clip(self.line_number, self.absolute_offset, data, [(span.start, span.end) for span in self.submatches])


class RipgrepMatch(msgspec.Struct, tag="match"):
    data: RipgrepLineData

    def line(self) -> HitLine:
        """The line; that it matched shows in its spans, also where nothing in particular matched."""
        line = self.data.line()
        return line if line.spans else msgspec.structs.replace(line, spans=((0, 0),))


class RipgrepContext(msgspec.Struct, tag="context"):
    data: RipgrepLineData

    def line(self) -> HitLine:
        """The line."""
        return self.data.line()


class RipgrepEndData(msgspec.Struct):
    binary_offset: int | None


class RipgrepEnd(msgspec.Struct, tag="end"):
    data: RipgrepEndData


class RipgrepSummary(msgspec.Struct, tag="summary"):
    pass


Message = RipgrepBegin | RipgrepMatch | RipgrepContext | RipgrepEnd | RipgrepSummary


class HitAssembler:
    """Turns messages into hits; `complete` once ripgrep has said that it is through. Of a file with more than can be
    held, what was held is given out, and the rest passed over."""

    def __init__(self) -> None:
        self._decoder = get_json_decoder(Message)
        self._path = b""
        self._lines: list[HitLine] = []
        self._bytes = 0
        self.full = False
        """Whether no more of the current file is taken in."""
        self._oversized = 0
        self.complete = False
        self.binary = False
        """Whether the file last ended turned out to be no text."""

    def hits(self, pieces: Iterable[bytes]) -> Iterator[FileHits]:
        """The files that ended, and are text; and what came of the one that did not end."""
        for line in self._rows(pieces):
            message = self._decoder.decode(line)
            if isinstance(message, RipgrepMatch | RipgrepContext):
                yield from self._held(message)
            elif isinstance(message, RipgrepBegin):
                self._begun(message.data.path.raw().removeprefix(b"./"))
            elif isinstance(message, RipgrepEnd):
                self.binary = message.data.binary_offset is not None
                if not self.binary and not self.full:
                    yield from self._given(unfinished=False)
                self._begun(b"")
            else:
                self.complete = True
        if not self.full:
            yield from self._given(unfinished=True)

    def _begun(self, path: bytes) -> None:
        self._path, self._lines, self._bytes, self.full, self._oversized = path, [], 0, False, 0

    def _held(self, message: RipgrepMatch | RipgrepContext) -> Iterator[FileHits]:
        if self.full:
            return
        line = message.line()
        self._lines.append(line)
        self._bytes += len(line.data) + engine.LINE_BYTES
        if self._bytes > engine.MAX_RESULT_BYTES:
            self.full = True
            yield from self._given(unfinished=True)

    def _given(self, *, unfinished: bool) -> Iterator[FileHits]:
        lines, self._lines = tuple(self._lines), []
        if lines or self._oversized:
            yield FileHits(self._path, lines, self._oversized, unfinished)

    def _rows(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Whole lines; of one that does not end, no more than LONGEST is ever held."""
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


# § [workspace.search.complaints] What ripgrep says besides its results: what it passed over, what it could not
# § read, why it gave up.

_LOG = re.compile(rb"(?:rg: )?DEBUG\|")
"""ripgrep puts its name before each line since version 14."""
_LOGGED = re.compile(rb".*: Ignore\(IgnoreMatch\(.*\)$")
_LOST = "\N{REPLACEMENT CHARACTER}".encode()
"""What stands in a log for bytes that are not UTF-8."""
_PASSED_OVER = re.compile(rb".*?\|ignore::walk\|[^|]*?: ignoring (?:\./)?(.*): Ignore\(IgnoreMatch\(Override")
_MISHAP = re.compile(rb".*\(os error (\d+)\)")
_REFUSED = {b"1", b"13"}
_MAX_KEPT_BYTES = 8192
_MAX_LINE_BYTES = 1 << 16


class RipgrepStderr:
    """The lines of one run, sorted by what they mean."""

    def __init__(self) -> None:
        self.mishaps = 0
        """What could not be opened, and does not end the search: also what went away meanwhile."""
        self.unreadable = 0
        """Of that, what the operating system refused."""
        self.logs = False
        """Whether it logs in the way that is known."""
        self.noise = 0
        """Lines that say which names were passed over."""
        self.passed_over: list[bytes] = []
        """Paths that our own globs kept it from."""
        self.unclear = False
        """Whether a name was logged in a way that does not tell which: with a line break, or not in UTF-8."""
        self._words = b""
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Takes in some output; only what is known to be of use is kept."""
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_MAX_LINE_BYTES]
        for line in lines:
            self._sort(line)

    def failure(self, status: int) -> ToolError:
        """Why a run gave no results."""
        words = (self._words + self._rest).decode("utf-8", "replace")
        if status < 0:
            return ToolError("IO_ERROR", f"ripgrep was ended by signal {-status}; try again.")
        if "regex" in words or "literal" in words:
            return _refused(words)
        return ToolError("UNAVAILABLE", f"ripgrep failed (status {status}): {clip_text(words.strip(), 300)}")

    def _sort(self, line: bytes) -> None:
        if _LOG.match(line):
            self.logs = True
            if b": ignoring " in line:
                self.noise += 1
                self._passed(line)
        elif mishap := _MISHAP.match(line):
            self.mishaps += 1
            self.unreadable += mishap[1] in _REFUSED
        elif len(self._words) < _MAX_KEPT_BYTES:
            self._words += line + b"\n"

    def _passed(self, line: bytes) -> None:
        if not _LOGGED.match(line) or _LOST in line:
            self.unclear = True
        elif (found := _PASSED_OVER.match(line)) and _is_below(found[1]):
            self.passed_over.append(found[1])


def _is_below(path: bytes) -> bool:
    """Whether a path that a log names is one below the folder; a name with a line break can make up any."""
    return not path.startswith(b"/") and not {b"", b".", b".."}.intersection(path.split(b"/"))


def _refused(words: str) -> ToolError:
    """ripgrep shows the expression and points at the place; the model has the expression and needs the reason."""
    if "is not allowed in a regex" in words and r"\n" in words:
        return build_line_break_error()
    reasons: list[str] = re.findall(r"^error: (.*)$", words, re.MULTILINE)
    reason = clip_text(reasons[-1] if reasons else words.strip().removeprefix("rg: "), 300).rstrip(".")
    return build_pattern_error(reason)


def build_pattern_error(reason: str) -> ToolError:
    """The refusal of an expression, and what may help."""
    hint = r"Put a backslash before what is meant literally, as in \( \[ \{ \. \*; look-around is not supported."
    return ToolError("INVALID_ARGUMENT", f"pattern is no valid regular expression: {reason}. {hint}")


def build_line_break_error() -> ToolError:
    """An expression cannot reach over the end of a line."""
    message = (
        "pattern is searched for in each line by itself and cannot hold a line break; search for one of its lines."
    )
    return ToolError("INVALID_ARGUMENT", message)
