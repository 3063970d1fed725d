"""The engine that searches without ripgrep: it finds the same lines, or refuses."""

import codecs
import heapq
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import msgspec

from handrail.workspace.ignore import IgnoreStack, read_ignore_rules
from handrail.workspace.resolve import LIST_FOLDER, READ_FILE, closing_descriptor, open_beneath
from handrail.workspace.search import engine
from handrail.workspace.search.engine import (
    MAX_LINE_BYTES,
    EngineName,
    FileHits,
    HitLine,
    Pattern,
    SearchScope,
    Stop,
    build_binary_error,
)
from handrail.workspace.search.filters import CredentialFilter, GlobFilter
from handrail.workspace.search.regex import Expression, MatchedLine, Without, build_ripgrep_error
from handrail.workspace.text import UTF16_MARKS

_MAX_PAGE_NAMES = 1 << 16
"""Names of one folder that are sorted at a time."""
_MAX_OPEN_LEVELS = 64
"""Levels whose descriptors stay open. Folders below are opened anew each time, so any depth can be walked."""
_MAX_PATH_BYTES = 4095
"""Bytes of a path that the system opens."""
_BLOCK_BYTES = 4 << 20


class PythonEngine:
    """Walks by descriptors, in the order of results. It follows no link."""

    name: EngineName = "python"

    def __init__(self, *, ordered: bool = True, without: Without = "not installed") -> None:
        self.ordered = ordered
        """Whether the first results are asked for. They come in order in any case."""
        self._without: Without = without

    def files(self, scope: SearchScope, stop: Stop) -> Iterator[list[bytes]]:
        for file in self._walk(scope, stop):
            yield [file.path]

    def hits(self, scope: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        expression = self._compile(pattern)
        for file in self._walk(scope, stop):
            collector = _HitCollector(expression, pattern)
            try:
                with closing_descriptor(file.open()) as descriptor:
                    collector.take(_TextBlocks(descriptor), stop)
            except OSError:
                scope.stats.unreadable += 1
                continue
            if not collector.is_binary:
                scope.stats.oversized += collector.oversized
                if collector.lines:
                    yield FileHits(file.path, tuple(collector.lines))

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        collector = _HitCollector(self._compile(pattern), pattern)
        collector.take(_TextBlocks(descriptor, is_named=True), stop)
        if collector.hits and collector.is_binary:
            raise build_binary_error()
        hits = FileHits(b"", tuple(collector.lines), collector.oversized)
        return hits if hits.lines or hits.oversized else None

    def _compile(self, pattern: Pattern) -> Expression:
        if pattern.multiline:
            raise build_ripgrep_error("the pattern may match across line ends", self._without)
        return Expression(pattern.text, case_sensitive=pattern.case_sensitive, without=self._without)

    def _walk(self, scope: SearchScope, stop: Stop) -> Iterator["_WalkedFile"]:
        walk = _Walk(scope)
        for file in walk.files():
            if walk.ignore.gap:
                raise build_ripgrep_error(walk.ignore.gap, self._without)
            if stop():
                return
            yield file
        scope.stats.unreadable += walk.unreadable


class _OpenFolder(msgspec.Struct, frozen=True):
    """A folder, by the nearest one above it whose descriptor stays open."""

    descriptor: int
    below: str
    """The path from there. Empty if the descriptor is the folder's own."""
    kernel: bool

    def open(self, name: str, flags: int) -> int:
        """Open a name in it. OSError if the name, or a folder on the way, has become a link."""
        return open_beneath(self.descriptor, self.join(name) or ".", flags, kernel=self.kernel)

    def join(self, name: str) -> str:
        return f"{self.below}/{name}" if self.below and name else self.below or name


class _WalkedFile(msgspec.Struct, frozen=True):
    path: bytes
    """Below the searched folder."""
    folder: _OpenFolder

    def open(self) -> int:
        """Return a descriptor of the file. OSError if it is no longer a regular file."""
        name = self.path[self.path.rfind(b"/") + 1 :]
        descriptor = self.folder.open(os.fsdecode(name), READ_FILE)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(f"{name!r} is no longer a regular file")
        return descriptor


class _Level(msgspec.Struct):
    """A folder on the way from the searched one to the current one."""

    path: bytes
    folder: _OpenFolder
    ignore: IgnoreStack
    names: Iterator[tuple[bytes, bool]]


class _Walk:
    def __init__(self, scope: SearchScope) -> None:
        self._scope = scope
        self.ignore = read_ignore_rules(scope.root, scope.relative, scope.ignore)
        self._globs = GlobFilter(scope, has_ignore_rules=False)
        self._credentials = CredentialFilter(scope)
        self._levels: list[_Level] = []
        self.unreadable = 0
        """Folders that could not be entered."""

    def files(self) -> Iterator[_WalkedFile]:
        try:
            self._enter(b"", _OpenFolder(self._scope.folder, "", self._scope.kernel), "", self.ignore)
            while self._levels:
                yield from self._take_next()
        finally:
            while self._levels:
                self._leave()

    def _take_next(self) -> Iterator[_WalkedFile]:
        level = self._levels[-1]
        try:
            entry = next(level.names, None)
        except OSError:
            self.unreadable += 1
            entry = None
        if entry is None:
            self._leave()
            return
        name, is_folder = entry
        path = level.path + name
        if level.ignore.matches(name, folder=is_folder) or not self._accepts(path, is_folder=is_folder):
            return
        if is_folder:
            self._enter(path, level.folder, os.fsdecode(name), level.ignore)
        else:
            yield _WalkedFile(path, level.folder)

    def _accepts(self, path: bytes, *, is_folder: bool) -> bool:
        accepts = self._globs.enters if is_folder else self._globs.accepts
        return len(path) <= _MAX_PATH_BYTES and accepts(path) and not self._credentials.matches(path)

    def _enter(self, path: bytes, outer: _OpenFolder, name: str, ignore: IgnoreStack) -> None:
        try:
            descriptor = outer.open(name, LIST_FOLDER)
        except OSError:
            self.unreadable += 1
            return
        if path:
            ignore, path = ignore.enter(descriptor, name), b"%b/" % path
        folder = _OpenFolder(descriptor, "", outer.kernel)
        if len(self._levels) >= _MAX_OPEN_LEVELS:
            os.close(descriptor)
            folder = _OpenFolder(outer.descriptor, outer.join(name), outer.kernel)
        self._levels.append(_Level(path, folder, ignore, _list_names(folder)))

    def _leave(self) -> None:
        folder = self._levels.pop().folder
        if not folder.below:
            os.close(folder.descriptor)


def _list_names(folder: _OpenFolder) -> Iterator[tuple[bytes, bool]]:
    """Yield the folders (True) and regular files of a folder in byte order, a page at a time."""
    last = b""
    while True:
        with closing_descriptor(folder.open("", LIST_FOLDER)) as descriptor:
            page = heapq.nsmallest(_MAX_PAGE_NAMES, _scan_names(descriptor, last))
        yield from page
        if len(page) < _MAX_PAGE_NAMES:
            return
        last = page[-1][0]


def _scan_names(folder: int, after: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if name > after and (is_folder or entry.is_file(follow_symlinks=False)):
                yield name, is_folder


class _TextBlocks:
    """A file's text in blocks of whole lines, as ripgrep sees it: UTF-8, without a mark."""

    def __init__(self, descriptor: int, *, is_named: bool = False) -> None:
        self._descriptor = descriptor
        self._is_named = is_named
        self.is_binary = False
        """Whether the file has a NUL. In a file that was named, NULs then count as line ends."""
        self.skipped_bytes = 0
        """Bytes of a line too long to be held, just before the current block."""

    def __iter__(self) -> Iterator[bytes]:
        held: list[bytes] = []
        size = 0
        for piece in self._read_text():
            cut = piece.rfind(b"\n") + 1
            if not cut:
                size += len(piece)
                held = [*held, piece] if size <= MAX_LINE_BYTES else []
                continue
            yield self._build_block(held, piece[:cut], size)
            held, size = [piece[cut:]], len(piece) - cut
        if size:
            yield self._build_block(held, b"", size)

    def _build_block(self, held: list[bytes], piece: bytes, size: int) -> bytes:
        """Join the beginning of a line and the piece that ends it. `size` is the length of the beginning."""
        self.skipped_bytes = 0
        if size <= MAX_LINE_BYTES:
            return b"".join((*held, piece))
        end = piece.find(b"\n") + 1
        self.skipped_bytes = size + end
        return piece[end:]

    def _read_text(self) -> Iterator[bytes]:
        for piece in self._read_utf8():
            self.is_binary = self.is_binary or b"\0" in piece
            if self.is_binary and not self._is_named:
                return
            yield piece.replace(b"\0", b"\n")

    def _read_utf8(self) -> Iterator[bytes]:
        first = os.read(self._descriptor, _BLOCK_BYTES)
        rest = iter(lambda: os.read(self._descriptor, _BLOCK_BYTES), b"")
        encoding = UTF16_MARKS.get(first[:2])
        if encoding is None:
            yield first.removeprefix(codecs.BOM_UTF8)
            yield from rest
        else:
            texts = codecs.iterdecode(chain((first[2:],), rest), encoding, "replace")
            yield from (text.encode() for text in texts)


class _HitCollector:
    """Collects the matching lines of one file with their neighbours, block by block."""

    def __init__(self, expression: Expression, pattern: Pattern) -> None:
        self.lines: list[HitLine] = []
        self.hits = 0
        self.oversized = 0
        self.is_binary = False
        self._expression = expression
        self._context = pattern.context
        self._takes_matches = pattern.only_matching
        self._most = pattern.per_file
        self._number, self._offset = 1, 0
        self._before: deque[tuple[int, int, bytes]] = deque(maxlen=pattern.context)
        """The last lines that were not kept."""
        self._after = 0
        """Neighbours still to come after the last hit."""
        self._bytes = 0

    def take(self, blocks: _TextBlocks, stop: Stop) -> None:
        """Collect from all blocks, until there is enough or `stop` returns true."""
        for block in blocks:
            if blocks.skipped_bytes:
                self.oversized += 1
                self._number, self._offset = self._number + 1, self._offset + blocks.skipped_bytes
                self._before.clear()
            text = _Text(block)
            matches = self._expression.lines(text.text, stop)
            self._take_lines(block, text, matches) if self._context else self._take_hits(text, matches)
            if stop() or self._is_full():
                break
        self.is_binary = blocks.is_binary

    def _is_full(self) -> bool:
        return self.hits >= self._most or self._bytes > engine.MAX_RESULT_BYTES

    def _take_hits(self, text: "_Text", matches: Iterable[MatchedLine]) -> None:
        """Take only lines that match. The lines between them are counted."""
        place = 0
        for line in matches:
            self._skip(text, place, line.start)
            place = line.start
            if self._takes_matches:
                self._keep_matches(text, line)
            else:
                self._keep(self._number, self._offset, text.encode_line(line), text.find_match(line))
            if self._is_full():
                return
        self._skip(text, place, len(text.text))

    def _keep_matches(self, text: "_Text", line: MatchedLine) -> None:
        for start, end in line.spans:
            offset = self._offset + text.measure(line.start, line.start + start)
            self._keep(self._number, offset, text.encode(line.start + start, line.start + end), 0)

    def _skip(self, text: "_Text", start: int, end: int) -> None:
        self._number += text.text.count("\n", start, end)
        self._offset += text.measure(start, end)

    def _take_lines(self, block: bytes, text: "_Text", matches: Iterable[MatchedLine]) -> None:
        """Take line after line. Each may be a neighbour."""
        hits: dict[int, int] = {}
        start = size = 0
        for line in islice(matches, self._most - self.hits):
            start, size = line.start, size + text.measure(start, line.start)
            hits[size] = text.find_match(line)
        place = 0
        while place < len(block) and not self._is_full():
            end = block.find(b"\n", place)
            end = len(block) if end < 0 else end
            data = block[place:end]
            self._take_line(data.removesuffix(b"\r") if end < len(block) else data, hits.get(place))
            self._number, self._offset, place = self._number + 1, self._offset + end + 1 - place, end + 1

    def _take_line(self, data: bytes, first: int | None) -> None:
        if first is not None:
            for neighbour in self._before:
                self._keep(*neighbour, None)
            self._before.clear()
            self._keep(self._number, self._offset, data, first)
            self._after = self._context
        elif self._after:
            self._keep(self._number, self._offset, data, None)
            self._after -= 1
        else:
            self._before.append((self._number, self._offset, data))

    def _keep(self, number: int, offset: int, data: bytes, first: int | None) -> None:
        self.hits += first is not None
        if len(data) > MAX_LINE_BYTES:
            self.oversized += 1
            return
        line = HitLine.build(number, offset, data, first)
        self._bytes += len(line.data) + engine.LINE_BYTES
        self.lines.append(line)


class _Text:
    """A block as text, with the sizes of its parts in bytes."""

    def __init__(self, block: bytes) -> None:
        self.text = block.decode("utf-8", "surrogateescape")
        self._is_ascii = self.text.isascii()

    def encode(self, start: int, end: int) -> bytes:
        return self.text[start:end].encode("utf-8", "surrogateescape")

    def measure(self, start: int, end: int) -> int:
        return end - start if self._is_ascii else len(self.encode(start, end))

    def encode_line(self, line: MatchedLine) -> bytes:
        """Return a line without its end. A `\\r` that no `\\n` follows is no line end."""
        data = self.encode(line.start, line.end)
        return data.removesuffix(b"\r") if line.end < len(self.text) else data

    def find_match(self, line: MatchedLine) -> int:
        """Return the place of the first match in a line, in bytes."""
        return self.measure(line.start, line.start + line.spans[0][0]) if line.spans else 0
