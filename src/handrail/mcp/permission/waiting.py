"""Waits for a person who is not asked here: somebody may answer elsewhere (`handrail approvals`)."""

import time
from collections.abc import Callable

from handrail.mcp.calling import Calls
from handrail.mcp.outcomes import Asks
from handrail.mcp.permission.words import how_to_answer

SECONDS = 45.0
"""How long a client is kept waiting: many give up after 60."""
TOLD_EVERY = 5.0
"""Seconds between two lines about what is waited for."""
LOOKS_EVERY = 0.1
_LOOKS_ANYWAY = 10
"""Every so many looks it is looked for what leaves no trace in the journal: that whoever ran the call was killed."""


class Watched:
    """A call that waits, as somebody watches it who looks again and again."""

    def __init__(self, calls: Calls, asks: Asks) -> None:
        self.asks = asks
        self._calls = calls
        self._words = f"waits for your answer: {how_to_answer(asks, calls.folder)}"
        self._version = -1
        self._looks = 0
        self._told = 0.0

    def has_moved(self) -> bool:
        """Whether something has become of it. Mostly one question to the journal: did anybody write?"""
        self._looks += 1
        version = self._calls.version
        if version == self._version and self._looks % _LOOKS_ANYWAY:
            return False
        self._version = version
        return self._calls.has_moved(self.asks)

    def tell(self, tell: Callable[[str], None]) -> None:
        """Says what is waited for, from time to time."""
        now = time.monotonic()
        if now >= self._told:
            self._told = now + TOLD_EVERY
            tell(self._words)
