"""Finds the place of a text that an edit means, and what is replaced there: exactly, or by the ladder behind that."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from handrail.edit.lines import find_line_start
from handrail.edit.matching import MAX_COUNTED_PLACES, MAX_PLACES, ExactMatch, Span, find_exact_match, list_places
from handrail.edit.newlines import Replacement
from handrail.edit.refusals.wording import OF_EDIT, Wording
from handrail.protocol.error import ToolError


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
        from handrail.edit.climbing import match_or_refuse  # noqa: PLC0415  most texts are there as they are

        shown = text if readable is None else readable
        found = match_or_refuse(text, old, new, path, every=every, readable=shown, wording=wording)
        replacements = tuple(made for each in found.places for made in each.replacements)
        return EditMatch(found.strategy, tuple(each.span for each in found.places), replacements)
    if every:
        spans = _every(match, path)
    elif match.unique:
        spans = (match.first,)
    else:
        from handrail.edit.refusals.refusals import build_ambiguous_error  # noqa: PLC0415  most edits are not refused

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
    from handrail.edit.climbing import match_or_refuse  # noqa: PLC0415  most texts are there as they are

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
