"""Places hunks whose old lines are not in the file as they are."""

from collections.abc import Iterator, Sequence

from handrail.edit.diff import narrow_replacements
from handrail.edit.fuzzy.candidates import RefusedError, Wording
from handrail.edit.fuzzy.strategies import FuzzyMatch, find_match
from handrail.edit.lines import Replacement, apply_replacements
from handrail.edit.patch.hunks import Hunk, PatchLine, Sign
from handrail.edit.patch.target import PatchTarget, PlacedHunk, TextLines, Window, split_by_signs
from handrail.edit.refusals import match_or_refuse
from handrail.protocol.errors import ToolError

_PART_OF_LINES = "its old lines are only a part of lines there. A patch replaces whole lines."
_OF_HUNK = Wording(old="its old text", new="its new text", every="name its function in an @@ line")


def place_inexactly(target: PatchTarget, hunk: Hunk, windows: Sequence[Window]) -> PlacedHunk:
    """Find the only place inside the anchors, or behind the hunk before. ToolError if there is none."""
    end = min(windows[-1].end + len(hunk.old), len(target.lines))
    try:
        placed = _match(target, hunk, windows[0].start, end)
    except ToolError as error:
        raise _refuse(target, hunk, error) from None
    is_inside = any(window.start <= placed.start < window.end for window in windows)
    if not is_inside or (hunk.at_end and target.lines.cut(placed.end, len(target.lines)).strip()):
        raise target.build_displaced_error(hunk, placed.start, placed.end)
    if not hunk.anchors and hunk.stated is None:
        _refuse_twin(target, hunk, placed)
    return placed


def _refuse(target: PatchTarget, hunk: Hunk, error: ToolError) -> ToolError:
    """Build the error for a hunk that did not match where it was searched. It may match elsewhere."""
    if error.code != "NO_MATCH":
        return target.build_match_error(hunk, error)
    at = next(target.lines.find_lines(hunk.old, 0, len(target.lines)), None)
    if at is not None:
        return target.build_displaced_error(hunk, at, at + len(hunk.old))
    try:
        placed = _match(target, hunk, 0, len(target.lines))
    except ToolError as anywhere:
        return target.build_match_error(hunk, anywhere)
    return target.build_displaced_error(hunk, placed.start, placed.end)


def _match(target: PatchTarget, hunk: Hunk, start: int, end: int) -> PlacedHunk:
    text, readable = target.cut(start, end)
    old, new = hunk.old_text, hunk.new_text
    found = match_or_refuse(text, old, new, target.path, every=False, readable=readable, wording=_OF_HUNK)
    return _widen_to_lines(target.lines, hunk, found, start)


def _widen_to_lines(lines: TextLines, hunk: Hunk, found: FuzzyMatch, first: int) -> PlacedHunk:
    """Turn a match in the text from line `first` on into whole lines. Unchanged lines keep their endings."""
    [place] = found.places
    shift = lines.starts[first]
    start, end = lines.line_at(place.span.start + shift), lines.line_at(place.span.end + shift)
    if lines.starts[start] != place.span.start + shift or lines.starts[end] - place.span.end - shift > 1:
        raise ToolError("NO_MATCH", _PART_OF_LINES)
    shifted = [Replacement(low + shift, high + shift, text) for low, high, text in place.replacements]
    new = apply_replacements(lines.text, shifted, lines.starts[start], lines.starts[end])
    return PlacedHunk(start, end, found.strategy, tuple(_split_replacement(lines, hunk, start, end, new)))


def _split_replacement(lines: TextLines, hunk: Hunk, start: int, end: int, new: str) -> Iterator[Replacement]:
    """Cut unchanged lines out of a replacement: by the signs of the hunk if they apply, or else by a diff."""
    old, new_lines = lines.lines[start:end], new.split("\n")[:-1]
    for signs in _strip_blank_edges(hunk.lines, len(old)):
        parts = split_by_signs(signs, old, new_lines)
        if parts is not None:
            starts = lines.starts[start : end + 1]
            return (Replacement(starts[a], starts[b], "".join(f"{line}\n" for line in part)) for a, b, part in parts)
    return narrow_replacements(lines.text, [Replacement(lines.starts[start], lines.starts[end], new)])


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
