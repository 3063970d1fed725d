"""ripgrep's JSON lines, put together to the hits of whole files."""

import base64
from collections.abc import Iterable, Iterator

import msgspec

from handrail.protocol.reading import get_json_decoder
from handrail.workspace.search import run
from handrail.workspace.search.clip import clip
from handrail.workspace.search.engine import MAX_LINE_BYTES, FileHits, HitLine


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
        self._bytes += len(line.data) + run.LINE_BYTES
        if self._bytes > run.MAX_RESULT_BYTES:
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
