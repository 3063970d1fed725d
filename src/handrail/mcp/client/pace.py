"""How fast one may talk: a stock that is used up by every message, or byte, and fills again with time."""

BYTE_RATE = (32 << 20, float(2 << 20))
"""Of all that one server says, at once and a second: to read what it says takes us more than saying it takes it."""


class RateLimiter:
    """A number at once, and so many a second after them."""

    def __init__(self, at_once: int, a_second: float) -> None:
        self._most = float(at_once)
        self._a_second = a_second
        self._left = float(at_once)
        self._at = 0.0

    def wait(self, now: float, count: int = 1) -> float:
        """Takes one, or so many; how many seconds to wait first."""
        self._left = min(self._most, self._left + (now - self._at) * self._a_second) if self._at else self._left
        self._at = now
        self._left -= count
        return 0.0 if self._left >= 0 else -self._left / self._a_second
