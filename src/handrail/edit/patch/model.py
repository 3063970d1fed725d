"""What a patch says, whatever it is written in."""

from typing import Literal, NamedTuple

import msgspec

from handrail.protocol.errors import ToolError

Sign = Literal[" ", "-", "+"]
_MARK = "\ufeff"
Action = Literal["add", "update", "delete", "move", "copy"]


class PatchLine(NamedTuple):
    """A line of a hunk: one that stays, one that goes, or one that comes."""

    sign: Sign
    text: str
    """With the carriage return that it may end with."""


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a file, with lines around it that say where."""

    number: int
    """In its file, from 1."""
    line: int
    """Of the patch, where it begins."""
    lines: tuple[PatchLine, ...]
    anchors: tuple[str, ...] = ()
    """Lines of the file that it comes behind, each behind the one before."""
    stated: int | None = None
    """The line of the file, from 1, that it says it begins with; without old lines, the one that it comes behind."""
    at_end: bool = False
    """Whether it says that the file ends with it."""
    old_open: bool = False
    """Whether its last old line is said to have no newline."""
    new_open: bool = False
    unsigned: int | None = None
    """The first line of the patch in it that has no sign, if one has none."""

    @property
    def plain_lines(self) -> list[PatchLine]:
        """The lines as they are in a text with plain newlines: what has no newline keeps its carriage return."""
        unended = self._unended
        return [
            PatchLine(line.sign, line.text[:-1]) if line.text.endswith("\r") and at not in unended else line
            for at, line in enumerate(self.lines)
        ]

    def endings(self, *signs: Sign) -> set[str]:
        """How lines with these signs end."""
        unended = self._unended
        ended = (line for at, line in enumerate(self.lines) if line.sign in signs and at not in unended)
        return {"CRLF" if line.text.endswith("\r") else "LF" for line in ended}

    @property
    def _unended(self) -> set[int]:
        """The lines that are said to have no newline."""
        if not (self.old_open or self.new_open):
            return set()
        last_old = max((at for at, line in enumerate(self.lines) if line.sign != "+"), default=-1)
        last_new = max((at for at, line in enumerate(self.lines) if line.sign != "-"), default=-1)
        return {at for at, is_open in ((last_old, self.old_open), (last_new, self.new_open)) if is_open}

    @property
    def old(self) -> list[str]:
        """The lines that are to be there."""
        return [text for sign, text in self.plain_lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that are to be there afterwards."""
        return [text for sign, text in self.plain_lines if sign != "-"]

    @property
    def old_text(self) -> str:
        """What is to be there."""
        return "".join(f"{line}\n" for line in self.old)

    @property
    def new_text(self) -> str:
        """What is to be there afterwards."""
        return "".join(f"{line}\n" for line in self.new)


def strip_byte_order_mark(hunk: Hunk) -> Hunk:
    """The hunk for a text without its byte order mark, which diffs take for a part of the first line. Where a text is
    nothing but its mark, it has no lines."""
    no_old = hunk.old_open and hunk.old[-1:] == [_MARK]
    no_new = hunk.new_open and hunk.new[-1:] == [_MARK]
    gone = {" ": no_old, "-": no_old, "+": no_new}
    lines = [line for line in hunk.lines if not (line.text == _MARK and gone[line.sign])]
    return msgspec.structs.replace(
        hunk,
        lines=tuple(line._replace(text=line.text.removeprefix(_MARK)) for line in lines),
        old_open=hunk.old_open and not no_old,
        new_open=hunk.new_open and not no_new,
    )


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


def build_patch_error(line: int, problem: str) -> ToolError:
    """The refusal of a patch that cannot be read."""
    message = f"Line {line} of the patch: {problem} Nothing was changed."
    return ToolError("INVALID_ARGUMENT", message, details={"patchLine": line})
