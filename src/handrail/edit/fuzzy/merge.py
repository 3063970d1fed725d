"""Merges the lines of an edit with those of the file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from handrail.edit.diff import LineChange, diff_lines, diff_sequences, pair_equal_items, pair_unchanged
from handrail.edit.fuzzy.candidates import Candidate, Pair, UnsafeError, find_tolerance
from handrail.edit.fuzzy.normalize import (
    EditReading,
    Token,
    extract_indent,
    fold_typography,
    split_plain_words,
    split_tokens,
)

_Tokens = list[Token]
_Changes = list[LineChange]
_UNCLEAR_BLANKS = "the file has other blank lines than {old}, and {new} does not show which lines stay"
_CLOSING_SIGNS = {'"', "'", "`", "]"}
"""White space before these may be content, such as that of a string."""


def list_line_changes(candidate: Candidate) -> list[LineChange]:
    """Compare the lines of the two texts. A line that is nearly kept is a change of that line alone."""
    old, new = candidate.reading.old, candidate.reading.new
    changes = list(_diff_downwards(old, _use_old_spelling(candidate)))
    kept = dict(pair_unchanged(len(old), len(new), changes))
    nearly = (LineChange(i, i + 1, k, k + 1) for i, k in kept.items() if old[i] != new[k])
    return sorted((*changes, *nearly))


def settle_blank_lines(candidate: Candidate) -> Candidate:
    """Give the old text the file's blank lines. UnsafeError if it is unclear whether one of them is to stay."""
    candidate = _trim_missing_edges(candidate)
    if all((i is None) == (j is None) or _is_full(candidate, i, j) for i, j in candidate.pairs):
        return candidate
    old, new = candidate.reading.old, candidate.reading.new
    changes = list(_diff_downwards(old, _use_old_spelling(candidate)))
    kept = dict(pair_unchanged(len(old), len(new), changes))
    for before, after, count in _list_gaps(candidate):
        if before in kept or after in kept:
            _check_kept_gap(candidate.reading, kept, before, after, count)
        else:
            _check_removed_gap(candidate, changes, before)
    return _copy_file_blanks(candidate)


def merge_line(old: str, own: str, new: str) -> str | None:
    """Apply the change from `old` to `new` to the file's `own` line. None if both changed the same words."""
    old_tokens, own_tokens, new_tokens = split_tokens(old), split_tokens(own), split_tokens(new)
    ours, theirs = _diff_tokens(old_tokens, new_tokens), _diff_tokens(old_tokens, own_tokens)
    if any(one.a <= other.b and other.a <= one.b for one in ours for other in theirs):
        return None
    return "".join(_LineMerge(old_tokens, own_tokens, new_tokens, ours, theirs).parts())


def has_only_renames(old: str, own: str) -> bool:
    """Whether the file's line has other words in place of old ones, and none more or fewer."""
    return all(b - a == d - c for a, b, c, d in _diff_tokens(split_tokens(old), split_tokens(own)))


def has_file_words(old: str, own: str, new: str) -> bool:
    """Whether the new line has the file's words wherever the old line has others: then it was made from the file's."""
    old_words, own_words, new_words = (_list_words(split_tokens(line)) for line in (old, own, new))
    old_shared, own_shared = ({i for i, _ in pair_equal_items(words, new_words)} for words in (old_words, own_words))
    return all(
        own_shared.issuperset(range(c, d)) and old_shared.isdisjoint(range(a, b))
        for a, b, c, d in diff_sequences(old_words, own_words)
    )


def _is_full(candidate: Candidate, i: int | None, j: int | None) -> bool:
    return bool((candidate.reading.old[i] if i is not None else candidate.lines[j or 0]).strip())


def _trim_missing_edges(candidate: Candidate) -> Candidate:
    """Remove blank lines at either end of both texts that the file does not have."""
    present = [n for n, (_, j) in enumerate(candidate.pairs) if j is not None]
    head, tail = present[0], len(candidate.pairs) - 1 - present[-1]
    if not head and not tail:
        return candidate
    old = candidate.reading.old
    new = _trim_blank_start(old, candidate.reading.new, head)
    new = _trim_blank_start(old[::-1], new[::-1], tail)[::-1]
    pairs = candidate.pairs[head : len(candidate.pairs) - tail]
    shifted: list[Pair] = [(None if i is None else i - head, j) for i, j in pairs]
    return candidate.with_texts(old[head : len(old) - tail], new, shifted)


def _trim_blank_start(old: list[str], new: list[str], missing: int) -> list[str]:
    """Remove as many blank lines from the start of the new text as the file lacks of the old text's.

    If the new text starts with as many as the file, and the line behind them stays, it has them right.
    """
    blank = _count_leading_blanks(new)
    if not missing or blank != _count_leading_blanks(old) - missing:
        return new[min(missing, blank) :]
    if blank and new[blank:][:1] != old[_count_leading_blanks(old) :][:1]:
        raise UnsafeError(_UNCLEAR_BLANKS)
    return new


def _list_gaps(candidate: Candidate) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of the old text around differing blank lines, and how many of these the file has."""
    full = [n for n, (i, j) in enumerate(candidate.pairs) if _is_full(candidate, i, j) and i is not None]
    for one, other in pairwise(full):
        blank = [(i, j) for i, j in candidate.pairs[one + 1 : other] if not _is_full(candidate, i, j)]
        if any((i is None) != (j is None) for i, j in blank):
            count = sum(j is not None for _, j in blank)
            yield candidate.pairs[one][0] or 0, candidate.pairs[other][0] or 0, count


def _check_kept_gap(reading: EditReading, kept: Mapping[int, int], before: int, after: int, count: int) -> None:
    """Check that the new text has as many blank lines there as the file."""
    low, high = kept.get(before), kept.get(after)
    below = len(reading.new) if low is None else _count_leading_blanks(reading.new[low + 1 :])
    above = len(reading.new) if high is None else _count_leading_blanks(reading.new[:high][::-1])
    if count not in {below, above}:
        raise UnsafeError(_UNCLEAR_BLANKS)


def _check_removed_gap(candidate: Candidate, changes: Sequence[LineChange], before: int) -> None:
    """Check that the new lines have as many blank ones as the lines that they replace have in the file."""
    a, b, c, d = next(change for change in changes if change.a <= before < change.b)
    inner = [n for n, (i, _) in enumerate(candidate.pairs) if i is not None and a <= i < b]
    own = [j for _, j in candidate.pairs[inner[0] : inner[-1] + 1] if j is not None]
    blank = sum(not candidate.lines[j].strip() for j in own)
    if blank != sum(not line.strip() for line in candidate.reading.new[c:d]):
        raise UnsafeError(_UNCLEAR_BLANKS)


def _copy_file_blanks(candidate: Candidate) -> Candidate:
    old: list[str] = []
    pairs: list[Pair] = []
    for i, j in candidate.pairs:
        is_full = _is_full(candidate, i, j)
        if i is None and is_full:
            pairs.append((None, j))
        elif is_full or j is not None:
            pairs.append((len(old), j))
            old.append(candidate.reading.old[i] if i is not None else candidate.lines[j or 0])
    return candidate.with_texts(old, candidate.reading.new, pairs)


def _use_old_spelling(candidate: Candidate) -> list[str]:
    """Return the new lines, spelled like old lines with the same words if the file spells those differently."""
    old = candidate.reading.old
    spelled: dict[tuple[str, ...], str] = {}
    for i, j in candidate.own_lines.items():
        if find_tolerance(old[i], candidate.lines[j]) or not old[i].strip():
            spelled.setdefault(_build_key(old[i]), old[i])
    known = set(old)
    return [line if line in known else spelled.get(_build_key(line), line) for line in candidate.reading.new]


def _build_key(line: str) -> tuple[str, ...]:
    """Return the indentation and words of a line. Blank lines are all the same."""
    return (extract_indent(line), *split_plain_words(line)) if line.strip() else ()


def _diff_downwards(old: list[str], new: list[str]) -> Iterator[LineChange]:
    """Compare lines. Insertions before equal lines move down as far as possible."""
    for a, b, c, d in diff_lines(old, new):
        down = 0
        while a == b and old[a + down : a + down + 1] == new[c + down : c + down + 1] == new[d + down : d + down + 1]:
            down += 1
        yield LineChange(a + down, b + down, c + down, d + down)


def _count_leading_blanks(lines: Sequence[str]) -> int:
    return next((count for count, line in enumerate(lines) if line.strip()), len(lines))


def _list_words(line: _Tokens) -> list[str]:
    return [fold_typography(token.text) for token in line]


def _diff_tokens(one: _Tokens, other: _Tokens) -> _Changes:
    return diff_sequences(_list_words(one), _list_words(other))


class _LineMerge:
    """A three-way merge of one line, in tokens: `ours` are the changes of the edit, `theirs` those of the file.

    White space and typography are the file's wherever the edit leaves those of the old line.
    """

    def __init__(self, old: _Tokens, own: _Tokens, new: _Tokens, ours: _Changes, theirs: _Changes) -> None:
        self._old, self._new, self._ours = old, new, ours
        self._places = _map_tokens(len(old), theirs)
        self._own = list(own)
        self._use_new_signs()

    def parts(self) -> Iterator[str]:
        at = new_at = 0
        is_beside = False
        for change in (*self._ours, LineChange(len(self._old), len(self._old), len(self._new), len(self._new))):
            yield from self._keep(range(at, change.a), new_at - at, is_beside=is_beside)
            is_beside = change.a == change.b or change.c == change.d
            yield from self._add(change)
            at, new_at = change.b, change.d

    def _use_new_signs(self) -> None:
        """Use the new line's sign if the edit adds another sign to it, as in `—` and `->`."""
        for a, b, c, d in self._ours:
            for n, k, added, space in ((a - 1, c - 1, c, c), (b, d, d - 1, d)):
                if not (c < d and 0 <= n < len(self._old)) or self._new[space].space:
                    continue
                if _is_joined(self._old[n].text, self._new[added].text):
                    at = self._places[n][1] - 1
                    self._own[at] = self._own[at]._replace(text=self._new[k].text)

    def _add(self, change: LineChange) -> Iterator[str]:
        """Yield added tokens. One that replaces another keeps the file's white space before it."""
        a, b, c, d = change
        for k in range(c, d):
            replaces = k == c and b > a and self._new[k].space == self._old[a].space
            space = self._own[self._places[a][0]].space if replaces else self._new[k].space
            yield space + self._new[k].text

    def _keep(self, kept: range, offset: int, *, is_beside: bool) -> Iterator[str]:
        """Yield unchanged tokens as the file has them, with its white space unless the edit changes that."""
        for n in kept:
            first, last = self._places[n]
            old, new = self._old[n], self._new[n + offset]
            may_be_content = is_beside and n == kept[0] and old.text in _CLOSING_SIGNS
            for k in range(first, last):
                is_own = k > first or (new.space == old.space and not may_be_content)
                yield (self._own[k].space if is_own else new.space) + self._own[k].text


def _map_tokens(count: int, changes: Sequence[LineChange]) -> list[tuple[int, int]]:
    """Return the range of the file's tokens for each old token. Added ones belong to the token behind them."""
    places: list[tuple[int, int]] = []
    at = own_at = 0
    for a, b, c, d in (*changes, LineChange(count, count, -1, -1)):
        places += [(own_at + n, own_at + n + 1) for n in range(a - at)]
        if b > a:  # the first old token stands for all that replace them
            places += [(c, d), *[(d, d)] * (b - a - 1)]
        elif c >= 0 and a < count:
            places.append((c, d + 1))
            at, own_at = a + 1, d + 1
            continue
        at, own_at = b, d
    return places


def _is_joined(sign: str, added: str) -> bool:
    """Whether two signs make one. Within quotes anything may stand."""
    sign = fold_typography(sign)
    return sign == fold_typography(added) or (sign == "-" and re.match(r"\W", added) is not None)
