"""Where the engine of edit finds the old lines of a hunk that are not there as they are: whole lines, always."""

from collections.abc import Iterator, Sequence

from handrail.edit.climbing import match_or_refuse
from handrail.edit.ladder.climb import FuzzyMatch, find_match
from handrail.edit.ladder.errors import RefusedError
from handrail.edit.line_parts import narrow_replacements
from handrail.edit.newlines import Replacement, apply_replacements
from handrail.edit.patch.anchors import Window
from handrail.edit.patch.fit import PatchTarget, PlacedHunk
from handrail.edit.patch.model import Hunk, Sign
from handrail.edit.patch.refusing import build_displaced_error, build_hunk_error, build_repeated_error
from handrail.edit.patch.signed_parts import split_signed_parts, strip_blank_edges
from handrail.edit.patch.text_lines import TextLines
from handrail.edit.refusals.wording import Wording
from handrail.protocol.error import ToolError

_PART = "its old lines are only a part of lines there. A patch replaces whole lines."
_OF_HUNK = Wording(old="its old text", new="its new text", every="name its function in an @@ line")


def find_tolerant_place(target: PatchTarget, hunk: Hunk, found: Sequence[Window]) -> PlacedHunk:
    """The only place in what belongs to the anchors, or behind the hunk before; ToolError where there is none."""
    end = min(found[-1].end + len(hunk.old), len(target.lines))
    try:
        fit = _climbed(target, hunk, found[0].start, end)
    except ToolError as error:
        raise _refused(target, hunk, error) from None
    inside = any(window.start <= fit.start < window.end for window in found)
    if not inside or (hunk.at_end and target.lines.part(fit.end, len(target.lines)).strip()):
        raise build_displaced_error(target, hunk, fit.start, fit.end)
    if not hunk.anchors and hunk.stated is None:
        _refuse_twin(target, hunk, fit)
    return fit


def _refused(target: PatchTarget, hunk: Hunk, error: ToolError) -> ToolError:
    """What is said of the part of the file where the hunk was looked for, or of all of it. It may be elsewhere."""
    if error.code != "NO_MATCH":
        return build_hunk_error(target, hunk, error)
    exactly = next(target.lines.places(hunk.old, 0, len(target.lines)), None)
    if exactly is not None:
        return build_displaced_error(target, hunk, exactly, exactly + len(hunk.old))
    try:
        fit = _climbed(target, hunk, 0, len(target.lines))
    except ToolError as said:
        return build_hunk_error(target, hunk, said)
    return build_displaced_error(target, hunk, fit.start, fit.end)


def _climbed(target: PatchTarget, hunk: Hunk, start: int, end: int) -> PlacedHunk:
    text, readable = target.part(start, end)
    old, new = hunk.old_text, hunk.new_text
    found = match_or_refuse(text, old, new, target.path, every=False, readable=readable, wording=_OF_HUNK)
    return _whole(target, hunk, found, start)


def _whole(target: PatchTarget, hunk: Hunk, ladder: FuzzyMatch, first: int) -> PlacedHunk:
    """What the ladder found in a text that begins with a line, in whole lines: those that stay keep their endings."""
    lines, [place] = target.lines, ladder.places
    shift = lines.starts[first]
    start, end = lines.line_at(place.span.start + shift), lines.line_at(place.span.end + shift)
    if lines.starts[start] != place.span.start + shift or lines.starts[end] - place.span.end - shift > 1:
        raise ToolError("NO_MATCH", _PART)
    moved = [Replacement(low + shift, high + shift, text) for low, high, text in place.replacements]
    made = apply_replacements(lines.text, moved, lines.starts[start], lines.starts[end])
    return PlacedHunk(start, end, ladder.strategy, tuple(_parts(lines, hunk, start, end, made)))


def _parts(lines: TextLines, hunk: Hunk, start: int, end: int, made: str) -> Iterator[Replacement]:
    """Lines that become others, as what changes in them: by the signs of the hunk, if the ladder went by them."""
    signs: list[Sign] = [line.sign for line in hunk.lines]
    texts = [line.text for line in hunk.lines]
    old, new = lines.lines[start:end], made.split("\n")[:-1]
    for each in strip_blank_edges(signs, texts, len(old)):
        parts = split_signed_parts(each, old, new)
        if parts is not None:
            starts = lines.starts[start : end + 1]
            return (Replacement(starts[a], starts[b], "".join(f"{line}\n" for line in to)) for a, b, to in parts)
    return narrow_replacements(lines.text, [Replacement(lines.starts[start], lines.starts[end], made)])


def _refuse_twin(target: PatchTarget, hunk: Hunk, fit: PlacedHunk) -> None:
    """AMBIGUOUS_MATCH where the lines are as much alike before the hunk before: hunks may be out of order."""
    if not target.low:
        return
    try:
        found = find_match(target.lines.part(0, target.low), hunk.old_text, hunk.new_text)
    except RefusedError:
        return
    if found is None or found.strategy != fit.strategy:
        return
    at = target.lines.line_at
    before = [(at(place.span.start), at(place.span.end)) for place in found.places]
    twins = [start for start, end in before if not target.taken(start, end)]
    if twins:
        raise build_repeated_error(target, hunk, [*twins, fit.start], all_of_them=found.all_of_them)
