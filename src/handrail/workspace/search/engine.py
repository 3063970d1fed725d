"""What a search engine is: something that names candidates. They are verified, ordered and counted by others."""

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

Stop = Callable[[], bool]
"""Asked between candidates: True ends the search early."""


class Where(msgspec.Struct, frozen=True):
    """The folder that is searched, and what is passed over in it."""

    folder: int
    """Its descriptor, opened beneath its root."""
    root: int
    """The descriptor of its root."""
    relative: str
    """The way from the root to it; `.` for the root itself."""
    include: str | None = None
    """A glob that a file's path below the folder must match."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders that are passed over."""
    ignore: tuple[str, ...] = ()
    """Patterns of the settings, written as in a .gitignore."""


class Pattern(msgspec.Struct, frozen=True):
    """The expression that lines are searched for."""

    text: str
    case_sensitive: bool = True
    context: int = 0
    """Lines shown before and after each hit."""


class Line(msgspec.Struct, frozen=True):
    """A line that matched, or one of its neighbours."""

    number: int
    """From 1."""
    offset: int
    """Where it begins in the file, in bytes."""
    data: bytes
    """Its bytes in the file, without the line ending."""
    spans: tuple[tuple[int, int], ...] = ()
    """Where the expression matches in it, in bytes; none for a neighbour."""


class FileHits(msgspec.Struct, frozen=True):
    """The hits of one file, neighbours included, in the file's order."""

    path: bytes
    """Below the folder."""
    lines: tuple[Line, ...]


class Engine(Protocol):
    """Names candidates in any order. What it says is not trusted: it may be about another file by now."""

    name: str

    def files(self, where: Where, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        ...

    def hits(self, where: Where, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        ...


def in_order(path: bytes) -> bytes:
    """The key that sorts paths as a walk does that takes the names of each folder in the order of their bytes."""
    return path.replace(b"/", b"\0")
