"""Puts the hunks of a patch into a text: exactly where they say, or else where the engine of edit finds them."""

from collections.abc import Iterator, Sequence

import msgspec

from handrail.edit.newlines import Replacement
from handrail.edit.patch.anchors import Window, find_anchor_windows
from handrail.edit.patch.exact_place import find_exact_place
from handrail.edit.patch.fit import PatchTarget, PlacedHunk
from handrail.edit.patch.last_line import adjust_last_newline
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.refusing import (
    build_ambiguous_anchor_error,
    build_inexact_error,
    build_missing_position_error,
    build_passed_anchor_error,
    build_unknown_anchor_error,
    refuse_endings,
    refuse_placeholder,
)
from handrail.edit.patch.text_lines import TextLines

MAX_INEXACT_HUNKS = 100
"""Hunks of one file that need not be exact: each of them is looked for in all of it."""


class AppliedHunks(msgspec.Struct, frozen=True):
    """All hunks of a file: what is replaced in its text."""

    replacements: list[Replacement]
    strategies: tuple[str, ...]
    """How each hunk was found."""


def apply_hunks(text: str, hunks: Sequence[Hunk], path: str, readable: str | None = None) -> AppliedHunks:
    """Puts hunks, in order, into a text with plain newlines; ToolError with the hunk that does not fit. Where the text
    has parts that are none, `readable` is how it can be shown."""
    target = PatchTarget(text, path, readable)
    tolerated = 0
    for hunk in hunks:
        if tolerated == MAX_INEXACT_HUNKS:
            raise build_inexact_error(hunk, path, MAX_INEXACT_HUNKS)
        refuse_placeholder(hunk, path)
        refuse_endings(hunk, path)
        fit = _fit(target, hunk)
        tolerated += fit.strategy != "exact"
        target.add(hunk, fit)
    replacements = [replacement for fit in target.fits for replacement in fit.replacements]
    at_end = target.low == len(target.lines) and bool(target.fits)
    settled = adjust_last_newline(target.lines, replacements, hunks[-1] if at_end else None)
    return AppliedHunks(settled, tuple(fit.strategy for fit in target.fits))


def _fit(target: PatchTarget, hunk: Hunk) -> PlacedHunk:
    found = find_anchor_windows(target.lines, hunk.anchors, target.low)
    if isinstance(found, str):
        raise build_unknown_anchor_error(target, hunk, found)
    at = find_exact_place(target, hunk, found) if hunk.old else _insertion(target, hunk, found)
    if at is not None:
        return _exactly(target.lines, hunk, at)
    from handrail.edit.patch.tolerant_place import find_tolerant_place  # noqa: PLC0415  most hunks are exact

    return find_tolerant_place(target, hunk, found)


def _insertion(target: PatchTarget, hunk: Hunk, found: Sequence[Window]) -> int:
    """Where new lines go that have none around them."""
    lines, low = target.lines, target.low
    if hunk.at_end or not lines:
        return len(lines)
    if hunk.anchors:
        if len(found) > 1:
            raise build_ambiguous_anchor_error(hunk, target.path, [window.anchor for window in found])
        if found[0].anchor < low:
            raise build_passed_anchor_error(hunk, target.path, found[0].anchor)
        return found[0].anchor + 1
    at = target.stated(hunk)
    if at is None or not low <= at <= len(lines):
        raise build_missing_position_error(target, hunk)
    return at


def _exactly(lines: TextLines, hunk: Hunk, at: int) -> PlacedHunk:
    """The lines that stay are not touched, nor is what their newlines are."""
    return PlacedHunk(at, at + len(hunk.old), "exact", tuple(_groups(lines, hunk, at)))


def _groups(lines: TextLines, hunk: Hunk, at: int) -> Iterator[Replacement]:
    start, new = at, list[str]()
    for sign, text in hunk.plain_lines:
        if sign == " ":
            if new or start < at:
                yield Replacement(lines.starts[start], lines.starts[at], "".join(new))
            start, new = at + 1, []
        elif sign == "+":
            new.append(f"{text}\n")
        at += sign != "+"
    if new or start < at:
        yield Replacement(lines.starts[start], lines.starts[at], "".join(new))
