"""One line, changed twice: by the file since, and by the edit. Both changes are kept, where they do not meet."""

import re
from collections.abc import Iterator, Sequence

from handrail.edit.ladder.sequences import SequenceChange, diff_sequences, pair_equal_items
from handrail.edit.ladder.tokens import Token, split_tokens
from handrail.edit.ladder.typography import fold_typography

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
