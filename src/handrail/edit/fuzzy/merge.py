"""Merges the lines of an edit with those of the file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from handrail.edit.diff import LineChange, SequenceChange, diff_lines, diff_sequences, pair_equal_items
from handrail.edit.fuzzy.candidates import Candidate, Pair, UnsafeError, find_tolerance
from handrail.edit.fuzzy.normalize import (
    EditReading,
    Token,
    extract_indent,
    fold_typography,
    split_plain_words,
    split_tokens,
)

# § [edit.ladder.keeping] Which lines an edit keeps, and what it does to the blank ones, where the file has other
# § blank lines than oldText.

_BLANK = "the file has other blank lines in it than {old}, and {new} does not tell which are to stay"


def list_line_changes(fit: Candidate) -> list[LineChange]:
    """What an edit changes, in lines. A line that is nearly kept is a change of that line alone."""
    old, new = fit.reading.old, fit.reading.new
    changes = list(_changes(old, _in_old_words(fit)))
    nearly = (LineChange(i, i + 1, k, k + 1) for i, k in _kept(old, new, changes).items() if old[i] != new[k])
    return sorted((*changes, *nearly))


def settle_blank_lines(fit: Candidate) -> Candidate:
    """The same with the blank lines that the file has: those around the old text as far as both have them, those
    within it as the file has them. UnsafeError where nobody can tell whether one of them is to stay."""
    fit = _without_edges(fit)
    if all((i is None) == (j is None) or _says(fit, i, j) for i, j in fit.pairs):
        return fit
    changes = list(_changes(fit.reading.old, _in_old_words(fit)))
    kept = _kept(fit.reading.old, fit.reading.new, changes)
    for before, after, there in _gaps(fit):
        if before in kept or after in kept:
            _check(fit.reading, kept, before, after, there)
        else:
            _check_gone(fit, changes, before)
    return _as_in_file(fit)


def _says(fit: Candidate, i: int | None, j: int | None) -> bool:
    """Whether a line that only one of the two has is not blank."""
    return bool((fit.reading.old[i] if i is not None else fit.lines[j or 0]).strip())


def _without_edges(fit: Candidate) -> Candidate:
    """Without the blank lines at either end that the file does not have; the new text loses them too."""
    there = [n for n, (_, j) in enumerate(fit.pairs) if j is not None]
    head, tail = there[0], len(fit.pairs) - 1 - there[-1]
    if not head and not tail:
        return fit
    new = _edge(fit.reading.old, fit.reading.new, head)
    new = _edge(fit.reading.old[::-1], new[::-1], tail)[::-1]
    old = fit.reading.old[head : len(fit.reading.old) - tail]
    pairs: list[Pair] = [(None if i is None else i - head, j) for i, j in fit.pairs[head : len(fit.pairs) - tail]]
    return _changed(fit, old, new, pairs)


def _edge(old: list[str], new: list[str], missing: int) -> list[str]:
    """The new text without as many blank lines at its start as the file lacks of the old one's. Where it has just as
    many as the file, it says so if the line behind them stays; else nobody can tell."""
    if not missing or _blank(new) != _blank(old) - missing:
        return _without_blank(new, missing)
    if _blank(new) and new[_blank(new) :][:1] != old[_blank(old) :][:1]:
        raise UnsafeError(_BLANK)
    return new


def _without_blank(lines: list[str], most: int) -> list[str]:
    count = 0
    while count < min(most, len(lines)) and not lines[count].strip():
        count += 1
    return lines[count:]


def _gaps(fit: Candidate) -> Iterator[tuple[int, int, int]]:
    """Where blank lines differ: the lines of the old text around them, and how many the file has."""
    full = [n for n, (i, j) in enumerate(fit.pairs) if _says(fit, i, j) and i is not None]
    for one, other in pairwise(full):
        between = fit.pairs[one + 1 : other]
        if any((i is None) != (j is None) and not _says(fit, i, j) for i, j in between):
            there = sum(j is not None for i, j in between if not _says(fit, i, j))
            yield fit.pairs[one][0] or 0, fit.pairs[other][0] or 0, there


def _check(reading: EditReading, kept: Mapping[int, int], before: int, after: int, there: int) -> None:
    """Whether the new text has as many blank lines there as the file: then it says what is to be there."""
    low, high = kept.get(before), kept.get(after)
    below = len(reading.new) if low is None else _blank(reading.new[low + 1 :])
    above = len(reading.new) if high is None else _blank(reading.new[:high][::-1])
    if there not in {below, above}:
        raise UnsafeError(_BLANK)


def _check_gone(fit: Candidate, changes: Sequence[LineChange], before: int) -> None:
    """Whether what comes in the place of lines that go has as many blank lines as those have in the file."""
    a, b, c, d = next(change for change in changes if change.a <= before < change.b)
    inner = [n for n, (i, _) in enumerate(fit.pairs) if i is not None and a <= i < b]
    there = [j for _, j in fit.pairs[inner[0] : inner[-1] + 1] if j is not None]
    blank = sum(not fit.lines[j].strip() for j in there)
    if blank != sum(not line.strip() for line in fit.reading.new[c:d]):
        raise UnsafeError(_BLANK)


def _as_in_file(fit: Candidate) -> Candidate:
    old: list[str] = []
    pairs: list[Pair] = []
    for i, j in fit.pairs:
        if _says(fit, i, j) or j is not None:
            text = fit.reading.old[i] if i is not None else fit.lines[j or 0]
            alone = i is None and _says(fit, i, j)
            pairs.append((None if alone else len(old), j))
            old += [] if alone else [text]
    return _changed(fit, old, fit.reading.new, pairs)


def _changed(fit: Candidate, old: list[str], new: list[str], pairs: list[Pair]) -> Candidate:
    reading = fit.reading._replace(old=old, new=new)
    return Candidate(reading, fit.span, fit.lines, pairs, fit.tolerance, fit.inside_line)


def _in_old_words(fit: Candidate) -> list[str]:
    """The new lines, in the words of old ones that say the same and are not quite as the file has them."""
    old = fit.reading.old
    kept = set(old)
    said: dict[tuple[str, ...], str] = {}
    for i, j in fit.pairs:
        if i is not None and j is not None and (find_tolerance(old[i], fit.lines[j]) or not old[i].strip()):
            said.setdefault(_said(old[i]), old[i])
    return [line if line in kept else said.get(_said(line), line) for line in fit.reading.new]


def _said(line: str) -> tuple[str, ...]:
    """What a line says, and where it begins; blank ones are all the same."""
    return (extract_indent(line), *split_plain_words(line)) if line.strip() else ()


def _changes(old: list[str], new: list[str]) -> Iterator[LineChange]:
    """What changes. Where lines come in before equal ones, they come in as far down as possible."""
    for a, b, c, d in diff_lines(old, new):
        down = 0
        while a == b and old[a + down : a + down + 1] == new[c + down : c + down + 1] == new[d + down : d + down + 1]:
            down += 1
        yield LineChange(a + down, b + down, c + down, d + down)


def _kept(old: Sequence[str], new: Sequence[str], changes: Sequence[LineChange]) -> dict[int, int]:
    """The lines that do not change, and where they are in the new text."""
    kept: dict[int, int] = {}
    i = k = 0
    for a, b, c, d in (*changes, LineChange(len(old), len(old), len(new), len(new))):
        kept |= zip(range(i, a), range(k, c), strict=True)
        i, k = b, d
    return kept


def _blank(lines: Sequence[str]) -> int:
    """With how many blank lines they begin."""
    return next((count for count, line in enumerate(lines) if line.strip()), len(lines))


# § [edit.ladder.merging_lines] One line, changed twice: by the file since, and by the edit. Both changes are kept,
# § where they do not meet.

_CLOSING = {'"', "'", "`", "]"}
"""Signs before which white space is more than a habit: it may be what a text or a box holds."""


def merge_line(old: str, own: str, new: str) -> str | None:
    """The file's `own` line with what changes from `old` to `new`; None where both changed the same words differently.

    White space and the look of characters are the file's wherever the edit leaves them as they are in `old`.
    """
    one, there, other = split_tokens(old), split_tokens(own), split_tokens(new)
    ours, theirs = diff_sequences(_texts(one), _texts(other)), diff_sequences(_texts(one), _texts(there))
    if any(_meets(change, each) for change in ours for each in theirs):
        return None
    place = _places(one, theirs)
    there = _with_touched(one, there, other, ours, place)
    parts: list[str] = []
    at = since = 0
    beside = False
    for change in (*ours, SequenceChange(len(one), len(one), len(other), len(other))):
        parts += _keep_tokens(one, there, other, place, range(at, change.a), since - at, beside=beside)
        beside = change.a == change.b or change.c == change.d
        parts += _come(one, there, other, place, change)
        at, since = change.b, change.d
    return "".join(parts)


def has_only_renames(old: str, own: str) -> bool:
    """Whether the file's line has other words in the places of old ones, and none more or fewer."""
    return all(b - a == d - c for a, b, c, d in diff_sequences(_texts(split_tokens(old)), _texts(split_tokens(own))))


def has_file_words(old: str, own: str, new: str) -> bool:
    """Whether the new line has the file's own words wherever the old one has others: then it was made of the file's."""
    one, there, other = _texts(split_tokens(old)), _texts(split_tokens(own)), _texts(split_tokens(new))
    of_old, of_own = ({i for i, _ in pair_equal_items(each, other)} for each in (one, there))
    return all(
        of_own.issuperset(range(c, d)) and of_old.isdisjoint(range(a, b)) for a, b, c, d in diff_sequences(one, there)
    )


def _texts(line: Sequence[Token]) -> list[str]:
    return [fold_typography(token.text) for token in line]


def _meets(one: SequenceChange, other: SequenceChange) -> bool:
    """Whether two changes are about the same words, or touch: then nobody can tell how they go together."""
    return one.a <= other.b and other.a <= one.b


def _places(one: Sequence[Token], changes: Sequence[SequenceChange]) -> list[tuple[int, int]]:
    """For each token, which ones stand for it in the file: those that came in before it are with it."""
    found: list[tuple[int, int]] = []
    at = since = 0
    for a, b, c, d in (*changes, SequenceChange(len(one), len(one), -1, -1)):
        found += [(since + n, since + n + 1) for n in range(a - at)]
        if b > a:  # all of what stands there now stands for the first of them
            found += [(c, d), *[(d, d)] * (b - a - 1)]
        elif c >= 0 and a < len(one):
            found.append((c, d + 1))
            at, since = a + 1, d + 1
            continue
        at, since = b, d
    return found


def _with_touched(
    one: Sequence[Token],
    there: Sequence[Token],
    other: Sequence[Token],
    ours: Sequence[SequenceChange],
    place: Sequence[tuple[int, int]],
) -> Sequence[Token]:
    """The file's tokens, with the new line's own signs where others come in right beside them: `—` and `->`."""
    own = list(there)
    for a, b, c, d in ours:
        for n, k, come, space in ((a - 1, c - 1, c, c), (b, d, d - 1, d)):
            if c < d and 0 <= n < len(one) and not other[space].space and _is_joined(one[n].text, other[come].text):
                at = place[n][1] - 1
                own[at] = own[at]._replace(text=other[k].text)
    return own


def _is_joined(sign: str, come: str) -> bool:
    """Whether two signs make one. Within quotes anything may stand."""
    return fold_typography(sign) == fold_typography(come) or (
        fold_typography(sign) == "-" and re.match(r"\W", come) is not None
    )


def _come(
    one: Sequence[Token],
    there: Sequence[Token],
    other: Sequence[Token],
    place: Sequence[tuple[int, int]],
    change: SequenceChange,
) -> Iterator[str]:
    """Tokens that come in. One that takes the place of another takes the white space before it too."""
    a, b, c, d = change
    for k in range(c, d):
        takes = k == c and b > a and other[k].space == one[a].space
        yield (there[place[a][0]].space if takes else other[k].space) + other[k].text


def _keep_tokens(
    one: Sequence[Token],
    there: Sequence[Token],
    other: Sequence[Token],
    place: Sequence[tuple[int, int]],
    kept: range,
    offset: int,
    *,
    beside: bool,
) -> Iterator[str]:
    """Tokens as the file has them; their white space too, unless the edit changes it, or what is before the first."""
    for n in kept:
        first, last = place[n]
        for k in range(first, last):
            same = k > first or (
                other[n + offset].space == one[n].space and not (beside and n == kept[0] and one[n].text in _CLOSING)
            )
            yield (there[k].space if same else other[n + offset].space) + there[k].text
