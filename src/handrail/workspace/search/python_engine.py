"""Searches without ripgrep."""

import codecs
import heapq
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from handrail.policy.names import is_credential
from handrail.protocol.errors import ToolError
from handrail.workspace.ignore import IgnoreStack, read_ignore_rules
from handrail.workspace.search import engine
from handrail.workspace.search.engine import (
    MAX_LINE_BYTES,
    EngineName,
    FileHits,
    HitLine,
    Pattern,
    SearchScope,
    Stop,
    Without,
    clip,
    to_sort_key,
)
from handrail.workspace.search.filters import CredentialFilter, GlobFilter, collect_withheld_names
from handrail.workspace.search.regex import Expression, MatchedLine, Spans, build_ripgrep_error

# § [workspace.search.walk] Walks a folder by descriptors: no link is followed, nothing is looked up by a name and
# § opened afterwards.  In the order of `in_order`, one folder at a time, holding no more than a page of each
# § folder's names.

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_PAGE_NAMES = 1 << 16
"""Names of one folder that are sorted at a time."""
_MAX_OPEN_LEVELS = 64
"""Levels whose descriptors are kept; those below are entered anew each time, so that any depth can be walked."""
_MAX_PATH_BYTES = 4095
"""Bytes of a path that the system opens."""

Skip = Callable[[bytes, bool], bool]
"""Whether a path below the searched folder is left out; True for a folder."""


class WalkedFile(msgspec.Struct, frozen=True):
    """A regular file, by the nearest folder that is open."""

    path: bytes
    """Below the searched folder."""
    near: int
    way: tuple[bytes, ...]
    """The names from there to the file's folder."""

    def open(self) -> int:
        """A descriptor of the file; OSError when it is no regular file any more."""
        name = self.path[self.path.rfind(b"/") + 1 :]
        folder = _entered(self.near, self.way) if self.way else self.near
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        finally:
            if self.way:
                os.close(folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{name!r} is no regular file any more")
        return descriptor


class _Level(msgspec.Struct):
    """A folder on the way from the searched one to the current one."""

    path: bytes
    near: int
    way: tuple[bytes, ...]
    ignore: IgnoreStack
    names: Iterator[tuple[bytes, bool]]


class SearchWalk:
    """One pass over a folder; `unreadable` counts the folders that could not be entered."""

    def __init__(self, folder: int, ignore: IgnoreStack, skip: Skip) -> None:
        self._folder = folder
        self._ignore = ignore
        self._skip = skip
        self._levels: list[_Level] = []
        self.unreadable = 0

    @property
    def gap(self) -> str | None:
        """Why what is ignored is not fully known, if so."""
        return self._ignore.gap

    def files(self) -> Iterator[WalkedFile]:
        """The regular files that nothing passes over."""
        try:
            self._enter(b"", self._folder, (), self._ignore)
            while self._levels:
                yield from self._next()
        finally:
            while self._levels:
                self._leave()

    def _next(self) -> Iterator[WalkedFile]:
        level = self._levels[-1]
        try:
            entry = next(level.names, None)
        except OSError:
            self.unreadable += 1
            entry = None
        if entry is None:
            self._leave()
            return
        name, folder = entry
        path = level.path + name
        if level.ignore.matches(name, folder=folder) or self._skip(path, folder) or len(path) > _MAX_PATH_BYTES:
            return
        if folder:
            self._enter(path, level.near, (*level.way, name), level.ignore)
        else:
            yield WalkedFile(path, level.near, level.way)

    def _enter(self, path: bytes, near: int, way: tuple[bytes, ...], ignore: IgnoreStack) -> None:
        try:
            descriptor = _entered(near, way)
        except OSError:
            self.unreadable += 1
            return
        if path:
            ignore, path = ignore.inside(descriptor, way[-1]), b"%b/" % path
        if len(self._levels) < _MAX_OPEN_LEVELS:
            near, way = descriptor, ()
        else:
            os.close(descriptor)
        self._levels.append(_Level(path, near, way, ignore, _names(near, way)))

    def _leave(self) -> None:
        level = self._levels.pop()
        if not level.way:
            os.close(level.near)


def _entered(near: int, way: tuple[bytes, ...]) -> int:
    """Opens a folder below an open one name by name: a name replaced by a link is not followed."""
    descriptor = os.open(".", _FOLDER, dir_fd=near)
    for name in way:
        try:
            descriptor, outer = os.open(name, _FOLDER, dir_fd=descriptor), descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(outer)
    return descriptor


def _names(near: int, way: tuple[bytes, ...]) -> Iterator[tuple[bytes, bool]]:
    """The folders (True) and regular files of a folder, in the order of their bytes, a page at a time."""
    last = b""
    while True:
        folder = _entered(near, way)
        try:
            page = heapq.nsmallest(_MAX_PAGE_NAMES, _entries(folder, last))
        finally:
            os.close(folder)
        yield from page
        if len(page) < _MAX_PAGE_NAMES:
            return
        last = page[-1][0]


def _entries(folder: int, after: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(folder) as found:
        for entry in found:
            name = os.fsencode(entry.name)
            if name <= after:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield name, True
            elif entry.is_file(follow_symlinks=False):
                yield name, False


# § [workspace.search.content] A file's text in blocks of whole lines, as ripgrep sees it: UTF-8, without a mark,
# § and no file with a NUL in it.

BLOCK_BYTES = 4 << 20
UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class BinaryError(Exception):
    """The file is not text."""


def read_utf8_pieces(descriptor: int) -> Iterator[bytes]:
    """The bytes of a file as UTF-8, without its mark."""
    first = os.read(descriptor, BLOCK_BYTES)
    encoding = UTF16.get(first[:2])
    rest = iter(lambda: os.read(descriptor, BLOCK_BYTES), b"")
    if encoding is None:
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from rest
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first[2:]).encode()
    for piece in rest:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()


def check_text_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same; BinaryError at the first NUL."""
    for piece in pieces:
        if b"\0" in piece:
            raise BinaryError
        yield piece


class LineBlocks:
    """Whole lines, as many at once as a block holds."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.passed_over = 0
        """Bytes of a line too long to be held, which came before the current block."""

    def __iter__(self) -> Iterator[bytes]:
        held: list[bytes] = []
        size = 0
        for piece in self._pieces:
            cut = piece.rfind(b"\n") + 1
            if not cut:
                size += len(piece)
                held = [*held, piece] if size <= MAX_LINE_BYTES else []
                continue
            yield from self._block(held, piece[:cut], size)
            held, size = [piece[cut:]], len(piece) - cut
        if size:
            yield from self._block(held, b"", size)

    def _block(self, held: list[bytes], piece: bytes, size: int) -> Iterator[bytes]:
        if size <= MAX_LINE_BYTES:
            yield b"".join((*held, piece))
            return
        end = piece.find(b"\n") + 1
        self.passed_over = size + (end or len(piece))
        yield piece[end:] if end else b""
        self.passed_over = 0


# § [workspace.search.gathering] The lines of one file that match, with their neighbours, their numbers and where
# § they are.


class HitCollector:
    """Goes through a file block by block; holds what is shown and no more."""

    def __init__(self, expression: Expression, context: int, most: int) -> None:
        self.lines: list[HitLine] = []
        self.oversized = 0
        self.hits = 0
        self._expression = expression
        self._most = most
        self._number, self._offset = 1, 0
        self._before: deque[tuple[int, int, bytes]] = deque(maxlen=context)
        self._context = context
        self._after = 0
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether there are as many hits as were asked for, or more text than can be held."""
        return self.hits >= self._most or self._bytes > engine.MAX_RESULT_BYTES

    def take(self, blocks: LineBlocks, stop: Callable[[], bool]) -> None:
        """Gathers from all blocks, until it is told to stop or has enough."""
        for block in blocks:
            if blocks.passed_over:
                self.oversized += 1
                self._number, self._offset = self._number + 1, self._offset + blocks.passed_over
                self._before.clear()
            text = block.decode("utf-8", "surrogateescape")
            matched = self._expression.lines(text, stop)
            self._hits(_Text(text), matched) if not self._context else self._all(block, text, matched)
            if stop() or self.full:
                return

    def _hits(self, text: "_Text", matched: Iterable[MatchedLine]) -> None:
        """Only the lines that match: what lies between them is counted, not looked at."""
        at = 0
        for line in matched:
            self._move(text, at, line.start)
            at = line.start
            self._keep(self._number, self._offset, text.bytes(line.start, line.end), text.in_bytes(line))
            if self.full:
                return
        self._move(text, at, len(text.text))

    def _move(self, text: "_Text", start: int, end: int) -> None:
        self._number += text.text.count("\n", start, end)
        self._offset += text.size(start, end)

    def _all(self, block: bytes, text: str, matched: Iterable[MatchedLine]) -> None:
        """Line after line: each may be a neighbour."""
        whole = _Text(text)
        hits: dict[int, Spans] = {}
        start = size = 0
        for line in islice(matched, self._most - self.hits):
            start, size = line.start, size + whole.size(start, line.start)
            hits[size] = whole.in_bytes(line)
        at = 0
        while at < len(block):
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            self._one(block[at:end], hits.get(at))
            self._number, self._offset, at = self._number + 1, self._offset + end + 1 - at, end + 1
            if self.full:
                return

    def _one(self, data: bytes, spans: Spans | None) -> None:
        if spans is not None:
            for number, offset, line in self._before:
                self._keep(number, offset, line, None)
            self._before.clear()
            self._keep(self._number, self._offset, data, spans)
            self._after = self._context
        elif self._after:
            self._keep(self._number, self._offset, data, None)
            self._after -= 1
        else:
            self._before.append((self._number, self._offset, data))

    def _keep(self, number: int, offset: int, data: bytes, spans: Spans | None) -> None:
        self.hits += spans is not None
        if _message_length(data, spans or []) > MAX_LINE_BYTES:
            self.oversized += 1
            return
        line = clip(number, offset, data.removesuffix(b"\r"), spans or [])
        # That it matched shows in its spans, also where nothing in particular matched.
        matched = spans is not None and not line.spans
        self._bytes += len(line.data) + engine.LINE_BYTES
        self.lines.append(msgspec.structs.replace(line, spans=((0, 0),)) if matched else line)


class _Text:
    """A text and how many bytes its parts are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_ascii = text.isascii()

    def bytes(self, start: int, end: int) -> bytes:
        return self.text[start:end].encode("utf-8", "surrogateescape")

    def size(self, start: int, end: int) -> int:
        return end - start if self._is_ascii else len(self.bytes(start, end))

    def in_bytes(self, line: MatchedLine) -> Spans:
        if self._is_ascii:
            return line.spans
        spans: Spans = []
        at = size = 0
        for first, last in line.spans:
            start = size + self.size(line.start + at, line.start + first)
            size = start + self.size(line.start + first, line.start + last)
            spans.append((start, size))
            at = last
        return spans


def _message_length(data: bytes, spans: Spans) -> int:
    """How long ripgrep's message about a line is, if that may matter: there the message is what is bounded."""
    if 8 * len(data) + 100 * len(spans) < MAX_LINE_BYTES:
        return 0
    matches = sum(_length(data[first:last]) for first, last in spans)
    return _length(data) + matches + 40 * len(spans) + 200


def _length(data: bytes) -> int:
    try:
        return len(msgspec.json.encode(data.decode()))
    except UnicodeDecodeError:
        return len(data) * 4 // 3


# § [workspace.search.python] Search in Python, where there is no ripgrep: the same files and lines, or a refusal
# § that names ripgrep.


class PythonEngine:
    """Walks and searches by itself, in the order of `in_order`, through descriptors only."""

    name: EngineName = "python"

    def __init__(self, *, ordered: bool = True, without: Without = "not installed") -> None:
        self.ordered = ordered
        """Whether to be asked for the first results; they come in order in any case."""
        self._without: Without = without

    def files(self, where: SearchScope, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        where.notes.counted = True
        protector = CredentialFilter()
        for found in self._candidates(where, stop):
            withheld = protector(found.path)
            if withheld is None:
                yield found.path
            else:
                where.notes.protected.add(withheld)

    def hits(self, where: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        expression = self._expression(pattern)
        for found in self._candidates(where, stop, into_withheld=False):
            gathering = HitCollector(expression, pattern.context, pattern.per_file)
            self._gather(found, gathering, where, stop)
            if gathering.lines:
                yield FileHits(found.path, tuple(gathering.lines))

    def withheld(self, where: SearchScope, last: bytes | None, stop: Stop) -> set[bytes]:
        """The names that policy withheld from the search that was just made of a place."""
        if not where.notes.counted:
            return collect_withheld_names(where, last, stop)
        names = where.notes.protected
        return names if last is None else {name for name in names if to_sort_key(name) <= to_sort_key(last)}

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        """The hits in an open file, which is read from where it stands; None where there are none."""
        expression = self._expression(pattern)
        gathering = HitCollector(expression, pattern.context, pattern.per_file)
        pieces = _Pieces(read_utf8_pieces(descriptor))
        gathering.take(LineBlocks(iter(pieces)), stop)
        if gathering.hits and pieces.binary:
            raise ToolError("BINARY_FILE", "The file is not text. Use a program that knows its format.")
        found = FileHits(b"", tuple(gathering.lines), gathering.oversized)
        return found if found.lines or found.oversized else None

    def _expression(self, pattern: Pattern) -> Expression:
        return Expression(pattern.text, case_sensitive=pattern.case_sensitive, without=self._without)

    def _candidates(self, where: SearchScope, stop: Stop, *, into_withheld: bool = True) -> Iterator[WalkedFile]:
        chosen = GlobFilter(where, ignored=False)

        def skip(path: bytes, folder: bool) -> bool:
            if not into_withheld and is_credential(os.fsdecode(path)):
                return True
            return not chosen(path, folder=folder)

        walk = SearchWalk(where.folder, read_ignore_rules(where.root, where.relative, where.ignore), skip)
        for found in walk.files():
            if walk.gap:
                raise build_ripgrep_error(walk.gap, self._without)
            if stop():
                return
            yield found
        where.notes.unreadable += walk.unreadable

    def _gather(self, found: WalkedFile, gathering: HitCollector, where: SearchScope, stop: Stop) -> None:
        """The hits of a file; none where it is no text."""
        try:
            descriptor = found.open()
        except OSError:
            where.notes.unreadable += 1
            return
        try:
            gathering.take(LineBlocks(check_text_pieces(read_utf8_pieces(descriptor))), stop)
        except BinaryError:
            gathering.lines.clear()
        except OSError:
            gathering.lines.clear()
            where.notes.unreadable += 1
        else:
            where.notes.oversized += gathering.oversized
        finally:
            os.close(descriptor)


class _Pieces:
    """Of a file that was named, NULs count as line ends: a match among them says that it is no text."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.binary = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.binary = self.binary or b"\0" in piece
            yield piece.replace(b"\0", b"\n")
