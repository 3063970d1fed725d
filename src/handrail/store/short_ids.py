"""Ids as people read and type them: as short as tells them apart."""

from collections.abc import Iterable

_MIN_ID_CHARS = 3
_TIME_DIGITS = 16
"""How many digits of an id of ours are the time it was made; it is what comes behind them that tells ids apart."""


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """For every id the shortest beginning of its own part that no other has."""
    own = {one: _own_part(one) for one in ids}
    return {one: _shortest(part, [other for name, other in own.items() if name != one]) for one, part in own.items()}


def shorten_id(one: str, others: Iterable[str]) -> str:
    """The same for one id among others: of many, all of them would take long."""
    return _shortest(_own_part(one), [_own_part(other) for other in others if other != one])


def list_matching_ids(spelled: str, ids: Iterable[str]) -> list[str]:
    """The ids that somebody may mean: by a beginning of their own part, with or without what comes before it."""
    names = list(ids)
    return [spelled] if spelled in names else [one for one in names if spelled and _may_mean(spelled, one)]


def _may_mean(spelled: str, one: str) -> bool:
    own = _own_part(one)
    without_kind = one.replace("-", "_", 1).partition("_")[2]
    # What ids have in common says nothing: only who spells something of its own part means one.
    return any(whole.startswith(spelled) and len(spelled) > len(whole) - len(own) for whole in (own, without_kind, one))


def _own_part(one: str) -> str:
    """`8f2…` of `ask_18…8f2…`; without digits for the time, what comes behind the kind: `1c9…` of `g-1c9…`."""
    kind, line, rest = one.partition("_")
    if line and len(rest) > _TIME_DIGITS:
        return rest[_TIME_DIGITS:]
    return one.partition("-")[2] or rest or kind


def _shortest(part: str, others: list[str]) -> str:
    length = _MIN_ID_CHARS
    while length < len(part) and any(other.startswith(part[:length]) for other in others):
        length += 1
    return part[:length]
