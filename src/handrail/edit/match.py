"""Finds the text that an edit replaces."""

from itertools import islice

import msgspec

from handrail.edit.fuzzy.candidates import MAX_COUNTED_PLACES, OF_EDIT, Wording
from handrail.edit.lines import Replacement, Span, find_places
from handrail.protocol.errors import ToolError

MAX_PLACES = 100_000
_MAX_COMPARED_CHARS = 20_000_000
"""Characters that counting may compare. Each place costs the length of the old text."""


class EditMatch(msgspec.Struct, frozen=True):
    """The places of an edit with the changes there, both in the order of the text."""

    strategy: str
    spans: tuple[Span, ...]
    replacements: tuple[Replacement, ...]
    """Unchanged lines within the spans are left out."""


def match_edit(
    text: str,
    old: str,
    new: str,
    path: str,
    *,
    every: bool = False,
    first: bool = False,
    readable: str | None = None,
    wording: Wording = OF_EDIT,
) -> EditMatch:
    """Find the only place that `old` means, every place, or the first of these. ToolError if that is not certain.

    All texts have plain newlines, and `old` is not empty. `readable` is the text as people see it, if it has bytes
    that cannot be decoded.
    """
    readable = text if readable is None else readable
    span = next(find_places(text, old), None)
    if span is None:
        found = _load_refusals().match_or_refuse(
            text, old, new, path, every=every or first, readable=readable, wording=wording
        )
        places = found.places[:1] if first else found.places
        replacements = tuple(replacement for place in places for replacement in place.replacements)
        return EditMatch(found.strategy, tuple(place.span for place in places), replacements)
    if every:
        spans = _list_separate(text, old, path)
    elif first or text.find(old, span.start + 1) < 0:
        spans = (span,)
    else:
        found, complete = list_places(text, old, MAX_COUNTED_PLACES)
        raise _load_refusals().build_ambiguous_error(readable, "exact", found, wording, all_of_them=complete)
    return EditMatch("exact", spans, tuple(Replacement(start, end, new) for start, end in spans))


def list_places(text: str, old: str, most: int) -> tuple[list[Span], bool]:
    """Return the first places, overlapping ones too, and whether they are all. Counting stops before it gets slow."""
    most = max(4, min(most, _MAX_COMPARED_CHARS // (len(old) + 1)))
    found = list(islice(find_places(text, old), most + 1))
    return found[:most], len(found) <= most


def _list_separate(text: str, old: str, path: str) -> tuple[Span, ...]:
    found = tuple(islice(find_places(text, old, overlapping=False), MAX_PLACES + 1))
    if len(found) > MAX_PLACES:
        message = f"oldText occurs more than {MAX_PLACES} times in {path}, the maximum for one edit."
        raise ToolError("LIMIT_EXCEEDED", f"{message} Use a longer oldText, or write the whole file.")
    return found


def _load_refusals():  # the type is that of the module
    from handrail.edit import refusals  # noqa: PLC0415  most edits match exactly

    return refusals
