"""Places that say nearly the same: one line of several has a newer word, or there is a new line between them.

Such a place is only taken where nothing else in the text comes near it, and where every line that differs is still
recognisable. Whether the edit can then be made without a guess is for the patch to say.
"""

from collections import Counter
from collections.abc import Container, Sequence
from itertools import pairwise

from handrail.edit.ladder.alike import is_line_variant
from handrail.edit.ladder.fitting import Candidate, Pair, Tolerance, pair_blank_lines
from handrail.edit.ladder.page import IndexedText, list_full_lines
from handrail.edit.ladder.reading import EditReading
from handrail.edit.ladder.sequences import pair_equal_items
from handrail.edit.ladder.typography import squash_spaces

_MIN_WANTED_LINES, _MAX_WANTED_LINES = 4, 2_000
"""Lines that are not blank, of the text that is looked for."""
_MORE_LINES = 6
"""The same where lines went, or came in beside a change."""
_MAX_LINE_PLACES = 50
"""Places of a line above which it does not tell where the others are."""
_MAX_VOTED_OFFSETS = 200
_MIN_COMPARED_PLACES, _COMPARED_LINES = 8, 600
"""Places that are compared, at least; and how many lines, where the texts are short."""
_SLACK_LINES = 3
"""Lines that may have come in between."""
_TWIN = 0.7
"""How well another place may not fit, against the best: then nobody can tell which is meant."""
_MAX_COMPARING_STEPS = 200_000
"""Of comparing one place."""
_MIN_EVIDENCE_CHARS = 30
"""Characters, without white space, that must be as they were."""


def find_near_candidate(page: IndexedText, reading: EditReading) -> Candidate | None:
    """The only place that comes near; None where there is none, or another."""
    full, keys = list_full_lines(reading.old)
    if not _MIN_WANTED_LINES <= len(full) <= _MAX_WANTED_LINES:
        return None
    offsets = _offsets(page.keys, keys)
    if not offsets:
        return None
    agreed = max((_agreed(page.keys, keys, at) for at in offsets), key=lambda each: _weight(keys, each))
    weight, own = _weight(keys, agreed), {j for _, j in agreed}
    twins = (_weight(keys, _agreed(page.keys, keys, at, but=own)) for at in offsets)
    if weight < _MIN_EVIDENCE_CHARS or max(twins) >= _TWIN * weight:
        return None
    pairs = _paired(page, reading, keys, full, agreed)
    return page.fit(reading, pairs, Tolerance.TOKENS) if pairs else None


def count_tolerated_lines(lines: int) -> int:
    """How many of so many lines may be other ones."""
    return 1 + (lines - _MIN_WANTED_LINES) // 8 if lines >= _MIN_WANTED_LINES else 0


def _offsets(there: Sequence[str], keys: Sequence[str]) -> list[int]:
    """Where the first line would be, by where rare ones are; the likeliest first."""
    wanted: dict[str, list[int]] = {key: [] for key in keys}
    for position, key in enumerate(there):
        if key in wanted:
            wanted[key].append(position)
    votes: Counter[int] = Counter()
    for i, key in enumerate(keys):
        if len(wanted[key]) <= _MAX_LINE_PLACES:
            votes.update({position - i: _worth(key) for position in wanted[key]})
    apart: list[int] = []
    for offset, _ in votes.most_common(_MAX_VOTED_OFFSETS):
        if all(abs(offset - other) > _SLACK_LINES for other in apart) and len(apart) < max(
            _MIN_COMPARED_PLACES, _COMPARED_LINES // len(keys)
        ):
            apart.append(offset)
    return apart


def _worth(key: str) -> int:
    """How much it says that a line is there: a bracket says little."""
    return min(len(key), 40) if len(key) > 3 else 1


def _weight(keys: Sequence[str], agreed: Sequence[tuple[int, int]]) -> int:
    return sum(_worth(keys[i]) for i, _ in agreed)


def _agreed(there: Sequence[str], keys: Sequence[str], offset: int, but: Container[int] = ()) -> list[tuple[int, int]]:
    """The lines that are the same around an offset, `but` for some of the text."""
    low = max(0, offset - _SLACK_LINES)
    high = min(len(there), max(0, offset) + len(keys) + _SLACK_LINES)
    window = ["" if number in but else there[number] for number in range(low, high)]
    pairs = pair_equal_items(keys, window, _MAX_COMPARING_STEPS)
    for step, numbers in ((1, range(1, len(pairs))), (-1, range(len(pairs) - 2, -1, -1))):
        for n in numbers:  # of equal lines the one beside the line before, or behind
            i, j = pairs[n - step]
            if pairs[n][0] == i + step and window[j + step] == keys[i + step]:
                pairs[n] = (i + step, j + step)
    return [(i, low + j) for i, j in pairs]


def _is_version(page: IndexedText, wanted: str, number: int, *, is_far: bool) -> bool:
    """Whether a line of the text is a version of one that the text does not have. Far from what changes, its older
    words may be in the text still."""
    if squash_spaces(wanted) in page.said_lines:
        return False
    return is_line_variant(wanted, page.lines[number], lambda word: not is_far and page.has_word(word))


def _linked(reading: EditReading) -> set[int]:
    """The lines of the old text that both texts have, and the next line too; -1 where they begin alike."""
    pairs = {(-1, -1), *pair_equal_items(reading.old, reading.new), (len(reading.old), len(reading.new))}
    return {i for i, k in pairs if (i + 1, k + 1) in pairs}


def _paired(
    page: IndexedText, reading: EditReading, keys: Sequence[str], full: list[int], agreed: list[tuple[int, int]]
) -> list[Pair] | None:
    """All lines beside each other, those that differ too; None where too many do, or one is another line."""
    old, linked = reading.old, _linked(reading)
    first, last = agreed[0], agreed[-1]
    after = len(keys) - 1 - last[0]
    if first[1] < first[0] or last[1] + after >= len(page.keys):
        return None
    steps = [(-1, first[1] - first[0] - 1), *agreed, (len(keys), last[1] + after + 1)]
    pairs: list[tuple[int | None, int | None]] = []
    odd = 0
    fewest = _MIN_WANTED_LINES
    for (a, b), (c, d) in pairwise(steps):
        ours, theirs = range(a + 1, c), range(b + 1, d)
        odd += max(len(ours), len(theirs))
        is_far = linked.issuperset(range(full[a] if a >= 0 else -1, full[c] if c < len(full) else len(old)))
        if len(ours) == len(theirs):
            beside = list(zip(ours, theirs, strict=True))
            if not all(_is_version(page, old[full[i]], page.numbers[j], is_far=is_far) for i, j in beside):
                return None
            pairs += beside
        elif ours and theirs:
            return None
        else:
            fewest = fewest if is_far and not ours else _MORE_LINES
            pairs += [(i, None) for i in ours]
            pairs += [(None, j) for j in theirs]
        if c < len(keys):
            pairs.append((c, d))
    if odd > count_tolerated_lines(len(keys)) or len(keys) < fewest:
        return None
    own = [(None if i is None else full[i], None if j is None else page.numbers[j]) for i, j in pairs]
    return pair_blank_lines(old, page.lines, own)[0]
