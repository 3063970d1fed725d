"""What a patch says, whatever it is written in."""

from typing import Literal, NamedTuple

import msgspec

from handrail.protocol.error import ToolError

Sign = Literal[" ", "-", "+"]
Action = Literal["add", "update", "delete", "move", "copy"]


class Line(NamedTuple):
    """A line of a hunk: one that stays, one that goes, or one that comes."""

    sign: Sign
    text: str
    """With the carriage return that it may end with."""

    @property
    def plain(self) -> str:
        """The line as it is in a text with plain newlines."""
        return self.text.removesuffix("\r")


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a file, with lines around it that say where."""

    number: int
    """In its file, from 1."""
    line: int
    """Of the patch, where it begins."""
    lines: tuple[Line, ...]
    anchors: tuple[str, ...] = ()
    """Lines of the file that it comes behind, each behind the one before."""
    stated: int | None = None
    """The line of the file, from 1, that it says it begins with; without old lines, the one that it comes behind."""
    at_end: bool = False
    """Whether it says that the file ends with it."""
    old_open: bool = False
    """Whether its last old line is said to have no newline."""
    new_open: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that are to be there."""
        return [line.plain for line in self.lines if line.sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that are to be there afterwards."""
        return [line.plain for line in self.lines if line.sign != "-"]


class FilePatch(msgspec.Struct, frozen=True, kw_only=True):
    """What a patch does to one file."""

    action: Action
    path: str
    """The file that is there; of one that is added, its name."""
    line: int
    """Of the patch, where it begins."""
    target: str | None = None
    """Where a moved or copied file is to be."""
    hunks: tuple[Hunk, ...] = ()
    content: str | None = None
    """All of a file that is added."""
    executable: bool | None = None
    """Whether it is to be executable; None where nothing is said about that."""


def malformed(line: int, problem: str) -> ToolError:
    """The refusal of a patch that cannot be read."""
    message = f"Line {line} of the patch: {problem} Nothing was changed."
    return ToolError("INVALID_ARGUMENT", message, details={"patchLine": line})


def quoted(line: str) -> str:
    """A line as it may stand in a message."""
    return repr(line if len(line) <= 80 else f"{line[:79]}…")
