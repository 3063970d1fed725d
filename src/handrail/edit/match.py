"""Finds the text that an edit replaces."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

from handrail.edit.diff import CONTEXT_LINES
from handrail.edit.fuzzy.candidates import RefusedError
from handrail.edit.fuzzy.strategies import FuzzyMatch, find_match
from handrail.edit.lines import (
    MAX_COUNTED_PLACES,
    MAX_PLACES,
    ExactMatch,
    Replacement,
    Span,
    find_exact_match,
    find_line_start,
    list_places,
)
from handrail.edit.refusals import (
    OF_EDIT,
    Wording,
    build_ambiguous_error,
    build_no_match_error,
    build_too_many_error,
    build_undecodable_error,
)
from handrail.protocol.errors import ToolError

# § [edit.placing] Finds the place of a text that an edit means, and what is replaced there: exactly, or by the
# § ladder behind that.


class EditMatch(msgspec.Struct, frozen=True):
    """What is replaced, and where."""

    strategy: str
    spans: tuple[Span, ...]
    """What the old text means, in order."""
    replacements: tuple[Replacement, ...]
    """What changes in them, in order; lines that stay are not touched."""


def match_edit(
    text: str,
    old: str,
    new: str,
    path: str,
    *,
    every: bool = False,
    readable: str | None = None,
    wording: Wording = OF_EDIT,
) -> EditMatch:
    """The only place that `old` means, or every one; ToolError with a reason to learn from otherwise.

    All texts have plain newlines, and `old` is not empty. Where the text has parts that are none, `readable` is how it
    can be shown. `wording` says what the caller calls the two texts.
    """
    match = find_exact_match(text, old)
    if match is None:
        shown = text if readable is None else readable
        found = match_or_refuse(text, old, new, path, every=every, readable=shown, wording=wording)
        replacements = tuple(made for each in found.places for made in each.replacements)
        return EditMatch(found.strategy, tuple(each.span for each in found.places), replacements)
    if every:
        spans = _every(match, path)
    elif match.unique:
        spans = (match.first,)
    else:
        from handrail.edit.refusals import build_ambiguous_error  # noqa: PLC0415  most edits are not refused

        found, all_of_them = list_places(match, MAX_COUNTED_PLACES)
        raise build_ambiguous_error(
            text if readable is None else readable, "exact", found, wording, all_of_them=all_of_them
        )
    return EditMatch("exact", spans, tuple(Replacement(start, end, new) for start, end in spans))


def find_first_match(text: str, old: str, new: str, path: str, *, readable: str, wording: Wording) -> EditMatch:
    """The first of the places that replacing all of them would replace; ToolError where there is none.

    All texts have plain newlines, and `old` is not empty; `readable` is the text as it can be shown.
    """
    match = find_exact_match(text, old)
    if match is not None:
        return EditMatch("exact", (match.first,), (Replacement(*match.first, new),))

    found = match_or_refuse(text, old, new, path, every=True, readable=readable, wording=wording)
    first = found.places[0]
    return EditMatch(found.strategy, (first.span,), tuple(first.replacements))


def _every(match: ExactMatch, path: str) -> tuple[Span, ...]:
    found = tuple(islice(match.separate(), MAX_PLACES + 1))
    if len(found) > MAX_PLACES:
        message = (
            f"oldText occurs more than {MAX_PLACES} times in {path}, the most one edit replaces. Use a longer oldText"
        )
        raise ToolError("LIMIT_EXCEEDED", f"{message}, or write the whole file.")
    return found


def list_edge_slips(text: str, span: Span, new: str) -> Iterator[str]:
    """What an exact match makes of a line, and may not be meant: white space comes in twice, or a newline goes."""
    old, body = text[span.start : span.end], new.lstrip(" \t")
    if body not in {new, old} and body[:1].strip() and old[:1].strip():
        before = text[find_line_start(text, span.start) : span.start]
        if before and not before.strip():
            yield "is now indented twice: newText begins with white space, and so does the line before oldText."
    left, right = new[-1:] or text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1]
    if old.endswith("\n") and left.strip("\n") and right.strip("\n"):
        yield "is now joined to the next line: oldText ends with a newline, and newText does not."


# § [edit.climbing] Climbs the ladder, and says why where it leads to no certain place.


def match_or_refuse(
    text: str, old: str, new: str, path: str, *, every: bool, readable: str, wording: Wording
) -> FuzzyMatch:
    """What a text that is not there as it is means; ToolError with a reason to learn from where that is not certain."""
    if text is not readable and old in readable:
        raise build_undecodable_error(readable, old, path, wording)
    try:
        found = find_match(text, old, new, every=every)
    except RefusedError as refused:
        raise build_no_match_error(readable, old, new, path, refused, wording) from None
    if found is None:
        raise build_no_match_error(readable, old, new, path, None, wording)
    if every and not found.all_of_them:
        raise build_too_many_error(found.strategy, path, wording)
    if len(found.places) > 1 and not every:
        spans = [each.span for each in found.places]
        raise build_ambiguous_error(readable, found.strategy, spans, wording, all_of_them=found.all_of_them)
    return found


# § [edit.plain_bytes] The exact match in ASCII with plain newlines, which most files are, without making a text of
# § all the bytes.


class UniqueMatch(NamedTuple):
    """Where something is, and the lines around it."""

    start: int
    end: int
    text: str
    """Whole lines, enough of them for a diff."""
    text_start: int
    lines_before: int


def find_unique_match(data: bytes, old: str) -> UniqueMatch | None:
    """The only place of a text; None where there is none or another, or the bytes are not that plain."""
    if not old.isascii() or "\r" in old or not data.isascii() or b"\r" in data or b"\0" in data:
        return None
    wanted = old.encode()
    start = data.find(wanted)
    if start < 0 or data.find(wanted, start + 1) >= 0:
        return None
    low, high = _around(data, start, start + len(wanted))
    return UniqueMatch(start, start + len(wanted), data[low:high].decode(), low, data.count(b"\n", 0, low))


def _around(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The lines of a span, and some before and after it."""
    low = data.rfind(b"\n", 0, start) + 1
    for _ in range(CONTEXT_LINES + 1):
        low = data.rfind(b"\n", 0, max(0, low - 1)) + 1
        end = data.find(b"\n", end) + 1 or len(data)
    return low, end
