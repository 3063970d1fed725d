"""One text of a file in the place of another: what the bytes become, or why not. Nothing is written here."""

import msgspec

from handrail.edit.diff import Diff, build_edit_diff
from handrail.edit.fuzzy.candidates import OF_EDIT, Wording
from handrail.edit.lines import LineEnding, Replacement, Span, count_common_start, list_line_ranges, normalize_newlines
from handrail.edit.match import EditMatch, find_unique_match, list_edge_slips, match_edit
from handrail.protocol.errors import ToolError
from handrail.tools.contract import MAX_TEXT_BYTES
from handrail.tools.text_file import PDF, decode_text_file
from handrail.workspace.text import Encoding

_MAX_CHECKED_PLACES = 20
"""Places that are looked at for slips."""


class TextReplacement(msgspec.Struct, frozen=True, kw_only=True):
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
        return build_edit_diff(self.text, self.replacements, path, lines_before=self.lines_before)

    def lines(self, most: int) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each place, as they were before."""
        ranges = list_line_ranges(self.text, self.spans[:most])
        return tuple((self.lines_before + a, self.lines_before + b) for a, b in ranges)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Slips at the edges of an exact match: the first line of each kind."""
        found: dict[str, str] = {}
        exact = self.replacements[:_MAX_CHECKED_PLACES] if self.strategy == "exact" else ()
        for (start, end, new), lines in zip(exact, self.lines(len(exact)), strict=True):
            for slip in list_edge_slips(self.text, Span(start, end), new):
                found.setdefault(slip, f"Line {lines[0]} {slip}")
        return tuple(found.values())

    @property
    def first_line(self) -> int:
        """The first line that is another one now; what is replaced may begin with lines that stay."""
        start, end, new = self.replacements[0]
        same = count_common_start(self.text[start:end], new)
        at = start + same
        # What comes in behind the end of a line begins with the newline that ends it.
        behind = at == end and new[same : same + 1] == "\n" and self.text[at : at + 1] in {"", "\n"}
        return self.lines_before + self.text.count("\n", 0, at) + 1 + behind


def replace_text(
    data: bytes, old: str, new: str, path: str, *, every: bool, wording: Wording = OF_EDIT
) -> TextReplacement:
    """Replaces the only place that `old` means, or every place; ToolError with a reason to learn from otherwise."""
    plainly = _in_plain_bytes(data, old, new) if old and not every else None
    if plainly is not None:
        return plainly
    file = decode_text_file(data, path)
    readable = file.readable
    if old:
        placed = match_edit(
            file.text,
            normalize_newlines(old),
            normalize_newlines(new),
            path,
            every=every,
            readable=readable,
            wording=wording,
        )
    else:
        placed = _all_of_nothing(file.text, normalize_newlines(new), path)
    becomes = file.rewritten(placed.replacements, new, path)
    return TextReplacement(
        text=readable,
        spans=list(placed.spans),
        replacements=list(placed.replacements),
        strategy=placed.strategy,
        data=becomes.data,
        encoding=becomes.encoding,
        line_ending=becomes.line_ending,
    )


def _in_plain_bytes(data: bytes, old: str, new: str) -> TextReplacement | None:
    """Most edits, several times as fast as by the way that leads to every other end."""
    found = find_unique_match(data, old) if "\r" not in new and not data.startswith(PDF) else None
    if found is None or len(data) + len(new) * 4 > MAX_TEXT_BYTES:
        return None
    start, end, view = found.start - found.text_start, found.end - found.text_start, memoryview(data)
    stays = data.find(b"\n", 0, found.start) >= 0 or data.find(b"\n", found.end) >= 0
    return TextReplacement(
        text=found.text,
        lines_before=found.lines_before,
        spans=[Span(start, end)],
        replacements=[Replacement(start, end, new)],
        strategy="exact",
        data=b"".join((view[: found.start], new.encode(), view[found.end :])),
        encoding="utf-8",
        line_ending="lf" if stays or "\n" in new else "none",
    )


def _all_of_nothing(text: str, new: str, path: str) -> EditMatch:
    """An empty text is at no certain place, but in an empty file."""
    if text:
        message = f"oldText is empty and {path} is not. Give the text to replace, or use write for the whole file."
        raise ToolError("INVALID_ARGUMENT", message)
    return EditMatch("exact", (Span(0, 0),), (Replacement(0, 0, new),))
