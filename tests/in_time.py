"""Calls whose time is cut short on purpose: a busy machine may need more of it to begin at all."""

from collections.abc import Callable
from typing import TypeVar

Outcome = TypeVar("Outcome")
_MOST = 20_000


def cut_short(
    call: Callable[[int], Outcome], milliseconds: int, has_begun: Callable[[Outcome], object]
) -> tuple[Outcome, int]:
    """What comes of a call that has so much time, and how much it was in the end: more, as long as it was too little
    for what has to happen before the time is over."""
    outcome = call(milliseconds)
    while not has_begun(outcome) and milliseconds < _MOST:
        milliseconds *= 4
        outcome = call(milliseconds)
    return outcome, milliseconds
