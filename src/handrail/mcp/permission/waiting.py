"""Waits for a person who is not asked here: somebody may answer elsewhere (`handrail approvals`)."""

import time
from collections.abc import Callable

from handrail.mcp.calling import ClientCalls
from handrail.mcp.outcomes import UnansweredCall
from handrail.mcp.permission.words import describe_answer_commands

WAIT_SECONDS = 45.0
"""How long a client is kept waiting: many give up after 60."""
TOLD_EVERY_SECONDS = 5.0
"""Seconds between two lines about what is waited for."""
POLL_SECONDS = 0.1
_LOOKS_ANYWAY = 10
"""Every so many looks it is looked for what leaves no trace in the journal: that whoever ran the call was killed."""


class AnswerWatch:
    """A call that waits, as somebody watches it who looks again and again."""

    def __init__(self, calls: ClientCalls, asks: UnansweredCall) -> None:
        self.asks = asks
        self._calls = calls
        self._words = f"waits for your answer: {describe_answer_commands(asks, calls.folder)}"
        self._version = -1
        self._looks = 0
        self._told = 0.0

    def has_changed(self) -> bool:
        """Whether something has become of it. Mostly one question to the journal: did anybody write?"""
        self._looks += 1
        version = self._calls.version
        if version == self._version and self._looks % _LOOKS_ANYWAY:
            return False
        self._version = version
        return self._calls.has_changed(self.asks)

    def tell(self, tell: Callable[[str], None]) -> None:
        """Says what is waited for, from time to time."""
        now = time.monotonic()
        if now >= self._told:
            self._told = now + TOLD_EVERY_SECONDS
            tell(self._words)
