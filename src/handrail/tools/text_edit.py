"""Replaces text in the bytes of a file."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from handrail.edit.diff import CONTEXT_LINES, Diff, build_edit_diff, narrow_replacements
from handrail.edit.fuzzy.candidates import OF_EDIT, Wording
from handrail.edit.lines import (
    Replacement,
    Span,
    count_common_start,
    find_line_start,
    list_line_ranges,
    normalize_newlines,
)
from handrail.edit.match import EditMatch, match_edit
from handrail.protocol.errors import ToolError
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.workspace.lossless_text import LosslessText, replace_surrogates
from handrail.workspace.text import Encoding, LineEnding

Occurrence = Literal["unique", "first", "all"]

_PDF = b"%PDF-"
_MAX_CHECKED_PLACES = 20
_MAX_DIFF_CHARS = 3_000
"""Characters of a diff that the model is shown."""


class FileRewrite(msgspec.Struct, frozen=True):
    """What the bytes of a file become."""

    data: bytes
    encoding: Encoding
    line_ending: LineEnding


class TextReplacement(FileRewrite, frozen=True, kw_only=True):
    """What is replaced in the text of a file, and the bytes that makes."""

    text: str
    """The readable text before, with plain newlines. It may be only the lines that are replaced."""
    lines_before: int = 0
    spans: Sequence[Span]
    replacements: Sequence[Replacement]
    """What changes in the places, in order."""
    strategy: str

    def build_diff(self, path: str) -> Diff:
        return build_edit_diff(self.text, self.replacements, path, lines_before=self.lines_before)

    def list_lines(self, most: int) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each place, as they were before."""
        ranges = list_line_ranges(self.text, self.spans[:most])
        return tuple((self.lines_before + a, self.lines_before + b) for a, b in ranges)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Slips at the edges of an exact match: the first line of each kind."""
        slips: dict[str, str] = {}
        exact = self.replacements[:_MAX_CHECKED_PLACES] if self.strategy == "exact" else ()
        for (start, end, new), lines in zip(exact, self.list_lines(len(exact)), strict=True):
            for slip in _list_edge_slips(self.text, Span(start, end), new):
                slips.setdefault(slip, f"Line {lines[0]} {slip}")
        return tuple(slips.values())

    @property
    def first_line(self) -> int:
        """The first line that changes. The replaced text may begin with lines that stay."""
        start, end, new = self.replacements[0]
        same = count_common_start(self.text[start:end], new)
        at = start + same
        # Text that is inserted behind the end of a line begins with the newline that ends the line.
        behind = at == end and new[same : same + 1] == "\n" and self.text[at : at + 1] in {"", "\n"}
        return self.lines_before + self.text.count("\n", 0, at) + 1 + behind


def replace_text(
    data: bytes, old: str, new: str, path: str, occurrence: Occurrence = "unique", wording: Wording = OF_EDIT
) -> TextReplacement:
    """Replaces the only place, the first or every place of a text. ToolError says why if that is not possible."""
    replaced = _replace_in_bytes(data, old, new) if old and occurrence == "unique" else None
    if replaced is not None:
        return replaced
    file = decode_text_file(data, path)
    readable, new_text = file.readable, normalize_newlines(new)
    if old:
        match = match_edit(
            file.text,
            normalize_newlines(old),
            new_text,
            path,
            every=occurrence == "all",
            first=occurrence == "first",
            readable=readable,
            wording=wording,
        )
    else:
        if file.text:
            message = f"oldText is empty and {path} is not. Give the text to replace, or use write for the whole file."
            raise ToolError("INVALID_ARGUMENT", message)
        match = EditMatch("exact", (Span(0, 0),), (Replacement(0, 0, new_text),))
    rewrite = file.rewrite(match.replacements, new, path)
    return TextReplacement(
        rewrite.data,
        rewrite.encoding,
        rewrite.line_ending,
        text=readable,
        spans=match.spans,
        replacements=match.replacements,
        strategy=match.strategy,
    )


def _replace_in_bytes(data: bytes, old: str, new: str) -> TextReplacement | None:
    """The fast way for most edits: the only place in ASCII bytes with plain newlines, without decoding all of them.

    None if the edit needs the text.
    """
    if "\r" in new or data.startswith(_PDF) or len(data) + len(new) * 4 > MAX_TEXT_BYTES:
        return None
    if not old.isascii() or "\r" in old or not data.isascii() or b"\r" in data or b"\0" in data:
        return None
    wanted = old.encode()
    start = data.find(wanted)
    if start < 0 or data.find(wanted, start + 1) >= 0:
        return None
    end, view = start + len(wanted), memoryview(data)
    low, high = _add_context(data, start, end)
    has_lines = data.find(b"\n", 0, start) >= 0 or data.find(b"\n", end) >= 0
    return TextReplacement(
        b"".join((view[:start], new.encode(), view[end:])),
        "utf-8",
        "lf" if has_lines or "\n" in new else "none",
        text=data[low:high].decode(),
        lines_before=data.count(b"\n", 0, low),
        spans=[Span(start - low, end - low)],
        replacements=[Replacement(start - low, end - low, new)],
        strategy="exact",
    )


def _add_context(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a span to whole lines, with some before and after it."""
    low = data.rfind(b"\n", 0, start) + 1
    for _ in range(CONTEXT_LINES + 1):
        low = data.rfind(b"\n", 0, max(0, low - 1)) + 1
        end = data.find(b"\n", end) + 1 or len(data)
    return low, end


def _list_edge_slips(text: str, span: Span, new: str) -> Iterator[str]:
    """Describe likely mistakes at the edges of an exact match: doubled indentation, a lost newline."""
    old, body = text[span.start : span.end], new.lstrip(" \t")
    if body not in {new, old} and body[:1].strip() and old[:1].strip():
        before = text[find_line_start(text, span.start) : span.start]
        if before and not before.strip():
            yield "is now indented twice: newText begins with white space, and so does the line before oldText."
    left, right = new[-1:] or text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    if old.endswith("\n") and left.strip("\n") and right.strip("\n"):
        yield "is now joined to the next line: oldText ends with a newline, and newText does not."


class TextFile(msgspec.Struct, frozen=True):
    """The text of a file. Bytes that are not replaced stay as they are."""

    file: LosslessText
    text: str
    """With plain newlines. Bytes that are no text are lone surrogates."""

    @property
    def readable(self) -> str:
        """The text as `read` shows it, of the same length."""
        return replace_surrogates(self.text) if self.file.damaged else self.text

    def rewrite(self, replacements: Sequence[Replacement], given: str, path: str) -> FileRewrite:
        """Replaces parts of the text, in order. A file without lines takes the line endings of the `given` text. If
        endings are mixed, lines that stay keep theirs."""
        file = self.file
        if file.line_ending == "mixed":
            replacements = list(narrow_replacements(self.text, replacements))
        grown = sum(len(text) - (end - start) for start, end, text in replacements)
        if len(file.text) + grown > MAX_TEXT_BYTES:  # before it is in memory; a character is a byte at least
            raise _build_too_long_error(path)
        own = list(file.restore_newlines(self.text, replacements, given))
        try:
            data = file.splice(own)
        except UnicodeEncodeError as error:
            raise _build_encoding_error(error, file.encoding, path) from None
        if len(data) > MAX_TEXT_BYTES:
            raise _build_too_long_error(path)
        return FileRewrite(data, file.encoding, file.predict_line_ending(own))


def decode_text_file(data: bytes, path: str) -> TextFile:
    """The text of a file. BINARY_FILE if it is not text."""
    file = None if data.startswith(_PDF) else LosslessText.decode(data)
    if file is None:
        raise ToolError("BINARY_FILE", f"{path} is not text. Use a program for its format.")
    return TextFile(file, normalize_newlines(file.text))


def _build_encoding_error(error: UnicodeEncodeError, encoding: str, path: str) -> ToolError:
    character = error.object[error.start]
    message = f"The new text has {character!r} (U+{ord(character):04X}), which {encoding} does not have: "
    advice = f"the encoding of {path}. Use other characters, or write the whole file, which makes it UTF-8."
    return ToolError("INVALID_ARGUMENT", f"{message}{advice}")


def _build_too_long_error(path: str) -> ToolError:
    message = f"{path} would be larger than 32 MiB, the limit. Replace less."
    return ToolError("LIMIT_EXCEEDED", message)


def render_diff_body(diff: Diff) -> str:
    """The hunks of the diff of one file, up to a length."""
    hunks = diff.text.partition("\n+++ ")[2].partition("\n")[2] or diff.text
    if len(hunks) <= _MAX_DIFF_CHARS:
        return hunks
    end = hunks.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return f"{hunks[:end]}…\n"


def describe_tolerance(strategy: str) -> str:
    """What differed between the given text and the place that was found. Empty if nothing did."""
    if strategy == "exact":
        return ""
    from handrail.edit.fuzzy.strategies import FORGIVEN  # noqa: PLC0415  loaded already by a match that is not exact

    return f"found but for {FORGIVEN[strategy]}"
