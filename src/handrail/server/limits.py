"""The limits of clients."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

_MAX_KEYS = 4_096


class ServerLimits(NamedTuple):
    """The `[server]` settings that bound what a client may do."""

    body_bytes: int
    requests_per_second: int
    streams: int


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
