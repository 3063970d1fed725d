"""Candidates whose words differ, or that leave lines out."""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from itertools import islice, pairwise

from handrail.edit.diff import diff_sequences, pair_equal_items
from handrail.edit.fuzzy.candidates import Candidate, IndexedText, Pair, Tolerance, list_full_lines, pair_blank_lines
from handrail.edit.fuzzy.normalize import EditReading, extract_indent, split_plain_words, squash_spaces
from handrail.edit.omission_grammar import is_mark

# § [edit.ladder.alike] Whether two lines are versions of one: the same words but for a name in another form, or
# § some that came or went.

_OTHER = 0.4
"""How much of a line may be other words."""
_MAX_EXTRA_CHARS = 5
"""Characters that one form of a name may have more than another."""
_TURNING = {
    "!",
    "-",
    "\\",
    "not",
    "no",
    "await",
    "async",
    "static",
    "const",
    "mut",
    "unsafe",
    "never",
    "is",
    "true",
    "false",
}
"""Words that turn a line into another one that differs in nothing else: a twin, not an older version."""
_DEFINING = {
    "class", "def", "defmodule", "enum", "fn", "func", "function", "impl", "interface", "macro", "mod", "module",
    "namespace", "object", "package", "proc", "record", "struct", "sub", "trait", "type", "union",
}  # fmt: skip
"""Words before the name of what a place is: by that name it is told from its twins."""


def is_line_variant(one: str, other: str, is_said: Callable[[str], bool]) -> bool:
    """Whether two lines are versions of one. A word that the text still has somewhere is not an older one."""
    ours, theirs = split_plain_words(one), split_plain_words(other)
    changed = 0
    for a, b, c, d in diff_sequences(ours, theirs):
        gone, come = ours[a:b], theirs[c:d]
        if gone and come:
            defines = a > 0 and ours[a - 1] in _DEFINING
            if defines or len(gone) != len(come) or not all(map(is_name_variant, gone, come)):
                return False
            if any(map(is_said, gone)):
                return False
        elif _TURNING.intersection(gone + come):
            return False
        changed += max(len(gone), len(come))
    return changed <= max(1, _OTHER * max(len(ours), len(theirs)))


def is_name_variant(one: str, other: str) -> bool:
    """Whether two words are forms of one name: in other letters, with a few more at the end, or with a word before it.

    Numbers are not, nor `unlock` and `lock`.
    """
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    if not (short[0].isalpha() or short[0] == "_") or len(short) < 2 or len(long) - len(short) > _MAX_EXTRA_CHARS:
        return False
    return long.startswith(short) or long.endswith(f"_{short}")


# § [edit.ladder.nearness] Places that say nearly the same: one line of several has a newer word, or there is a new
# § line between them.  Such a place is only taken where nothing else in the text comes near it, and where every
# § line that differs is still recognisable. Whether the edit can then be made without a guess is for the patch to
# § say.

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


# § [edit.ladder.elision] Old texts with a mark in the place of lines that are left out: `...` in both texts, for
# § lines that stay.

_MAX_ELIDED_LINES = 400
"""Lines that a mark may stand for."""
_MAX_PART_PLACES = 200
"""Places that a part between two marks may have."""
_MAX_PARTS = 50
_MIN_TELLING_CHARS = 8
"""Characters of a line above which it is no chance that it is there twice."""


def find_elided_parts(page: IndexedText, reading: EditReading) -> list[list[Candidate]]:
    """The parts between the marks that change, each with its places; nothing where there are no marks, or a part is
    not there behind the one before it. What is in the file itself is no mark."""
    there = {squash_spaces(line) for line in reading.old if is_mark(line)}
    there.intersection_update(page.keys)
    old, new = _segments(reading.old, there), _segments(reading.new, there)
    if len(old) < 2 or len(old) != len(new):
        return []
    last = len(old) - 1
    parts = [
        EditReading("elision", one, other, terminated=number < last or reading.terminated)
        for number, (one, other) in enumerate(zip(old, new, strict=True))
        if any(map(str.strip, one)) or any(map(str.strip, other))
    ]
    if len(parts) > _MAX_PARTS:
        return []
    found = [list(islice(page.fits(part), _MAX_PART_PLACES + 1)) for part in parts]
    if any(len(fits) > _MAX_PART_PLACES for fits in found):
        return []
    _keep_reachable(found, page)
    if not all(found) or not _in_one_block(found, parts, page) or _comes_twice(found, parts, page):
        return []
    return [fits for part, fits in zip(parts, found, strict=True) if part.old != part.new]


def _segments(lines: Sequence[str], there: Container[str]) -> list[list[str]]:
    """The lines between the marks."""
    segments: list[list[str]] = [[]]
    for line in lines:
        if is_mark(line) and squash_spaces(line) not in there:
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def _keep_reachable(layers: list[list[Candidate]], page: IndexedText) -> None:
    """Of each part the places that are not far behind one of the part before it, and before one of the part after."""
    for before, after in pairwise(layers):
        after[:] = [fit for fit in after if any(_follows(page, one, fit) for one in before)]
    for before, after in reversed(list(pairwise(layers))):
        before[:] = [fit for fit in before if any(_follows(page, fit, one) for one in after)]


def _follows(page: IndexedText, one: Candidate, other: Candidate) -> bool:
    return other.span.start - one.span.end >= 0 and len(_between(page, one, other)) <= _MAX_ELIDED_LINES


def _between(page: IndexedText, one: Candidate, other: Candidate) -> Sequence[str]:
    return page.lines[page.line_of(one.span.end - 1) + 1 : page.line_of(other.span.start)]


def _in_one_block(layers: list[list[Candidate]], parts: Sequence[EditReading], page: IndexedText) -> bool:
    """Whether each part that changes is in the block that the part before it is in, or begins."""
    return all(
        any(_is_deep(_between(page, one, fit), one, fit) for one in before if _follows(page, one, fit))
        for (before, after), part in zip(pairwise(layers), parts[1:], strict=True)
        if part.old != part.new
        for fit in after
    )


def _comes_twice(layers: list[list[Candidate]], parts: Sequence[EditReading], page: IndexedText) -> bool:
    """Whether a line that comes in is among those that are left out: then it may be there already."""
    for (before, after), (one, other) in zip(pairwise(layers), pairwise(parts), strict=True):
        new = (squash_spaces(line) for part in (one, other) for line in set(part.new) - set(part.old))
        come = {said for said in new if len(said) >= _MIN_TELLING_CHARS}
        out = (_between(page, fit, next_fit) for fit in before for next_fit in after if _follows(page, fit, next_fit))
        if come and any(squash_spaces(line) in come for lines in out for line in lines):
            return True
    return False


def _is_deep(between: Sequence[str], one: Candidate, other: Candidate) -> bool:
    """Whether no line that is left out ends the block."""
    above, below = _depth(one.lines[::-1]), _depth(other.lines)
    least = above + 1 if below > above else below
    return all(_depth([line]) >= least for line in between if line.strip())


def _depth(lines: Sequence[str]) -> int:
    """How deep the first line is that is not blank."""
    return next((len(extract_indent(line).expandtabs(4)) for line in lines if line.strip()), 0)
