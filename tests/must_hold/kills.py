"""How often something is killed at a drawn moment."""

from collections.abc import Callable, Iterator

_MORE = 100


def kills(wanted: int, has_hit: Callable[[], object]) -> Iterator[int]:
    """The numbers of the kills: as many as are wanted, and more as long as none came at the moment that is meant."""
    for number in range(wanted + _MORE):
        if number >= wanted and has_hit():
            return
        yield number
