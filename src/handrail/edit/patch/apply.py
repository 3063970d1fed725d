"""Applies hunks to a text."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from handrail.edit.diff import narrow_replacements
from handrail.edit.fuzzy.candidates import MAX_COUNTED_PLACES, RefusedError, Wording
from handrail.edit.lines import Replacement, apply_replacements
from handrail.edit.omission import find_placeholder
from handrail.edit.patch.hunks import Hunk, PatchLine, Sign
from handrail.edit.patch.target import PatchTarget, PlacedHunk, TextLines
from handrail.protocol.errors import ToolError
from handrail.protocol.text import render_value

MAX_INEXACT_HUNKS = 100
"""Inexact hunks of one file. Each is searched in all of it."""
_MAX_ANCHOR_PLACES = 100
"""Places of an anchor that are searched one by one."""
_MAX_COMPARED_LINES = 2_000_000
"""Lines that counting may compare. Each place costs the lines of the hunk."""
_MAX_BLANK_LINES = 20
"""Blank lines behind a hunk that claims the end of the file."""
_OF_HUNK = Wording(old="its old text", new="its new text", every="name its function in an @@ line")

_LinesPart = tuple[int, int, list[str]]
"""A range of old lines with the new lines that replace them."""


class AppliedHunks(msgspec.Struct, frozen=True):
    replacements: list[Replacement]
    strategies: tuple[str, ...]


def apply_hunks(text: str, hunks: Sequence[Hunk], path: str, readable: str | None = None) -> AppliedHunks:
    """Place hunks, in order, in a text with plain newlines. ToolError for the first hunk that does not fit.

    `readable` is the text as people see it, if it has bytes that cannot be decoded.
    """
    target = PatchTarget(text, path, readable)
    inexact = 0
    for hunk in hunks:
        if inexact == MAX_INEXACT_HUNKS:
            message = f"{MAX_INEXACT_HUNKS} hunks before it do not match the file exactly."
            raise target.build_error("LIMIT_EXCEEDED", hunk, f"{message} Read it, and write a new patch.", {})
        _refuse_placeholder(target, hunk)
        _refuse_line_endings(target, hunk)
        placed = _place_hunk(target, hunk)
        inexact += placed.strategy != "exact"
        target.add(hunk, placed)
    replacements = [replacement for placed in target.placed for replacement in placed.replacements]
    reaches_end = target.low == len(target.lines) and bool(target.placed)
    settled = _settle_last_newline(target.lines, replacements, hunks[-1] if reaches_end else None)
    return AppliedHunks(settled, tuple(placed.strategy for placed in target.placed))


class _Window(NamedTuple):
    """Lines where a hunk may start."""

    start: int
    end: int
    anchor: int = -1
    """The line that they belong to. It may come before them, if its block is still open."""
    alone: bool = False
    """Whether nothing belongs to the anchor, so that they are the lines behind it."""


def _refuse_placeholder(target: PatchTarget, hunk: Hunk) -> None:
    found = find_placeholder(hunk.old_text, hunk.new_text, target.path)
    if found is not None:
        message = f"{found.describe('its new text')} Send the real lines in its place."
        advice = "If the file needs this line, add it in a hunk that removes no line."
        raise target.build_error("OMITTED_TEXT", hunk, f"{message} {advice}", found.details)


def _refuse_line_endings(target: PatchTarget, hunk: Hunk) -> None:
    """Refuse new lines with other line endings than those around them: these would not be applied."""
    around, old, new = hunk.endings(" ", "-"), hunk.endings("-"), hunk.endings("+")
    only_endings = old and new and old != new and hunk.old == hunk.new
    if only_endings or (around and new - around):
        change = f"{'/'.join(sorted(old or around))} to {'/'.join(sorted(new))}"
        message = f"it changes line endings ({change}), and a patch keeps the line endings of the file."
        advice = "Use the file's line endings in the patch. To change line endings, write the whole file."
        raise target.build_error("INVALID_ARGUMENT", hunk, f"{message} {advice}", {})


def _place_hunk(target: PatchTarget, hunk: Hunk) -> PlacedHunk:
    windows = _find_windows(target, hunk)
    at = _find_exactly(target, hunk, windows) if hunk.old else _find_insertion(target, hunk, windows)
    if at is None:
        return _place_inexactly(target, hunk, windows)
    parts = _split_by_signs([line.sign for line in hunk.lines], hunk.old, hunk.new) or []
    return PlacedHunk(at, at + len(hunk.old), "exact", _replace_parts(target.lines, at, parts))


def _find_windows(target: PatchTarget, hunk: Hunk) -> list[_Window]:
    """Find the lines that belong to the anchors of a hunk, each inside the one before."""
    lines, low = target.lines, target.low
    windows = [_Window(low, len(lines))]
    for anchor in hunk.anchors:
        places = sorted({at for window in windows for at in _find_anchor(lines, anchor, window, low)})
        if not places:
            raise _build_unknown_anchor_error(target, hunk, anchor)
        if len(places) > _MAX_ANCHOR_PLACES:
            windows = [_Window(max(places[0], low), len(lines), at) for at in places[:_MAX_ANCHOR_PLACES]]
            continue
        windows = [_Window(max(at, low), lines.blocks[at].end, at, lines.blocks[at].alone) for at in places]
    return windows


def _find_anchor(lines: TextLines, anchor: str, window: _Window, low: int) -> list[int]:
    """Return the lines in a window that an anchor names, and earlier ones whose block reaches into it."""
    behind = window.anchor + 1
    before = ((at, lines.blocks[at]) for at in _find_named_lines(lines, anchor, behind, low))
    still_open = [at for at, block in before if block.end > low and not block.alone]
    return still_open + _find_named_lines(lines, anchor, max(behind, window.start), window.end)


def _find_named_lines(lines: TextLines, anchor: str, low: int, high: int) -> list[int]:
    """Return the lines that are the anchor: exactly, or else but for white space around them, or by their start."""
    stripped = _select_between(lines.find_stripped(anchor), low, high)
    exact = [at for at in stripped if lines.lines[at].rstrip() == anchor.rstrip()]
    if exact and len(stripped) <= _MAX_ANCHOR_PLACES:
        return exact
    return stripped or _select_between(lines.find_prefixed(anchor), low, high)


def _select_between(numbers: Sequence[int], low: int, high: int) -> list[int]:
    start, end = bisect_left(numbers, low), bisect_left(numbers, high)
    return list(numbers[start : min(end, start + _MAX_ANCHOR_PLACES + 1)])


def _find_insertion(target: PatchTarget, hunk: Hunk, windows: Sequence[_Window]) -> int:
    """Return the place of new lines without old ones."""
    lines, low = target.lines, target.low
    if hunk.at_end or not lines:
        return len(lines)
    if hunk.anchors:
        return _find_behind_anchor(target, hunk, [window.anchor for window in windows])
    at = target.find_stated(hunk)
    if at is not None and low <= at <= len(lines):
        return at
    if hunk.stated is not None:
        message = f"it adds lines behind line {hunk.stated}, and {target.path} has {len(lines)}."
    else:
        message = "it only adds lines, and its place is unknown."
    advice = "Add a line before or after them, an @@ line that they go behind, or *** End of File."
    raise target.build_error("INVALID_ARGUMENT", hunk, f"{message} {advice}", {})


def _find_behind_anchor(target: PatchTarget, hunk: Hunk, places: Sequence[int]) -> int:
    at, advice = places[0], "Add lines around what it adds."
    if len(places) > 1:
        numbers = ", ".join(str(place + 1) for place in places[:3]) + (", …" if len(places) > 3 else "")
        message = f"its @@ line occurs {len(places)} times: lines {numbers}. {advice}"
        raise target.build_error("AMBIGUOUS_MATCH", hunk, message, {"count": len(places)})
    if at < target.low:
        message = f"its @@ line is line {at + 1}, before hunk {hunk.number - 1}, and hunks go in the order of the file."
        raise target.build_error("NO_MATCH", hunk, f"{message} {advice}", {"anchor": at + 1})
    return at + 1


def _find_exactly(target: PatchTarget, hunk: Hunk, windows: Sequence[_Window]) -> int | None:
    """Return the line, from 0, where the old lines are as stated, or nowhere else. None if they do not match."""
    if hunk.at_end:
        return _find_at_end(target, hunk)
    stated = _find_where_stated(target, hunk, windows)
    if stated is not None:
        return stated
    most = max(4, min(MAX_COUNTED_PLACES, _MAX_COMPARED_LINES // len(hunk.old)))
    places = list(islice(_find_places(target, hunk, windows), most + 1))
    if len(places) > 1:
        raise target.build_repeated_error(hunk, places[:most], all_of_them=len(places) <= most)
    if places and places[0] < target.low:
        raise target.build_displaced_error(hunk, places[0], places[0] + len(hunk.old))
    return places[0] if places else None


def _find_at_end(target: PatchTarget, hunk: Hunk) -> int | None:
    """Find the last lines, before any trailing blank ones."""
    old, lines = hunk.old, target.lines
    last = len(lines) - len(old)
    for at in range(last, max(target.low, last - _MAX_BLANK_LINES) - 1, -1):
        if lines.are_at(at, old):
            return at
        if lines.lines[at + len(old) - 1].strip():
            break
    return None


def _find_where_stated(target: PatchTarget, hunk: Hunk, windows: Sequence[_Window]) -> int | None:
    """Look at the line that a diff states, or behind an anchor without a block."""
    at = target.find_stated(hunk)
    if hunk.anchors:
        at = windows[0].anchor + 1 if len(windows) == 1 and windows[0].alone else None
    return at if at is not None and at >= target.low and target.lines.are_at(at, hunk.old) else None


def _find_places(target: PatchTarget, hunk: Hunk, windows: Sequence[_Window]) -> Iterator[int]:
    """Yield all places: inside the anchors, behind the hunk before, or in the whole file if nothing is stated."""
    lines, old = target.lines, hunk.old
    if hunk.anchors:
        found = (islice(lines.find_lines(old, window.start, window.end), MAX_COUNTED_PLACES) for window in windows)
        return iter(dict.fromkeys(at for places in found for at in places))
    if hunk.stated is not None:
        return lines.find_lines(old, target.low, len(lines))
    return (at for at in lines.find_lines(old, 0, len(lines)) if not target.is_taken(at, at + len(old)))


def _build_unknown_anchor_error(target: PatchTarget, hunk: Hunk, anchor: str) -> ToolError:
    wanted, lines = anchor.strip(), target.lines.lines
    inside = f" in what belongs to {render_value(hunk.anchors[0].strip())}" if anchor is not hunk.anchors[0] else ""
    behind = f" behind line {target.low}, where hunk {hunk.number - 1} ends" if target.low else ""
    near = next((at for at, line in enumerate(lines) if wanted and wanted in line), None)
    hint = f" Near: line {near + 1}, {render_value(lines[near].strip())}." if near is not None else ""
    message = f"there is no line {render_value(wanted)}{inside}{behind}, which its @@ line names.{hint}"
    message = f"{message} Give a line of the file as it is."
    return target.build_error("NO_MATCH", hunk, message, {"anchor": anchor[:200]})


def _place_inexactly(target: PatchTarget, hunk: Hunk, windows: Sequence[_Window]) -> PlacedHunk:
    """Find the only place inside the anchors, or behind the hunk before. ToolError if there is none."""
    end = min(windows[-1].end + len(hunk.old), len(target.lines))
    try:
        placed = _match_text(target, hunk, windows[0].start, end)
    except ToolError as error:
        raise _build_refusal(target, hunk, error) from None
    is_inside = any(window.start <= placed.start < window.end for window in windows)
    if not is_inside or (hunk.at_end and target.lines.cut(placed.end, len(target.lines)).strip()):
        raise target.build_displaced_error(hunk, placed.start, placed.end)
    if not hunk.anchors and hunk.stated is None:
        _refuse_twin(target, hunk, placed)
    return placed


def _build_refusal(target: PatchTarget, hunk: Hunk, error: ToolError) -> ToolError:
    """Build the error for a hunk that did not match in its window. It may match elsewhere."""
    if error.code != "NO_MATCH":
        return target.build_match_error(hunk, error)
    at = next(target.lines.find_lines(hunk.old, 0, len(target.lines)), None)
    if at is not None:
        return target.build_displaced_error(hunk, at, at + len(hunk.old))
    try:
        placed = _match_text(target, hunk, 0, len(target.lines))
    except ToolError as anywhere:
        return target.build_match_error(hunk, anywhere)
    return target.build_displaced_error(hunk, placed.start, placed.end)


def _match_text(target: PatchTarget, hunk: Hunk, start: int, end: int) -> PlacedHunk:
    """Match a hunk as an edit of these lines, and widen it to whole lines."""
    from handrail.edit.refusals import match_or_refuse  # noqa: PLC0415  most hunks are exact

    text, readable = target.cut(start, end)
    old, new = hunk.old_text, hunk.new_text
    found = match_or_refuse(text, old, new, target.path, every=False, readable=readable, wording=_OF_HUNK)
    [place] = found.places
    lines, shift = target.lines, target.lines.starts[start]
    low, high = place.span.start + shift, place.span.end + shift
    start, end = lines.line_at(low), lines.line_at(high)
    if lines.starts[start] != low or lines.starts[end] - high > 1:
        raise ToolError("NO_MATCH", "its old lines are only a part of lines there. A patch replaces whole lines.")
    shifted = [Replacement(low + shift, high + shift, text) for low, high, text in place.replacements]
    new_text = apply_replacements(lines.text, shifted, lines.starts[start], lines.starts[end])
    return PlacedHunk(start, end, found.strategy, _split_replacement(lines, hunk, start, end, new_text))


def _split_replacement(lines: TextLines, hunk: Hunk, start: int, end: int, new: str) -> tuple[Replacement, ...]:
    """Cut unchanged lines out of a replacement: by the signs of the hunk if they apply, or else by a diff."""
    old, new_lines = lines.lines[start:end], new.split("\n")[:-1]
    for signs in _strip_blank_edges(hunk.lines, len(old)):
        parts = _split_by_signs(signs, old, new_lines)
        if parts is not None:
            return _replace_parts(lines, start, parts)
    return tuple(narrow_replacements(lines.text, [Replacement(lines.starts[start], lines.starts[end], new)]))


def _split_by_signs(signs: Sequence[Sign], old: Sequence[str], new: Sequence[str]) -> list[_LinesPart] | None:
    """Return the parts that a hunk replaces. None if the lines disagree with its signs."""
    parts: list[_LinesPart] = []
    start = at = new_at = 0
    added: list[str] = []
    for sign in (*signs, " "):
        if sign == " ":
            if added or start < at:
                parts.append((start, at, added))
            start, added = at + 1, []
            if at < len(old) and old[at : at + 1] != new[new_at : new_at + 1]:
                return None
        elif sign == "+":
            added += new[new_at : new_at + 1]
        at += sign != "+"
        new_at += sign != "-"
    return parts if (at - 1, new_at - 1) == (len(old), len(new)) else None


def _replace_parts(lines: TextLines, start: int, parts: Sequence[_LinesPart]) -> tuple[Replacement, ...]:
    texts = ((start + a, start + b, "".join(f"{line}\n" for line in new)) for a, b, new in parts)
    return tuple(Replacement(lines.starts[low], lines.starts[high], text) for low, high, text in texts)


def _strip_blank_edges(lines: Sequence[PatchLine], count: int) -> Iterator[Sequence[Sign]]:
    """Yield the signs of a hunk for a place with `count` lines, without blank context lines at either end."""
    signs: list[Sign] = [line.sign for line in lines]
    missing = sum(sign != "+" for sign in signs) - count
    lead, trail = (
        next((n for n, line in enumerate(edge) if line.sign != " " or line.text.strip()), 0)
        for edge in (lines, lines[::-1])
    )
    for first in range(max(0, missing - trail), min(lead, missing) + 1):
        yield signs[first : len(signs) - (missing - first)]


def _refuse_twin(target: PatchTarget, hunk: Hunk, placed: PlacedHunk) -> None:
    """Raise AMBIGUOUS_MATCH if an earlier place is as similar: the hunks may be out of order."""
    if not target.low:
        return
    from handrail.edit.fuzzy.strategies import find_match  # noqa: PLC0415  most hunks are exact

    try:
        found = find_match(target.lines.cut(0, target.low), hunk.old_text, hunk.new_text)
    except RefusedError:
        return
    if found is None or found.strategy != placed.strategy:
        return
    at = target.lines.line_at
    before = [(at(place.span.start), at(place.span.end)) for place in found.places]
    twins = [start for start, end in before if not target.is_taken(start, end)]
    if twins:
        raise target.build_repeated_error(hunk, [*twins, placed.start], all_of_them=found.all_of_them)


def _settle_last_newline(lines: TextLines, replacements: Sequence[Replacement], last: Hunk | None) -> list[Replacement]:
    """Keep the newline at the end of the file as it is, unless the hunk at the end says otherwise."""
    ended = lines.ended
    if last is not None and last.old_open != last.new_open:
        ended = last.old_open
    length = len(lines.text)
    if not lines.ended:
        return _adapt_to_open_text(length - 1, replacements, ended=ended)
    if ended or not replacements:
        return list(replacements)
    *others, (start, end, text) = replacements
    if end == length and text.endswith("\n"):
        return [*others, Replacement(start, end, text[:-1])]
    return [*replacements, Replacement(length - 1, length, "")]


def _adapt_to_open_text(length: int, replacements: Sequence[Replacement], *, ended: bool) -> list[Replacement]:
    """Adapt replacements to a text whose last line has no newline."""
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
