"""The strategies that find an edit's text, strictest first.

A strategy is used only if those before it found nothing, and its place must be the only one. They compare lines, and
forgive first white space, then how the text was sent, then words.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from handrail.edit.fuzzy.candidates import (
    MAX_COUNTED_PLACES,
    Candidate,
    IndexedText,
    RefusedError,
    Tolerance,
    UnsafeError,
)
from handrail.edit.fuzzy.inexact import count_tolerated_lines, find_elided_parts, find_near_candidate
from handrail.edit.fuzzy.normalize import (
    FENCES,
    PLAIN_CHARACTERS,
    EditReading,
    extract_indent,
    list_readings,
    loosen_punctuation,
    split_plain_words,
)
from handrail.edit.fuzzy.rewrite import Rewrite, refuse_applied_edit
from handrail.edit.lines import Replacement, Span, find_line_start
from handrail.edit.omission import is_mark

FORGIVEN = {
    "line-trimmed": "white space around lines",
    "indentation-flexible": "the indentation",
    "trimmed-boundary": "white space around it",
    "whitespace-normalised": "white space",
    "typography": "characters that look alike",
    "line-numbers": "line numbers",
    "code-fences": "code fences around it",
    "escape-normalised": "escaped characters",
    "elision": "lines that were left out",
    "context-aware": "words of lines that stay",
    "block-anchor": "words of lines that change",
}
"""The strategies behind `exact` in the order of use, with the words for the differences that each forgives."""
_STRATEGIES = {
    Tolerance.NOTHING: "trimmed-boundary",  # only the newline behind the last line differs
    Tolerance.LINE_ENDS: "line-trimmed",
    Tolerance.BOTH_SIDES: "line-trimmed",
    Tolerance.BOUNDARY: "trimmed-boundary",
    Tolerance.WHITE_SPACE: "whitespace-normalised",
    Tolerance.TYPOGRAPHY: "typography",
}
_MAX_COMPARED_LINES = 20_000
_MAX_REPLACED_PLACES = 10_000
_MAX_COMPARED_CHARS = 2_000_000
_MAX_SCANNED_CHARS = 200_000_000
"""Characters that are searched for single words."""
_WORD = re.compile(r"\w")
_INVISIBLE = [odd for odd, plain in PLAIN_CHARACTERS.items() if not plain]


class MatchPlace(msgspec.Struct, frozen=True):
    """A place with its replacements. They leave out lines that stay."""

    span: Span
    replacements: list[Replacement] = []


class FuzzyMatch(msgspec.Struct, frozen=True):
    strategy: str
    places: list[MatchPlace]
    all_of_them: bool = True


def find_match(text: str, old: str, new: str, *, every: bool = False) -> FuzzyMatch | None:
    """Match by the first strategy that can. Several places are ambiguous. RefusedError: one cannot be edited safely."""
    if old.count("\n") > _MAX_COMPARED_LINES or new.count("\n") > _MAX_COMPARED_LINES:
        return None
    readings = [reading for reading in list_readings(old, new) if _may_match(text, reading)]
    if not readings:
        return None
    indexed = IndexedText(text)
    for reading in readings:
        for candidates in (_find_lines_or_inside(indexed, reading), _find_inside(indexed, reading)):
            if found := _choose(indexed, candidates, len(old), every=every):
                return found
    return None if every else _find_inexact(indexed, readings)


def _may_match(text: str, reading: EditReading) -> bool:
    """Rule out readings cheaply: the text lacks too many words, or has code fences of its own."""
    if reading.name == "code-fences" and any(fence in text for fence in FENCES):
        return False
    if not text.isascii() and any(odd in text for odd in _INVISIBLE):
        return True  # invisible characters may cut words
    full = [line for line in reading.old if line.strip() and not is_mark(line)]
    words = (re.findall(r"\w+", line) for line in full)
    longest = sorted((max(found, key=len) for found in words if found), key=len, reverse=True)
    left = count_tolerated_lines(len(full))
    for word in longest[: max(2, _MAX_SCANNED_CHARS // (len(text) + 1))]:
        left -= word not in text
        if left < 0:
            return False
    return True


def _find_lines_or_inside(text: IndexedText, reading: EditReading) -> Iterator[Candidate]:
    """Find whole lines. One line without a newline may be a part of lines: then all its places count."""
    candidates = text.find_lines(reading)
    if len(reading.old) > 1 or reading.terminated or reading.name == "line-numbers":
        return candidates
    lines = list(islice(candidates, _MAX_REPLACED_PLACES + 1))
    inside = list(islice(_find_inside(text, reading), _MAX_REPLACED_PLACES + 1)) if lines else []
    return iter(inside if len(inside) > len(lines) else lines)


def _find_inside(text: IndexedText, reading: EditReading) -> Iterator[Candidate]:
    """Find places within lines. Both texts must have the same white space around them, which is left out."""
    old, new = "\n".join(reading.old), "\n".join(reading.new)
    start, end = len(old) - len(old.lstrip()), len(old.rstrip())
    before, behind = old[:start], old[end:]
    if start >= end or reading.name == "line-numbers" or not new.startswith(before) or not new.endswith(behind):
        return iter(())
    new = new[start : len(new) - len(behind)]
    bare = EditReading(reading.name, old[start:end].split("\n"), new.split("\n"), terminated=False)
    # If there are several lines, the last must be whole: more text on it would be another statement.
    ends = reading.terminated or len(bare.old) > 1
    candidates = text.find_inside(bare, before, behind + "\n" * ends)
    return (_remove_double_indent(text, candidate, before) for candidate in candidates)


def _remove_double_indent(text: IndexedText, candidate: Candidate, before: str) -> Candidate:
    """Remove indentation from the new text that the line has before the place already."""
    first, *rest = candidate.reading.new
    own = text.text[find_line_start(text.text, candidate.span.start) : candidate.span.start]
    if not extract_indent(first) or own.strip() or own == before:
        return candidate
    if own != before + extract_indent(first):
        raise RefusedError(candidate.span, "{new} begins at an indentation that neither {old} nor the file has there")
    return candidate.with_texts(candidate.reading.old, [first.lstrip(), *rest])


def _choose(text: IndexedText, candidates: Iterable[Candidate], length: int, *, every: bool) -> FuzzyMatch | None:
    most = max(2, min(_MAX_REPLACED_PLACES if every else MAX_COUNTED_PLACES, _MAX_COMPARED_CHARS // (length + 1)))
    found = list(islice(candidates, most + 1))
    if not found:
        return None
    least = min(candidate.tolerance for candidate in found)
    if least > Tolerance.LINE_ENDS and not any(map(_WORD.search, found[0].reading.old)):
        return None  # brackets alone say nothing about a place
    name = found[0].reading.name or _STRATEGIES[least]
    if len(found) > most:
        return _report_places(name, found, all_of_them=False)
    best = [candidate for candidate in found if candidate.tolerance == least]
    if every:
        best = list(_select_separate(best))
    elif least > Tolerance.LINE_ENDS and len(found) > 1:
        # Indentation, a blank line or a space: any of them may be wrong.
        return _report_places(name, found)
    elif len(best) > 1:
        return _report_places(name, best)
    rewrites = [_rewrite(text, candidate) for candidate in best]
    return FuzzyMatch(_name_strategy(best[0], rewrites[0][0]), [place for _, place in rewrites])


def _report_places(strategy: str, candidates: Iterable[Candidate], *, all_of_them: bool = True) -> FuzzyMatch:
    return FuzzyMatch(strategy, [MatchPlace(candidate.span) for candidate in candidates], all_of_them)


def _select_separate(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    end = -1
    for candidate in candidates:
        if candidate.span.start >= end:
            yield candidate
            end = candidate.span.end


def _name_strategy(candidate: Candidate, rewrite: Rewrite) -> str:
    if candidate.reading.name:
        return candidate.reading.name
    if candidate.tolerance is Tolerance.BOTH_SIDES and rewrite.indentation.regular:
        return "indentation-flexible"
    return _STRATEGIES[candidate.tolerance]


def _rewrite(text: IndexedText, candidate: Candidate) -> tuple[Rewrite, MatchPlace]:
    try:
        rewrite = Rewrite(candidate, text.lines)
        replacements = rewrite.list_replacements()
        refuse_applied_edit(text.text, candidate, replacements)
    except UnsafeError as error:
        raise RefusedError(candidate.span, str(error)) from None
    return rewrite, MatchPlace(candidate.span, replacements)


def _find_inexact(text: IndexedText, readings: list[EditReading]) -> FuzzyMatch | None:
    for reading in readings:
        if found := _match_elided(text, reading):
            return found
    several = [reading for reading in readings if len(reading.old) > 1]  # a single line that changes is no context
    loose = IndexedText(text.text, loosen_punctuation) if several else text
    for reading in several:
        if found := _match_loosely(loose, reading):
            return found
    for reading in readings:
        if candidate := find_near_candidate(text, reading):
            rewrite, place = _rewrite(text, candidate)
            if rewrite.removes_other_words and not rewrite.is_anchored:
                raise RefusedError(place.span, "a line that changes has other words, and is the first or the last one")
            return FuzzyMatch("block-anchor" if rewrite.removes_other_words else "context-aware", [place])
    return None


def _match_elided(text: IndexedText, reading: EditReading) -> FuzzyMatch | None:
    parts = find_elided_parts(text, reading)
    for candidates in parts:
        if len(candidates) > 1:
            return _report_places("elision", candidates)
    if not parts:
        return None
    places = [_rewrite(text, candidates[0])[1] for candidates in parts]
    span = Span(places[0].span.start, places[-1].span.end)
    return FuzzyMatch("elision", [MatchPlace(span, [made for place in places for made in place.replacements])])


def _match_loosely(text: IndexedText, reading: EditReading) -> FuzzyMatch | None:
    """Find the only place whose unchanged lines differ in quotes, or in a comma at their end."""
    candidates = list(islice(text.find_lines(reading, Tolerance.TOKENS), 2))
    if len(candidates) != 1 or not any(map(_WORD.search, reading.old)):
        return None
    [candidate] = candidates
    pairs = ((reading.old[i], candidate.lines[j]) for i, j in candidate.own_lines.items())
    if not all(_split_loosely(old) == _split_loosely(own) for old, own in pairs):
        return None
    rewrite, place = _rewrite(text, candidate)
    return FuzzyMatch("context-aware", [place]) if rewrite.keeps_other_words else None


def _split_loosely(line: str) -> list[str]:
    return split_plain_words(line.rstrip().removesuffix(",").replace("'", '"'))
