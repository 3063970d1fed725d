"""One text of a file in the place of another: what the bytes become, or why not. Nothing is written here."""

import itertools

import msgspec

from handrail.edit.diff import Diff, diff_of
from handrail.edit.lines import line_ranges
from handrail.edit.matching import Match, Span, matched
from handrail.edit.newlines import LineEnding, Replacement, ending_after, in_file, plain
from handrail.edit.plain_bytes import only_place
from handrail.edit.trimming import common_start
from handrail.protocol.error import ToolError
from handrail.tools.edit import LONGEST
from handrail.workspace.lossless import Lossless, lossless, shown, spliced
from handrail.workspace.text import Encoding

_PDF = b"%PDF-"
PLACES = 100_000
"""Places that are replaced in one step."""


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """What is replaced in the text of a file, and the bytes that makes."""

    text: str
    """The text before, with plain newlines, as it can be shown; whole lines of it, with all that is replaced."""
    lines_before: int = 0
    """How many lines come before it."""
    replacements: list[Replacement]
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
        spans = (Span(start, end) for start, end, _ in self.replacements[:most])
        return tuple((self.lines_before + a, self.lines_before + b) for a, b in line_ranges(self.text, spans))

    @property
    def first_line(self) -> int:
        """The first line that is another one now; what is replaced may begin with lines that stay."""
        start, end, new = self.replacements[0]
        same = common_start(self.text[start:end], new)
        return self.lines_before + self.text.count("\n", 0, start + same) + 1


def replaced(data: bytes, old: str, new: str, path: str, *, every: bool) -> Replaced:
    """Replaces the only place where `old` is, or every place; ToolError with a reason to learn from otherwise."""
    plainly = _in_plain_bytes(data, old, new) if old and not every else None
    if plainly is not None:
        return plainly
    file = None if data.startswith(_PDF) else lossless(data)
    if file is None:
        raise ToolError("BINARY_FILE", f"{path} is not text. Use a program that knows its format.")
    text = plain(file.text)
    readable = shown(text) if file.damaged else text
    match = _matched(text, readable, old, new, path)
    spans = _spans(match, path) if every else [match.first]
    if not every and not match.unique:
        from handrail.edit.refusals import ambiguous  # noqa: PLC0415  most edits are not refused

        raise ambiguous(readable, match)
    replacements = [Replacement(start, end, plain(new)) for start, end in spans]
    _refuse_growth(file, replacements, path)
    own = list(in_file(file.text, text, file.line_ending, replacements, new))
    return Replaced(
        text=readable,
        replacements=replacements,
        strategy=match.strategy,
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
        replacements=[Replacement(start, end, new)],
        strategy="exact",
        data=b"".join((view[: found.start], new.encode(), view[found.end :])),
        encoding="utf-8",
        line_ending="lf" if stays or "\n" in new else "none",
    )


def _matched(text: str, readable: str, old: str, new: str, path: str) -> Match:
    if not old:
        return _all_of_nothing(text, path)
    found = matched(text, plain(old))
    if found is not None:
        return found
    from handrail.edit.refusals import no_match, undecodable  # noqa: PLC0415  as above

    if text is not readable and plain(old) in readable:
        raise undecodable(readable, plain(old), path)
    raise no_match(readable, plain(old), plain(new), path)


def _all_of_nothing(text: str, path: str) -> Match:
    """An empty text is at no certain place, but in an empty file."""
    if text:
        message = f"oldText is empty and {path} is not. Give the text to replace, or use write for the whole file."
        raise ToolError("INVALID_ARGUMENT", message)
    return Match("exact", _nowhere, Span(0, 0))


def _nowhere(_: int) -> Span | None:
    return None


def _spans(match: Match, path: str) -> list[Span]:
    found = list(itertools.islice(match.separate(), PLACES + 1))
    if len(found) > PLACES:
        message = f"oldText occurs more than {PLACES} times in {path}, the most one edit replaces. Use a longer oldText"
        raise ToolError("LIMIT_EXCEEDED", f"{message}, or write the whole file.")
    return found


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
