"""One text of a file in the place of another: what the bytes become, or why not. Nothing is written here."""

import msgspec

from handrail.edit.diff import Diff, diff_of
from handrail.edit.line_parts import line_parts
from handrail.edit.lines import line_ranges
from handrail.edit.matching import Span
from handrail.edit.newlines import LineEnding, Replacement, ending_after, in_file, plain
from handrail.edit.placing import Placed, place
from handrail.edit.plain_bytes import only_place
from handrail.edit.trimming import common_start
from handrail.protocol.error import ToolError
from handrail.tools.edit import LONGEST
from handrail.workspace.lossless import Lossless, lossless, shown, spliced
from handrail.workspace.text import Encoding

_PDF = b"%PDF-"


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """What is replaced in the text of a file, and the bytes that makes."""

    text: str
    """The text before, with plain newlines, as it can be shown; whole lines of it, with all that is replaced."""
    lines_before: int = 0
    """How many lines come before it."""
    spans: list[Span]
    """The places, in order."""
    replacements: list[Replacement]
    """What changes in them, in order."""
    strategy: str
    data: bytes
    encoding: Encoding
    line_ending: LineEnding
    """How the lines end then."""

    def diff(self, path: str) -> Diff:
        """What changes."""
        return diff_of(self.text, self.replacements, path, lines_before=self.lines_before)

    def lines(self, most: int) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each place, as they were before."""
        ranges = line_ranges(self.text, self.spans[:most])
        return tuple((self.lines_before + a, self.lines_before + b) for a, b in ranges)

    @property
    def first_line(self) -> int:
        """The first line that is another one now; what is replaced may begin with lines that stay."""
        start, end, new = self.replacements[0]
        same = common_start(self.text[start:end], new)
        return self.lines_before + self.text.count("\n", 0, start + same) + 1


def replaced(data: bytes, old: str, new: str, path: str, *, every: bool) -> Replaced:
    """Replaces the only place that `old` means, or every place; ToolError with a reason to learn from otherwise."""
    plainly = _in_plain_bytes(data, old, new) if old and not every else None
    if plainly is not None:
        return plainly
    file = None if data.startswith(_PDF) else lossless(data)
    if file is None:
        raise ToolError("BINARY_FILE", f"{path} is not text. Use a program that knows its format.")
    text = plain(file.text)
    readable = shown(text) if file.damaged else text
    if old:
        placed = place(text, plain(old), plain(new), path, every=every, readable=readable)
    else:
        placed = _all_of_nothing(text, plain(new), path)
    return _made(file, text, readable, placed, new, path)


def _made(file: Lossless, text: str, readable: str, placed: Placed, new: str, path: str) -> Replaced:
    replacements = list(placed.replacements)
    if file.line_ending == "mixed":
        replacements = list(line_parts(text, replacements))
    _refuse_growth(file, replacements, path)
    own = list(in_file(file.text, text, file.line_ending, replacements, new))
    return Replaced(
        text=readable,
        spans=list(placed.spans),
        replacements=replacements,
        strategy=placed.strategy,
        data=_data(file, own, path),
        encoding=file.encoding,
        line_ending=ending_after(file.text, file.line_ending, own),
    )


def _in_plain_bytes(data: bytes, old: str, new: str) -> Replaced | None:
    """Most edits, several times as fast as by the way that leads to every other end."""
    found = only_place(data, old) if "\r" not in new and not data.startswith(_PDF) else None
    if found is None or len(data) + len(new) * 4 > LONGEST:
        return None
    start, end, view = found.start - found.text_start, found.end - found.text_start, memoryview(data)
    stays = data.find(b"\n", 0, found.start) >= 0 or data.find(b"\n", found.end) >= 0
    return Replaced(
        text=found.text,
        lines_before=found.lines_before,
        spans=[Span(start, end)],
        replacements=[Replacement(start, end, new)],
        strategy="exact",
        data=b"".join((view[: found.start], new.encode(), view[found.end :])),
        encoding="utf-8",
        line_ending="lf" if stays or "\n" in new else "none",
    )


def _all_of_nothing(text: str, new: str, path: str) -> Placed:
    """An empty text is at no certain place, but in an empty file."""
    if text:
        message = f"oldText is empty and {path} is not. Give the text to replace, or use write for the whole file."
        raise ToolError("INVALID_ARGUMENT", message)
    return Placed("exact", (Span(0, 0),), (Replacement(0, 0, new),))


def _refuse_growth(file: Lossless, replacements: list[Replacement], path: str) -> None:
    """Before the new text is in memory; a character is a byte at least."""
    grown = sum(len(text) - (end - start) for start, end, text in replacements)
    if len(file.text) + grown > LONGEST:
        raise _too_long(path)


def _data(file: Lossless, own: list[Replacement], path: str) -> bytes:
    try:
        data = spliced(file, own)
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        message = f"newText has {character!r} (U+{ord(character):04X}), which {file.encoding} does not have: "
        advice = f"that is the encoding of {path}. Use other characters, or write the whole file, which makes it UTF-8."
        raise ToolError("INVALID_ARGUMENT", f"{message}{advice}") from None
    if len(data) > LONGEST:
        raise _too_long(path)
    return data


def _too_long(path: str) -> ToolError:
    message = f"{path} would be larger than 32 MiB, the most that edit makes of a file. Replace fewer places."
    return ToolError("LIMIT_EXCEEDED", message)
