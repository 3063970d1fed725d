"""Limits by caller: requests a second, connections at once."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager

_MAX_KEYS = 4_096


class RateLimit:
    """A token bucket for each key. Keys that were not used for the longest time are forgotten."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What each bucket held at what time."""

    def take(self, key: str) -> float:
        """Takes one. Returns 0, or the seconds to wait if the bucket is empty."""
        now = self._clock()
        held, since = self._buckets.pop(key, (self._burst, now))
        held = min(self._burst, held + (now - since) * self._per_second)
        is_free = held >= 1
        self._buckets[key] = (held - 1 if is_free else held, now)
        if len(self._buckets) > _MAX_KEYS:
            self._buckets.popitem(last=False)
        return 0.0 if is_free else (1 - held) / self._per_second


class CountLimit:
    """A number of things at once for each key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()

    @contextmanager
    def hold(self, key: str) -> Generator[bool]:
        """Yields whether there is room for one more."""
        has_room = self._counts[key] < self._most
        self._counts[key] += has_room
        try:
            yield has_room
        finally:
            self._counts[key] -= has_room
            if not self._counts[key]:
                del self._counts[key]
