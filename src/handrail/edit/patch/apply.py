"""Applies hunks to a text."""

from collections.abc import Iterator, Sequence

import msgspec

from handrail.edit.lines import Replacement
from handrail.edit.patch.locate import Window, find_anchor_windows, find_exact_place
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.placement import (
    PatchTarget,
    PlacedHunk,
    TextLines,
    build_ambiguous_anchor_error,
    build_inexact_error,
    build_missing_position_error,
    build_passed_anchor_error,
    build_unknown_anchor_error,
    refuse_endings,
    refuse_placeholder,
)

# § [edit.patch.last_line] The newline at the end of a file: kept as it is unless the patch says something about it.


def adjust_last_newline(lines: TextLines, replacements: Sequence[Replacement], last: Hunk | None) -> list[Replacement]:
    """Replacements in the text as it is, made of those in one whose last line has its newline. `last` is the hunk that
    the text ends with, if one does."""
    ended = lines.ended
    if last is not None and last.old_open != last.new_open:
        ended = last.old_open
    if lines.ended:
        return list(replacements) if ended or not replacements else _without_newline(lines, replacements)
    return _in_open_text(len(lines.text) - 1, replacements, ended=ended)


def _without_newline(lines: TextLines, replacements: Sequence[Replacement]) -> list[Replacement]:
    *others, (start, end, text) = replacements
    if end == len(lines.text) and text.endswith("\n"):
        return [*others, Replacement(start, end, text[:-1])]
    return [*replacements, Replacement(len(lines.text) - 1, len(lines.text), "")]


def _in_open_text(length: int, replacements: Sequence[Replacement], *, ended: bool) -> list[Replacement]:
    """The last line has no newline, so what reaches behind it ends with it."""
    settled: list[Replacement] = []
    for start, end, text in replacements:
        closed = text if ended else text.removesuffix("\n")
        if end <= length:
            settled.append(Replacement(start, end, text))
        elif start <= length:
            settled.append(Replacement(start, length, closed))
        else:
            settled.append(Replacement(length, length, f"\n{closed}"))
    if ended and not any(end > length for _, end, _ in replacements):
        settled.append(Replacement(length, length, "\n"))
    return settled


# § [edit.patch.fitting] Puts the hunks of a patch into a text: exactly where they say, or else where the engine of
# § edit finds them.

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
    from handrail.edit.patch.locate import find_tolerant_place  # noqa: PLC0415  most hunks are exact

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
