"""What every search engine offers, and the limits of a search."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from handrail.workspace.file_state import FileId

# § [workspace.search.run] One run of an engine, and when it has gone far enough.

Item = TypeVar("Item")
End = Literal["complete", "enough", "time", "slow", "size"]
"""Why a run ended: it was through, had more than was asked for, took too long, or could not be in time."""

MAX_HITS = 100_000
"""Hits that are counted."""
MAX_SECONDS = 1.0
MAX_RESULT_BYTES = 64 * 1024 * 1024
"""Of lines that are held."""
LINE_BYTES = 200
"""What a line that is held takes besides its text."""


class Run(Generic[Item]):
    """Takes in candidates until there are too many of them, or too little time."""

    def __init__(
        self,
        weigh: Callable[[Item], tuple[int, int]],
        *,
        most: int,
        seconds: float,
        cancelled: Callable[[], bool],
        judge: Callable[[float, int], bool] = lambda _seconds, _count: False,
    ) -> None:
        self.items: list[Item] = []
        self.count = 0
        self.end: End = "complete"
        self._weigh = weigh
        self._most = most
        self._seconds = seconds
        self._cancelled = cancelled
        self._judge = judge
        self._bytes = 0
        self._began = time.monotonic()

    def stop(self) -> bool:
        """Whether it is time to end; engines ask."""
        passed = time.monotonic() - self._began
        if self._judge(passed, self.count):
            self.end = "slow"
        elif passed > self._seconds or self._cancelled():
            self.end = "time"
        return self.end != "complete"

    def take(self, candidates: Iterator[Item]) -> None:
        """Runs until one of the ends."""
        try:
            for item in candidates:
                self._add(item)
                if self.end != "complete":
                    return
        finally:
            close = getattr(candidates, "close", None)
            if close is not None:
                close()

    def _add(self, item: Item) -> None:
        count, size = self._weigh(item)
        self.items.append(item)
        self.count += count
        self._bytes += size
        if self._judge(time.monotonic() - self._began, self.count):
            self.end = "slow"
        elif self.count > self._most:
            self.end = "enough"
        elif self._bytes > MAX_RESULT_BYTES:
            self.end = "size"


# § [workspace.search.engine] What a search engine is: something that names candidates. They are verified, ordered
# § and counted by others.

EngineName = Literal["ripgrep", "python"]
Without = Literal["not installed", "switched off"]
"""Why it is not ripgrep that searches."""
Stop = Callable[[], bool]
"""Asked between candidates: True ends the search early."""
MAX_LINE_BYTES = 1 << 24
"""Bytes of a line, and of ripgrep's message about it, from which on it is passed over: nothing that anybody reads."""


class SearchStats(msgspec.Struct):
    """What an engine saw on its way and did not search."""

    protected: set[bytes] = msgspec.field(default_factory=set[bytes])
    """The names that policy withholds, by their paths below the folder; of a withheld folder only its own."""
    counted: bool = False
    """Whether `protected` is complete."""
    unreadable: int = 0
    """Folders and files that the operating system refused."""
    oversized: int = 0
    """Lines too long to be taken in."""


class SearchScope(msgspec.Struct, frozen=True):
    """The folder that is searched, and what is passed over in it."""

    folder: int
    """Its descriptor, opened beneath its root."""
    root: int
    """The descriptor of its root."""
    relative: str
    """The way from the root to it; `.` for the root itself."""
    kernel: bool
    """Whether the kernel resolves paths (openat2)."""
    include: str | None = None
    """A glob that a file's path below the folder must match."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders that are passed over."""
    ignore: tuple[str, ...] = ()
    """Patterns of the settings, written as in a .gitignore."""
    notes: SearchStats = msgspec.field(default_factory=SearchStats)
    credential_files: Callable[[], frozenset[FileId]] = frozenset[FileId]
    """Those that are credentials by any of their names; asked about files with several names (hard links) alone."""


class Pattern(msgspec.Struct, frozen=True):
    """The expression that lines are searched for."""

    text: str
    case_sensitive: bool = True
    context: int = 0
    """Lines shown before and after each hit."""
    per_file: int = MAX_HITS + 1
    """Hits of one file after which the rest of it is of no interest: enough to know that there are too many."""


class HitLine(msgspec.Struct, frozen=True):
    """A line that matched, or one of its neighbours."""

    number: int
    """From 1."""
    offset: int
    """Where `data` begins in the file, in bytes: of the text as UTF-8 and without its mark, where it is UTF-16."""
    data: bytes
    """Its bytes in the file, without the line ending; of a long line the part around its first match."""
    spans: tuple[tuple[int, int], ...] = ()
    """Where the expression matches in it, in bytes; none for a neighbour."""
    cut_before: bool = False
    cut_after: bool = False
    """Whether the line goes on before or after `data`."""


class FileHits(msgspec.Struct, frozen=True):
    """The hits of one file, neighbours included, in the file's order."""

    path: bytes
    """Below the folder."""
    lines: tuple[HitLine, ...]
    oversized: int = 0
    """Lines of it that were too long to be taken in."""
    unfinished: bool = False
    """Whether the search ended in the midst of it: what comes then is not known, nor that it is text."""

    def weight(self) -> tuple[int, int]:
        """How many lines matched, neighbours left out, and about how many bytes all of them take."""
        count = sum(1 for line in self.lines if line.spans)
        return count, sum(len(line.data) for line in self.lines) + LINE_BYTES * len(self.lines)


class Engine(Protocol):
    """Names candidates in any order. What it says is not trusted: it may be about another file by now."""

    name: EngineName
    ordered: bool
    """Whether candidates come in the order of `in_order`."""

    def files(self, where: SearchScope, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        ...

    def hits(self, where: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        ...

    def withheld(self, where: SearchScope, last: bytes | None, stop: Stop) -> set[bytes]:
        """The names that policy withheld from the search that was just made of a place, in order up to `last` if
        that is given; never by what is in them."""
        ...

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        """The hits in an open file, read from where it stands, None where there are none; BINARY_FILE where it is no
        text. Where there are too many to be held, the first ones: their weight tells."""
        ...


def to_sort_key(path: bytes) -> bytes:
    """The key that sorts paths as a walk does that takes the names of each folder in the order of their bytes."""
    return path.replace(b"/", b"\0")


# § [workspace.search.clip] Lines as they are kept and shown: of a long one, the part around its first match.

MAX_SHOWN_BYTES = 500
"""About so many characters of a line are shown."""
_LEAD_BYTES = 100
"""Of them so many before the first match."""


def clip(number: int, offset: int, data: bytes, spans: Sequence[tuple[int, int]]) -> HitLine:
    """The line, or its part around the first match. Bytes are cut, never a character of UTF-8 in two."""
    if len(data) <= MAX_SHOWN_BYTES:
        return HitLine(number, offset, data, tuple(spans))
    first = spans[0][0] if spans else 0
    start = _between_characters(data, max(0, min(first - _LEAD_BYTES, len(data) - MAX_SHOWN_BYTES)))
    end = _between_characters(data, min(len(data), start + MAX_SHOWN_BYTES))
    inside = tuple((max(a, start) - start, min(b, end) - start) for a, b in spans if a <= end and b >= start)
    return HitLine(number, offset + start, data[start:end], inside, start > 0, end < len(data))


def _between_characters(data: bytes, at: int) -> int:
    """The place itself, or the nearest before it where a character begins."""
    for back in range(min(4, at)):
        if at - back >= len(data) or data[at - back] & 0xC0 != 0x80:
            return at - back
    return at
