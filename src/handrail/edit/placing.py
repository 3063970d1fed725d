"""Finds the place that an oldText means, and says what is replaced there."""

import msgspec

from handrail.edit.matching import Span, matched
from handrail.edit.newlines import Replacement


class Placed(msgspec.Struct, frozen=True):
    """Where a text is, and what takes its place."""

    strategy: str
    spans: tuple[Span, ...]
    replacements: tuple[Replacement, ...]
    """In order; several for one span where lines in between are kept."""


def place(text: str, old: str, new: str, path: str, *, every: bool = False) -> Placed:
    """The only place of `old`, or every place; ToolError with a reason to learn from otherwise."""
    from handrail.edit.refusals import ambiguous, no_match  # noqa: PLC0415  most edits are not refused

    match = matched(text, old)
    if match is None:
        raise no_match(text, old, new, path)
    if not every and not match.unique:
        raise ambiguous(text, match)
    spans = tuple(match.separate()) if every else (match.first,)
    return Placed(match.strategy, spans, tuple(Replacement(start, end, new) for start, end in spans))
