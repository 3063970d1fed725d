"""Candidates that do not contain every line of the old text."""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from itertools import islice, pairwise

from handrail.edit.diff import diff_sequences, pair_equal_items
from handrail.edit.fuzzy.candidates import Candidate, IndexedText, Pair, Tolerance, list_full_lines, pair_blank_lines
from handrail.edit.fuzzy.normalize import EditReading, extract_indent, split_plain_words, squash_spaces
from handrail.edit.omission import is_mark

_MIN_WANTED_LINES, _MAX_WANTED_LINES = 4, 2_000
"""Lines of the old text that are not blank."""
_MIN_LINES_WITH_GAPS = 6
"""Such lines if the place lacks some, or has more beside a change."""
_MAX_LINE_PLACES = 50
"""A line with more places does not tell where the others are."""
_MAX_VOTED_OFFSETS = 200
_MIN_COMPARED_PLACES, _COMPARED_LINES = 8, 600
"""Places that are compared at least, and lines if the texts are short."""
_SLACK_LINES = 3
"""Lines that may have been added in between."""
_TWIN_SHARE = 0.5
"""If another place fits this well compared to the best one, neither is certain."""
_MAX_COMPARING_STEPS = 200_000
_MIN_EVIDENCE_CHARS = 30
"""Characters, without white space, that must be unchanged."""
_MAX_CHANGED_SHARE = 0.4
"""Share of a line's words that may differ."""
_MAX_EXTRA_CHARS = 5
"""Characters that one form of a name may have more than another."""
_TURNING_WORDS = {
    "!", "-", "\\", "not", "no", "await", "async", "static", "const", "mut", "unsafe", "never", "is", "true", "false",
}  # fmt: skip
"""A line that differs by one of these is a twin, not an older version."""
_DEFINING_WORDS = {
    "class", "def", "defmodule", "enum", "fn", "func", "function", "impl", "interface", "macro", "mod", "module",
    "namespace", "object", "package", "proc", "record", "struct", "sub", "trait", "type", "union",
}  # fmt: skip
"""The name behind one of these tells a place from its twins."""
_MAX_ELIDED_LINES = 400
_MAX_PART_PLACES = 200
"""Places of a part between two placeholders."""
_MAX_PARTS = 50
_MIN_TELLING_CHARS = 8
"""Shorter lines may occur twice by chance."""


def find_near_candidate(text: IndexedText, reading: EditReading) -> Candidate | None:
    """Find the only place with nearly the same lines. None if no place matches, or if another place comes near."""
    full, keys = list_full_lines(reading.old)
    if not _MIN_WANTED_LINES <= len(full) <= _MAX_WANTED_LINES:
        return None
    offsets = _vote_offsets(text.keys, keys)
    if not offsets:
        return None
    equal = max((_pair_around(text.keys, keys, at) for at in offsets), key=lambda pairs: _weigh_pairs(keys, pairs))
    weight, own = _weigh_pairs(keys, equal), {j for _, j in equal}
    twins = (_weigh_pairs(keys, _pair_around(text.keys, keys, at, but=own)) for at in offsets)
    if weight < _MIN_EVIDENCE_CHARS or max(twins) >= _TWIN_SHARE * weight:
        return None
    pairs = _pair_all(text, reading, keys, full, equal)
    return text.build_candidate(reading, pairs, Tolerance.TOKENS) if pairs else None


def count_tolerated_lines(lines: int) -> int:
    return 1 + (lines - _MIN_WANTED_LINES) // 8 if lines >= _MIN_WANTED_LINES else 0


def find_elided_parts(text: IndexedText, reading: EditReading) -> list[list[Candidate]]:
    """Find the parts of an old text with placeholders for unchanged lines, such as `...`, in both texts.

    Return the candidates of each part that changes. Nothing if there is no placeholder, or if a part does not follow
    the one before it. A placeholder that is in the file itself is an ordinary line.
    """
    in_file = {squash_spaces(line) for line in reading.old if is_mark(line)} & text.key_set
    old, new = _split_at_marks(reading.old, in_file), _split_at_marks(reading.new, in_file)
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
    places = [list(islice(text.find_lines(part), _MAX_PART_PLACES + 1)) for part in parts]
    if any(len(candidates) > _MAX_PART_PLACES for candidates in places):
        return []
    _remove_unreachable(places, text)
    if not all(places) or not _are_in_one_block(places, parts, text) or _adds_elided_line(places, parts, text):
        return []
    return [candidates for part, candidates in zip(parts, places, strict=True) if part.old != part.new]


def _vote_offsets(text_keys: Sequence[str], keys: Sequence[str]) -> list[int]:
    """Return where the first line would be, by the places of rare lines, the likeliest first."""
    places: dict[str, list[int]] = {key: [] for key in keys}
    for position, key in enumerate(text_keys):
        if key in places:
            places[key].append(position)
    votes: Counter[int] = Counter()
    for i, key in enumerate(keys):
        if len(places[key]) <= _MAX_LINE_PLACES:
            votes.update({position - i: _weigh(key) for position in places[key]})
    most = max(_MIN_COMPARED_PLACES, _COMPARED_LINES // len(keys))
    offsets: list[int] = []
    for offset, _ in votes.most_common(_MAX_VOTED_OFFSETS):
        if all(abs(offset - other) > _SLACK_LINES for other in offsets) and len(offsets) < most:
            offsets.append(offset)
    return offsets


def _weigh(key: str) -> int:
    """Return how much a line tells about the place. A bracket tells little."""
    return min(len(key), 40) if len(key) > 3 else 1


def _weigh_pairs(keys: Sequence[str], pairs: Sequence[tuple[int, int]]) -> int:
    return sum(_weigh(keys[i]) for i, _ in pairs)


def _pair_around(
    text_keys: Sequence[str], keys: Sequence[str], offset: int, but: Container[int] = ()
) -> list[tuple[int, int]]:
    """Pair the equal lines around an offset, `but` for some lines of the text."""
    low = max(0, offset - _SLACK_LINES)
    high = min(len(text_keys), max(0, offset) + len(keys) + _SLACK_LINES)
    window = ["" if number in but else text_keys[number] for number in range(low, high)]
    pairs = pair_equal_items(keys, window, _MAX_COMPARING_STEPS)
    for step, numbers in ((1, range(1, len(pairs))), (-1, range(len(pairs) - 2, -1, -1))):
        for n in numbers:  # of several equal lines, take the one beside the neighbour
            i, j = pairs[n - step]
            if pairs[n][0] == i + step and window[j + step] == keys[i + step]:
                pairs[n] = (i + step, j + step)
    return [(i, low + j) for i, j in pairs]


def _pair_all(
    text: IndexedText, reading: EditReading, keys: Sequence[str], full: list[int], equal: list[tuple[int, int]]
) -> list[Pair] | None:
    """Pair the lines that differ too. None if too many do, or if one is another line."""
    old, unchanged = reading.old, _list_unchanged(reading)
    first, last = equal[0], equal[-1]
    after = len(keys) - 1 - last[0]
    if first[1] < first[0] or last[1] + after >= len(text.keys):
        return None
    steps = [(-1, first[1] - first[0] - 1), *equal, (len(keys), last[1] + after + 1)]
    pairs: list[Pair] = []
    different = 0
    fewest = _MIN_WANTED_LINES
    for (a, b), (c, d) in pairwise(steps):
        ours, theirs = range(a + 1, c), range(b + 1, d)
        different += max(len(ours), len(theirs))
        is_far = unchanged.issuperset(range(full[a] if a >= 0 else -1, full[c] if c < len(full) else len(old)))
        if len(ours) == len(theirs):
            beside = list(zip(ours, theirs, strict=True))
            if not all(_is_version(text, old[full[i]], text.numbers[j], is_far=is_far) for i, j in beside):
                return None
            pairs += beside
        elif ours and theirs:
            return None
        else:
            fewest = fewest if is_far and not ours else _MIN_LINES_WITH_GAPS
            pairs += [(i, None) for i in ours]
            pairs += [(None, j) for j in theirs]
        if c < len(keys):
            pairs.append((c, d))
    if different > count_tolerated_lines(len(keys)) or len(keys) < fewest:
        return None
    own = [(None if i is None else full[i], None if j is None else text.numbers[j]) for i, j in pairs]
    return pair_blank_lines(old, text.lines, own)[0]


def _list_unchanged(reading: EditReading) -> set[int]:
    """Return the lines of the old text that the edit keeps together with the next line. -1 is the start of the text."""
    pairs = {(-1, -1), *pair_equal_items(reading.old, reading.new), (len(reading.old), len(reading.new))}
    return {i for i, k in pairs if (i + 1, k + 1) in pairs}


def _is_version(text: IndexedText, wanted: str, number: int, *, is_far: bool) -> bool:
    """Whether a line is a newer version of the wanted one, which the text does not have."""
    if squash_spaces(wanted) in text.key_set:
        return False
    # Far from the change, the text may still have the older words elsewhere.
    return _is_line_variant(wanted, text.lines[number], lambda word: not is_far and text.has_word(word))


def _is_line_variant(one: str, other: str, is_in_use: Callable[[str], bool]) -> bool:
    """Whether two lines differ only in forms of names, or in a few words more. A word in use is not an older one."""
    ours, theirs = split_plain_words(one), split_plain_words(other)
    changed = 0
    for a, b, c, d in diff_sequences(ours, theirs):
        removed, added = ours[a:b], theirs[c:d]
        if removed and added:
            defines = a > 0 and ours[a - 1] in _DEFINING_WORDS
            if defines or len(removed) != len(added) or not all(map(_is_name_variant, removed, added)):
                return False
            if any(map(is_in_use, removed)):
                return False
        elif _TURNING_WORDS.intersection(removed + added):
            return False
        changed += max(len(removed), len(added))
    return changed <= max(1, _MAX_CHANGED_SHARE * max(len(ours), len(theirs)))


def _is_name_variant(one: str, other: str) -> bool:
    """Whether two words are forms of one name: other case, a longer end, or a prefix with an underscore."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    if not (short[0].isalpha() or short[0] == "_") or len(short) < 2 or len(long) - len(short) > _MAX_EXTRA_CHARS:
        return False
    return long.startswith(short) or long.endswith(f"_{short}")


def _split_at_marks(lines: Sequence[str], in_file: Container[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if is_mark(line) and squash_spaces(line) not in in_file:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def _remove_unreachable(places: list[list[Candidate]], text: IndexedText) -> None:
    """Keep the candidates that follow one of the part before, and come before one of the part after."""
    for before, after in pairwise(places):
        after[:] = [other for other in after if any(_can_follow(text, one, other) for one in before)]
    for before, after in reversed(list(pairwise(places))):
        before[:] = [one for one in before if any(_can_follow(text, one, other) for other in after)]


def _can_follow(text: IndexedText, one: Candidate, other: Candidate) -> bool:
    return other.span.start >= one.span.end and len(_cut_between(text, one, other)) <= _MAX_ELIDED_LINES


def _cut_between(text: IndexedText, one: Candidate, other: Candidate) -> Sequence[str]:
    return text.lines[text.line_of(one.span.end - 1) + 1 : text.line_of(other.span.start)]


def _are_in_one_block(places: list[list[Candidate]], parts: Sequence[EditReading], text: IndexedText) -> bool:
    """Whether each part that changes is in the block of the part before it, or in the block which that one opens."""
    return all(
        any(_is_inside(_cut_between(text, one, other), one, other) for one in before if _can_follow(text, one, other))
        for (before, after), part in zip(pairwise(places), parts[1:], strict=True)
        if part.old != part.new
        for other in after
    )


def _is_inside(between: Sequence[str], one: Candidate, other: Candidate) -> bool:
    """Whether no elided line ends the block."""
    above, below = _measure_depth(one.lines[::-1]), _measure_depth(other.lines)
    least = above + 1 if below > above else below
    return all(_measure_depth([line]) >= least for line in between if line.strip())


def _measure_depth(lines: Sequence[str]) -> int:
    """Return the indentation of the first line that is not blank."""
    return next((len(extract_indent(line).expandtabs(4)) for line in lines if line.strip()), 0)


def _adds_elided_line(places: list[list[Candidate]], parts: Sequence[EditReading], text: IndexedText) -> bool:
    """Whether a line that the edit adds is among the elided lines: it may have been added before."""
    for (before, after), (one, other) in zip(pairwise(places), pairwise(parts), strict=True):
        new = (squash_spaces(line) for part in (one, other) for line in set(part.new) - set(part.old))
        added = {key for key in new if len(key) >= _MIN_TELLING_CHARS}
        pairs = ((first, second) for first in before for second in after if _can_follow(text, first, second))
        elided = (line for first, second in pairs for line in _cut_between(text, first, second))
        if added and any(squash_spaces(line) in added for line in elided):
            return True
    return False
