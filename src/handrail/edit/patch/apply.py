"""Applies hunks to a text."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from handrail.edit.fuzzy.candidates import MAX_COUNTED_PLACES
from handrail.edit.lines import Replacement
from handrail.edit.omission import find_placeholder
from handrail.edit.patch.hunks import Hunk
from handrail.edit.patch.target import PatchTarget, PlacedHunk, TextLines, Window, split_by_signs
from handrail.protocol.errors import ToolError
from handrail.protocol.text import quote_text

MAX_INEXACT_HUNKS = 100
"""Inexact hunks of one file. Each is searched in all of it."""
_MAX_ANCHOR_PLACES = 100
"""Places of an anchor that are searched one by one."""
_MAX_COMPARED_LINES = 2_000_000
"""Lines that counting may compare. Each place costs the lines of the hunk."""
_MAX_BLANK_LINES = 20
"""Blank lines behind a hunk that claims the end of the file."""


class AppliedHunks(msgspec.Struct, frozen=True):
    replacements: list[Replacement]
    strategies: tuple[str, ...]
    """How each hunk was found."""


def apply_hunks(text: str, hunks: Sequence[Hunk], path: str, readable: str | None = None) -> AppliedHunks:
    """Place hunks, in order, in a text with plain newlines. ToolError for the first hunk that does not fit.

    `readable` is the text as people see it, if it has bytes that cannot be decoded.
    """
    target = PatchTarget(text, path, readable)
    inexact = 0
    for hunk in hunks:
        if inexact == MAX_INEXACT_HUNKS:
            message = f"{MAX_INEXACT_HUNKS} hunks before it do not match the file exactly."
            raise target.build_error("LIMIT_EXCEEDED", hunk, f"{message} Read it, and make the patch anew.", {})
        _refuse_placeholder(target, hunk)
        _refuse_line_endings(target, hunk)
        placed = _place_hunk(target, hunk)
        inexact += placed.strategy != "exact"
        target.add(hunk, placed)
    replacements = [replacement for placed in target.placed for replacement in placed.replacements]
    reaches_end = target.low == len(target.lines) and bool(target.placed)
    settled = _settle_last_newline(target.lines, replacements, hunks[-1] if reaches_end else None)
    return AppliedHunks(settled, tuple(placed.strategy for placed in target.placed))


def _refuse_placeholder(target: PatchTarget, hunk: Hunk) -> None:
    found = find_placeholder(hunk.old_text, hunk.new_text, target.path)
    if found is not None:
        message = f"{found.describe('its new text')} Send the real lines in its place."
        advice = "If the file is to have this one, add it in a hunk that removes none."
        raise target.build_error("OMITTED_TEXT", hunk, f"{message} {advice}", found.details)


def _refuse_line_endings(target: PatchTarget, hunk: Hunk) -> None:
    """Refuse new lines with other line endings than those around them: these would not be applied."""
    around, old, new = hunk.endings(" ", "-"), hunk.endings("-"), hunk.endings("+")
    only_endings = old and new and old != new and hunk.old == hunk.new
    if only_endings or (around and new - around):
        change = f"{'/'.join(sorted(old or around))} to {'/'.join(sorted(new))}"
        message = f"it changes line endings ({change}), and a patch leaves those as the file has them."
        advice = "Use the file's own endings in it; to change them, write the whole file."
        raise target.build_error("INVALID_ARGUMENT", hunk, f"{message} {advice}", {})


def _place_hunk(target: PatchTarget, hunk: Hunk) -> PlacedHunk:
    windows = _find_windows(target, hunk)
    at = _find_exactly(target, hunk, windows) if hunk.old else _find_insertion(target, hunk, windows)
    if at is None:
        from handrail.edit.patch.fuzz import place_inexactly  # noqa: PLC0415  most hunks are exact

        return place_inexactly(target, hunk, windows)
    starts = target.lines.starts
    parts = split_by_signs([line.sign for line in hunk.lines], hunk.old, hunk.new) or []
    replacements = (
        Replacement(starts[at + a], starts[at + b], "".join(f"{line}\n" for line in new)) for a, b, new in parts
    )
    return PlacedHunk(at, at + len(hunk.old), "exact", tuple(replacements))


def _find_windows(target: PatchTarget, hunk: Hunk) -> list[Window]:
    """Find the lines that belong to the anchors of a hunk, each inside the one before."""
    lines, low = target.lines, target.low
    windows = [Window(low, len(lines))]
    for anchor in hunk.anchors:
        places = sorted({at for window in windows for at in _find_anchor(lines, anchor, window, low)})
        if not places:
            raise _build_unknown_anchor_error(target, hunk, anchor)
        if len(places) > _MAX_ANCHOR_PLACES:
            windows = [Window(max(places[0], low), len(lines), at) for at in places[:_MAX_ANCHOR_PLACES]]
            continue
        windows = [Window(max(at, low), lines.blocks[at].end, at, lines.blocks[at].alone) for at in places]
    return windows


def _find_anchor(lines: TextLines, anchor: str, window: Window, low: int) -> list[int]:
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


def _find_insertion(target: PatchTarget, hunk: Hunk, windows: Sequence[Window]) -> int:
    """Return where new lines without old ones go."""
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
        message = "it only adds lines, and nothing says where."
    advice = "Add a line before or after them, an @@ line that they go behind, or *** End of File."
    raise target.build_error("INVALID_ARGUMENT", hunk, f"{message} {advice}", {})


def _find_behind_anchor(target: PatchTarget, hunk: Hunk, places: Sequence[int]) -> int:
    at, advice = places[0], "Add lines around what it adds."
    if len(places) > 1:
        numbers = ", ".join(str(place + 1) for place in places[:3]) + (", …" if len(places) > 3 else "")
        message = f"its @@ line is there {len(places)} times: lines {numbers}. {advice}"
        raise target.build_error("AMBIGUOUS_MATCH", hunk, message, {"count": len(places)})
    if at < target.low:
        message = f"its @@ line is line {at + 1}, before hunk {hunk.number - 1}, and hunks go in the order of the file."
        raise target.build_error("NO_MATCH", hunk, f"{message} {advice}", {"anchor": at + 1})
    return at + 1


def _find_exactly(target: PatchTarget, hunk: Hunk, windows: Sequence[Window]) -> int | None:
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
    """Find the last lines, whatever blank ones come behind them."""
    old, lines = hunk.old, target.lines
    last = len(lines) - len(old)
    for at in range(last, max(target.low, last - _MAX_BLANK_LINES) - 1, -1):
        if lines.are_at(at, old):
            return at
        if lines.lines[at + len(old) - 1].strip():
            break
    return None


def _find_where_stated(target: PatchTarget, hunk: Hunk, windows: Sequence[Window]) -> int | None:
    """Look at the line that a diff states, or behind an anchor without a block."""
    at = target.find_stated(hunk)
    if hunk.anchors:
        at = windows[0].anchor + 1 if len(windows) == 1 and windows[0].alone else None
    return at if at is not None and at >= target.low and target.lines.are_at(at, hunk.old) else None


def _find_places(target: PatchTarget, hunk: Hunk, windows: Sequence[Window]) -> Iterator[int]:
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
    inside = f" in what belongs to {quote_text(hunk.anchors[0].strip())}" if anchor is not hunk.anchors[0] else ""
    behind = f" behind line {target.low}, where hunk {hunk.number - 1} ends" if target.low else ""
    near = next((at for at, line in enumerate(lines) if wanted and wanted in line), None)
    hint = f" Near: line {near + 1}, {quote_text(lines[near].strip())}." if near is not None else ""
    message = f"there is no line {quote_text(wanted)}{inside}{behind}, which its @@ line names.{hint}"
    message = f"{message} Give a line of the file as it is."
    return target.build_error("NO_MATCH", hunk, message, {"anchor": anchor[:200]})


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
