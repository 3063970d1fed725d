"""How long Python's `re` may take over a text: what it will take is only known at its worst, which is rare."""

import time
from collections.abc import Callable

_GRACE_SECONDS = 0.05
"""Seconds."""
_A_CHARACTER = 3e-6
"""Seconds: about as long as following all ways at once takes."""


class TimeBudget:
    """Lasts while `re` is faster than following all ways at once would be."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._left = _GRACE_SECONDS
        self._began = 0.0

    @property
    def lasts(self) -> bool:
        """Whether `re` may go on."""
        return self._left >= 0

    def begin(self) -> None:
        """A part of the text is searched now."""
        self._began = self._clock()

    def end(self, characters: int) -> None:
        """It was, and had so many characters."""
        self._left += characters * _A_CHARACTER - (self._clock() - self._began)
