"""Puts the hunks of a patch into a text: exactly where they say, or else where the engine of edit finds them."""

from collections.abc import Iterator, Sequence

import msgspec

from handrail.edit.matching import Span
from handrail.edit.newlines import Replacement
from handrail.edit.patch.anchors import Window, windows
from handrail.edit.patch.last_line import settled_end
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.refusing import inexact, nowhere, passed, refuse_placeholder, refused, twice, unknown_anchor
from handrail.edit.patch.text_lines import TextLines
from handrail.edit.placing import Placed, place
from handrail.protocol.error import ToolError

TOLERATED = 100
"""Hunks of one file that need not be exact: each of them is looked for in all of it."""


class Fit(msgspec.Struct, frozen=True):
    """Where a hunk is, in lines from 0, and what it replaces there."""

    start: int
    end: int
    strategy: str
    replacements: tuple[Replacement, ...]


class Fitted(msgspec.Struct, frozen=True):
    """All hunks of a file: what is replaced in its text."""

    replacements: list[Replacement]
    strategies: tuple[str, ...]
    """How each hunk was found."""
    lines: tuple[tuple[int, int], ...]
    """Its first and its last line, as they were before."""


def fitted(text: str, hunks: Sequence[Hunk], path: str) -> Fitted:
    """Puts hunks, in order, into a text with plain newlines; ToolError with the hunk that does not fit."""
    lines = TextLines(text)
    fits: list[Fit] = []
    offset = tolerated = 0
    for hunk in hunks:
        low = fits[-1].end if fits else 0
        if tolerated == TOLERATED:
            raise inexact(hunk, path, TOLERATED)
        refuse_placeholder(hunk, path)
        fit = _fit(lines, hunk, low, offset, path)
        tolerated += fit.strategy != "exact"
        if hunk.stated is not None:
            offset = fit.start - _stated(hunk)
        fits.append(fit)
    replacements = [replacement for fit in fits for replacement in fit.replacements]
    at_end = bool(fits) and fits[-1].end == len(lines)
    settled = settled_end(lines, replacements, hunks[-1] if at_end else None)
    ranges = tuple((fit.start + 1, max(fit.start + 1, fit.end)) for fit in fits)
    return Fitted(settled, tuple(fit.strategy for fit in fits), ranges)


def _fit(lines: TextLines, hunk: Hunk, low: int, offset: int, path: str) -> Fit:
    found = windows(lines, hunk.anchors, low) if hunk.anchors else [Window(low, len(lines))]
    if isinstance(found, str):
        raise unknown_anchor(lines, hunk, found, low, path)
    if not hunk.old:
        return _exactly(lines, hunk, _insertion(lines, hunk, found, low, offset, path))
    at = _exact_place(lines, hunk, found, low, offset)
    if at is not None:
        return _exactly(lines, hunk, at)
    return _tolerantly(lines, hunk, found, low, path)


def _stated(hunk: Hunk) -> int:
    """The line, from 0, that a hunk says it begins with, or that it pushes down."""
    return (hunk.stated or 0) - bool(hunk.old)


def _insertion(lines: TextLines, hunk: Hunk, found: Sequence[Window], low: int, offset: int, path: str) -> int:
    """Where new lines go that have none around them."""
    if hunk.at_end or not lines:
        return len(lines)
    if hunk.anchors:
        if len(found) > 1:
            raise twice(hunk, path, [window.anchor for window in found])
        if found[0].anchor < low:
            raise passed(hunk, path, found[0].anchor)
        return found[0].anchor + 1
    if hunk.stated is None or not low <= _stated(hunk) + offset <= len(lines):
        raise nowhere(lines, hunk, path)
    return _stated(hunk) + offset


def _exact_place(lines: TextLines, hunk: Hunk, found: Sequence[Window], low: int, offset: int) -> int | None:
    """The line, from 0, where the old lines are for certain: where they are said to be, or nowhere else."""
    old = hunk.old
    if hunk.at_end and len(lines) - len(old) >= low and lines.are_at(len(lines) - len(old), old):
        return len(lines) - len(old)
    stated = _stated(hunk) + offset
    if hunk.stated is not None and not hunk.anchors and stated >= low and lines.are_at(stated, old):
        return stated
    inside = {at for window in found for at in lines.places(old, window.start, window.end)}
    if not inside and len(found) == 1:
        beside = found[0].anchor + 1
        inside = {beside} if beside >= low and lines.are_at(beside, old) else set[int]()
    if not inside:
        inside = set(lines.places(old, found[0].start, len(lines)))
    return inside.pop() if len(inside) == 1 else None


def _exactly(lines: TextLines, hunk: Hunk, at: int) -> Fit:
    """The lines that stay are not touched, nor is what their newlines are."""
    return Fit(at, at + len(hunk.old), "exact", tuple(_groups(lines, hunk, at)))


def _groups(lines: TextLines, hunk: Hunk, at: int) -> Iterator[Replacement]:
    start, new = at, list[str]()
    for sign, text in ((line.sign, line.plain) for line in hunk.lines):
        if sign == " ":
            if new or start < at:
                yield Replacement(lines.starts[start], lines.starts[at], "".join(new))
            start, new = at + 1, []
        elif sign == "+":
            new.append(f"{text}\n")
        at += sign != "+"
    if new or start < at:
        yield Replacement(lines.starts[start], lines.starts[at], "".join(new))


def _tolerantly(lines: TextLines, hunk: Hunk, found: Sequence[Window], low: int, path: str) -> Fit:
    """Where the engine of edit finds the old lines: in what belongs to the anchor, or behind it."""
    tried = [Window(found[0].start, len(lines))]
    if len(found) == 1 and found[0] != tried[0]:
        tried.insert(0, found[0])
    for number, window in enumerate(tried):
        try:
            return _by_engine(lines, hunk, window, path)
        except ToolError as error:
            if error.code != "NO_MATCH" or number == len(tried) - 1:
                raise refused(lines, hunk, error, low, path) from None
    raise AssertionError("one window is tried at least")


def _by_engine(lines: TextLines, hunk: Hunk, window: Window, path: str) -> Fit:
    old, new = ("".join(f"{line}\n" for line in side) for side in (hunk.old, hunk.new))
    part, shift = lines.part(window.start, window.end), lines.starts[window.start]
    placed = place(part, old, new, path)
    if not _is_whole(part, placed):
        raise ToolError("NO_MATCH", "Its old lines are only a part of lines there. A patch replaces whole lines.")
    moved = tuple(Replacement(start + shift, end + shift, text) for start, end, text in placed.replacements)
    start, end = placed.spans[0].start + shift, placed.spans[-1].end + shift
    first = lines.line_at(start + 1) - 1
    return Fit(first, lines.line_at(end), placed.strategy, moved)


def _is_whole(text: str, placed: Placed) -> bool:
    """Whether nothing but white space is beside what was found on its lines."""
    return all(not _beside(text, span).strip() for span in placed.spans)


def _beside(text: str, span: Span) -> str:
    before = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    ended = span.end > span.start and text[span.end - 1] == "\n"
    after = "" if ended else text[span.end :].partition("\n")[0]
    return before + after
