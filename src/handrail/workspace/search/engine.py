"""The interface of a search engine."""

from collections.abc import Callable, Iterator
from typing import Literal, Protocol, Self

import msgspec

from handrail.protocol.errors import ToolError
from handrail.workspace.file_state import FileId

EngineName = Literal["ripgrep", "python"]
Stop = Callable[[], bool]
"""Asked between candidates. True ends the search early."""

MAX_HITS = 100_000
"""Hits that are counted."""
MAX_RESULT_BYTES = 64 * 1024 * 1024
"""Bytes of lines that are held."""
LINE_BYTES = 200
"""Memory that a held line takes besides its text."""
MAX_LINE_BYTES = 1 << 24
"""Bytes of a line. Longer lines are passed over."""
MAX_SHOWN_BYTES = 500
"""Bytes of a line that are shown."""
_LEAD_BYTES = 100
"""Bytes that are shown before the first match."""


class Engine(Protocol):
    """Names candidates in any order. They are checked again, since a file may be another one by now."""

    name: EngineName
    ordered: bool
    """Whether candidates come in the order of `to_sort_key`."""

    def files(self, scope: "SearchScope", stop: Stop) -> Iterator[list[bytes]]:
        """Yield the files below a folder in batches, by their paths below it."""
        ...

    def hits(self, scope: "SearchScope", pattern: "Pattern", stop: Stop) -> Iterator["FileHits"]:
        """Yield the files with matching lines."""
        ...

    def stream(self, descriptor: int, pattern: "Pattern", stop: Stop) -> "FileHits | None":
        """Return the hits in an open file, from its position on. None if there are none. BINARY_FILE if it is no text.

        If there are too many hits to hold, it returns the first ones.
        """
        ...


class SearchStats(msgspec.Struct):
    """Counts of files, folders and lines that an engine could not search."""

    unreadable: int = 0
    """Folders and files that the operating system refused."""
    oversized: int = 0
    """Lines longer than MAX_LINE_BYTES."""
    unsure: bool = False
    """Whether the candidates may contain ignored files, because some ignore rules are unknown."""
    busy: float | None = None
    """Processor seconds of the program that searches. None if they are not known."""


class SearchScope(msgspec.Struct, frozen=True):
    """The folder to search, with its exclusions."""

    folder: int
    """Its descriptor, opened beneath its root."""
    root: int
    """The descriptor of its root."""
    relative: str
    """Its path below the root; `.` for the root itself."""
    kernel: bool
    """Whether the kernel resolves paths (openat2)."""
    include: str | None = None
    """A glob that a file's path below the folder must match."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders to leave out."""
    ignore: tuple[str, ...] = ()
    """Patterns of the settings, written as in a .gitignore."""
    stats: SearchStats = msgspec.field(default_factory=SearchStats)
    protected: tuple[tuple[bytes, bool], ...] | None = None
    """The credentials below the folder, and whether each is a folder. None if no list of them is at hand."""
    credential_files: Callable[[], frozenset[FileId]] = frozenset[FileId]
    """Lists the files that are credentials by any of their names. Called only for files with several hard links."""


class Pattern(msgspec.Struct, frozen=True):
    """The regular expression that lines must match."""

    text: str
    case_sensitive: bool = True
    context: int = 0
    """Lines shown before and after each hit."""
    multiline: bool = False
    """Whether a match may reach over the end of a line. Only ripgrep can do it."""
    only_matching: bool = False
    """Whether each hit is one match, without the rest of its line."""
    per_file: int = MAX_HITS + 1
    """Hits after which the rest of a file is not searched."""


class HitLine(msgspec.Struct, frozen=True):
    """A line that matched, or one of its neighbours."""

    number: int
    """From 1."""
    offset: int
    """The start of `data` in the file, in bytes. In a UTF-16 file: in its text as UTF-8, without the mark."""
    data: bytes
    """The line without its end; of a long line the part around its first match."""
    is_hit: bool = False
    """Whether it matched. Otherwise it is a neighbour."""
    cut_before: bool = False
    cut_after: bool = False

    @classmethod
    def build(cls, number: int, offset: int, data: bytes, first: int | None) -> Self:
        """Return a line, cut to the part around its first match. `first` is None for a neighbour."""
        if len(data) <= MAX_SHOWN_BYTES:
            return cls(number, offset, data, first is not None)
        start, end = _find_shown_part(data, first or 0)
        return cls(number, offset + start, data[start:end], first is not None, start > 0, end < len(data))


class FileHits(msgspec.Struct, frozen=True):
    """The hits of one file and their neighbours, in the file's order."""

    path: bytes
    """Below the folder."""
    lines: tuple[HitLine, ...]
    oversized: int = 0
    unfinished: bool = False
    """Whether the search ended inside the file. Then the rest may be no text."""

    def count_hits(self) -> int:
        return sum(line.is_hit for line in self.lines)

    def weight(self) -> tuple[int, int]:
        """Return the number of hits, and about how many bytes all lines take."""
        return self.count_hits(), sum(len(line.data) for line in self.lines) + LINE_BYTES * len(self.lines)


def to_sort_key(path: bytes) -> bytes:
    """Return the key that sorts paths as a walk does which takes the names of each folder in byte order."""
    return path.replace(b"/", b"\0")


def _find_shown_part(data: bytes, first: int) -> tuple[int, int]:
    start = _find_character(data, max(0, min(first - _LEAD_BYTES, len(data) - MAX_SHOWN_BYTES)))
    return start, _find_character(data, min(len(data), start + MAX_SHOWN_BYTES))


def _find_character(data: bytes, place: int) -> int:
    """Return the place, or the nearest before it, where a character of UTF-8 begins."""
    for back in range(min(4, place)):
        if place - back >= len(data) or data[place - back] & 0xC0 != 0x80:
            return place - back
    return place


def build_binary_error() -> ToolError:
    return ToolError("BINARY_FILE", "The file is not text. Use a program for its format.")
