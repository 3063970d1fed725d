"""The strategies that find an edit's text, strictest first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from handrail.edit.fuzzy.apply import Patch, refuse_applied_edit
from handrail.edit.fuzzy.candidates import Candidate, Edges, IndexedText, RefusedError, Tolerance, UnsafeError
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
from handrail.edit.lines import MAX_COUNTED_PLACES, Replacement, Span, find_line_start
from handrail.edit.omission_grammar import is_mark

# § [edit.ladder.strategies] The names of the strategies, in the order they are tried, and what each forgives.

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
"""Those behind `exact`, which forgives nothing."""

NAMES = {
    Tolerance.NOTHING: "trimmed-boundary",
    Tolerance.LINE_ENDS: "line-trimmed",
    Tolerance.BOTH_SIDES: "line-trimmed",
    Tolerance.BOUNDARY: "trimmed-boundary",
    Tolerance.WHITE_SPACE: "whitespace-normalised",
    Tolerance.TYPOGRAPHY: "typography",
}
"""What a place that needs so much forgiven was found by; one that is only moved is indentation-flexible.

Lines that need nothing forgiven were not found as they are because of the newline behind the last of them.
"""


# § [edit.ladder.presence] Whether it is worth looking for lines in a text at all.

_MAX_SCANNED_CHARS = 200_000_000
"""Characters that are searched at most."""
_UNSEEN = [odd for odd, plain in PLAIN_CHARACTERS.items() if not plain]


def may_be_in(text: str, old: Sequence[str]) -> bool:
    """False where so many words are not in the text that no strategy would find the lines."""
    if not text.isascii() and any(unseen in text for unseen in _UNSEEN):
        return True  # words may be cut by what nobody sees
    full = [line for line in old if line.strip() and not is_mark(line)]
    said = (re.findall(r"\w+", line) for line in full)
    longest = sorted((max(words, key=len) for words in said if words), key=len, reverse=True)
    left = count_tolerated_lines(len(full))
    for word in longest[: max(2, _MAX_SCANNED_CHARS // (len(text) + 1))]:
        left -= word not in text
        if left < 0:
            return False
    return True


# § [edit.ladder.climb] The ladder: strategies that find what an oldText means, the safest first.  A strategy is
# § used only where those before it found nothing, and its place must be the only one. The first compares
# § characters; those behind it compare lines, and forgive first white space, then how the text was sent, then
# § words.

_WORD = re.compile(r"\w")
_MAX_COMPARED_LINES = 20_000
"""Lines of a text above which only its characters are compared."""
_MAX_REPLACED_PLACES = 10_000
"""Places that are replaced at once, where each has to be looked at line by line."""
_MAX_COMPARED_CHARS = 2_000_000
"""Characters that are compared for one strategy."""


class MatchPlace(msgspec.Struct, frozen=True):
    """A place, and what is replaced in it: several parts, as lines that stay are not touched."""

    span: Span
    replacements: list[Replacement]


class FuzzyMatch(msgspec.Struct, frozen=True):
    """What a strategy found."""

    strategy: str
    places: list[MatchPlace]
    all_of_them: bool = True


def find_match(text: str, old: str, new: str, *, every: bool = False) -> FuzzyMatch | None:
    """What the first strategy behind the exact one finds that finds anything: more than one place where it is not
    clear which is meant. RefusedError where the only place, or one of `every`, cannot be patched."""
    if old.count("\n") > _MAX_COMPARED_LINES or new.count("\n") > _MAX_COMPARED_LINES:
        return None
    ways = [reading for reading in list_readings(old, new) if _may_be_meant(text, reading)]
    if not ways:
        return None
    page = IndexedText(text)
    for reading in ways:
        for fits in (_whole_or_inside(page, reading), _inside(page, reading)):
            found = _found(page, fits, len(old), every=every)
            if found is not None:
                return found
    return None if every else _tolerant(page, ways)


def _may_be_meant(text: str, reading: EditReading) -> bool:
    """Whether it is worth looking for a reading. Code fences may be the text's own."""
    if reading.name == "code-fences" and any(fence in text for fence in FENCES):
        return False
    return may_be_in(text, reading.old)


def _whole_or_inside(page: IndexedText, reading: EditReading) -> Iterator[Candidate]:
    """Whole lines; of a text that may be a part of a line, all its places where some are within lines."""
    whole = _where_stated(page, reading)
    if len(reading.old) > 1 or reading.terminated or reading.name == "line-numbers":
        return whole
    fits = list(islice(whole, _MAX_REPLACED_PLACES + 1))
    inside = list(islice(_inside(page, reading), _MAX_REPLACED_PLACES + 1)) if fits else []
    return iter(inside if len(inside) > len(fits) else fits)


def _where_stated(
    page: IndexedText, reading: EditReading, most: Tolerance = Tolerance.TYPOGRAPHY
) -> Iterator[Candidate]:
    """Places of whole lines, in the line that they state if they do."""
    for fit in page.fits(reading, most):
        if reading.stated in {None, page.line_of(fit.span.start) + 1}:
            yield fit


def _inside(page: IndexedText, reading: EditReading) -> Iterator[Candidate]:
    """Places within lines, without the white space around the texts; both must have the same."""
    old, new = "\n".join(reading.old), "\n".join(reading.new)
    start, end = len(old) - len(old.lstrip()), len(old.rstrip())
    before, behind = old[:start], old[end:]
    if start >= end or reading.name == "line-numbers" or not new.startswith(before) or not new.endswith(behind):
        return iter(())
    new = new[start : len(new) - len(behind)]
    bare = EditReading(reading.name, old[start:end].split("\n"), new.split("\n"), terminated=False)
    # Of several lines the last is a whole one: what goes on behind it would be another statement.
    ends = reading.terminated or len(bare.old) > 1
    return (_indented_once(page, fit, before) for fit in page.fits_inside(bare, Edges(before, behind + "\n" * ends)))


def _indented_once(page: IndexedText, fit: Candidate, before: str) -> Candidate:
    """The fit without white space that newText begins with and that the line has before the place already."""
    first, *rest = fit.reading.new
    own = page.text[find_line_start(page.text, fit.span.start) : fit.span.start]
    if not extract_indent(first) or own.strip() or own == before:
        return fit
    if own != before + extract_indent(first):
        raise RefusedError(fit.span, "{new} begins at an indentation that neither {old} nor the file has there")
    return msgspec.structs.replace(fit, reading=fit.reading._replace(new=[first.lstrip(), *rest]))


def _found(page: IndexedText, fits: Iterable[Candidate], length: int, *, every: bool) -> FuzzyMatch | None:
    most = max(2, min(_MAX_REPLACED_PLACES if every else MAX_COUNTED_PLACES, _MAX_COMPARED_CHARS // (length + 1)))
    seen = list(islice(fits, most + 1))
    if not seen:
        return None
    least = min(fit.tolerance for fit in seen)
    if least > Tolerance.LINE_ENDS and not any(map(_WORD.search, seen[0].reading.old)):
        return None  # brackets alone say nothing about a place
    name = seen[0].reading.name or NAMES[least]
    if len(seen) > most:
        return FuzzyMatch(name, [MatchPlace(fit.span, []) for fit in seen], all_of_them=False)
    best = [fit for fit in seen if fit.tolerance == least]
    if every:
        best = list(_separate(best))
    elif least > Tolerance.LINE_ENDS and len(seen) > 1:
        # Whether indentation, a blank line or a space is more likely to be wrong, nobody can tell.
        return FuzzyMatch(name, [MatchPlace(fit.span, []) for fit in seen])
    elif len(best) > 1:
        return FuzzyMatch(name, [MatchPlace(fit.span, []) for fit in best])
    made = [_patched(page, fit) for fit in best]
    return FuzzyMatch(_name(best[0], made[0][0]), [place for _, place in made])


def _separate(fits: Iterable[Candidate]) -> Iterator[Candidate]:
    end = -1
    for fit in fits:
        if fit.span.start >= end:
            yield fit
            end = fit.span.end


def _name(fit: Candidate, patch: Patch) -> str:
    if fit.reading.name:
        return fit.reading.name
    if fit.tolerance is Tolerance.BOTH_SIDES and patch.indentation.regular:
        return "indentation-flexible"
    return NAMES[fit.tolerance]


def _patched(page: IndexedText, fit: Candidate) -> tuple[Patch, MatchPlace]:
    try:
        patch = Patch(fit, page.lines)
        replacements = patch.replacements()
        refuse_applied_edit(page.text, fit, replacements)
    except UnsafeError as error:
        raise RefusedError(fit.span, str(error)) from None
    return patch, MatchPlace(fit.span, replacements)


def _tolerant(page: IndexedText, ways: list[EditReading]) -> FuzzyMatch | None:
    for reading in ways:
        found = _elided(page, reading)
        if found is not None:
            return found
    several = [reading for reading in ways if len(reading.old) > 1]  # one line that changes is none that stays
    loose = IndexedText(page.text, loosen_punctuation) if several else page
    for reading in several:
        found = _loosely(loose, reading)
        if found is not None:
            return found
    for reading in ways:
        fit = find_near_candidate(page, reading)
        if fit is not None:
            patch, place = _patched(page, fit)
            if patch.removes_other_words and not patch.is_anchored:
                raise RefusedError(place.span, "a line that changes has other words, and is the first or the last one")
            return FuzzyMatch("block-anchor" if patch.removes_other_words else "context-aware", [place])
    return None


def _loosely(page: IndexedText, reading: EditReading) -> FuzzyMatch | None:
    """The only place where lines that stay have other quotes, or a comma at their end more or less."""
    fits = list(islice(_where_stated(page, reading, Tolerance.TOKENS), 2))
    if len(fits) != 1 or not any(map(_WORD.search, reading.old)) or not _says_the_same(fits[0]):
        return None
    patch, place = _patched(page, fits[0])
    return FuzzyMatch("context-aware", [place]) if patch.keeps_other_words else None


def _says_the_same(fit: Candidate) -> bool:
    pairs = ((fit.reading.old[i], fit.lines[j]) for i, j in fit.pairs if i is not None and j is not None)
    return all(_loose_words(one) == _loose_words(other) for one, other in pairs)


def _loose_words(line: str) -> list[str]:
    return split_plain_words(line.rstrip().removesuffix(",").replace("'", '"'))


def _elided(page: IndexedText, reading: EditReading) -> FuzzyMatch | None:
    parts = find_elided_parts(page, reading)
    for fits in parts:
        if len(fits) > 1:
            return FuzzyMatch("elision", [MatchPlace(fit.span, []) for fit in fits])
    if not parts:
        return None
    places = [_patched(page, fits[0])[1] for fits in parts]
    span = Span(places[0].span.start, places[-1].span.end)
    return FuzzyMatch("elision", [MatchPlace(span, [made for place in places for made in place.replacements])])
