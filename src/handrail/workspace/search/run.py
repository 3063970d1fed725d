"""One run of an engine, and when it has gone far enough."""

import time
from collections.abc import Callable, Iterator
from typing import Generic, Literal, TypeVar

Item = TypeVar("Item")
End = Literal["complete", "enough", "time", "slow", "size"]
"""Why a run ended: it was through, had more than was asked for, took too long, or could not be in time."""

MAX_HITS = 100_000
"""Hits that are counted."""
MAX_SECONDS = 1.0
MAX_RESULT_BYTES = 64 * 1024 * 1024
"""Of lines that are held."""
LINE_BYTES = 200
"""What a line that is held takes besides its text."""


class Run(Generic[Item]):
    """Takes in candidates until there are too many of them, or too little time."""

    def __init__(
        self,
        weigh: Callable[[Item], tuple[int, int]],
        *,
        most: int,
        seconds: float,
        cancelled: Callable[[], bool],
        judge: Callable[[float, int], bool] = lambda _seconds, _count: False,
    ) -> None:
        self.items: list[Item] = []
        self.count = 0
        self.end: End = "complete"
        self._weigh = weigh
        self._most = most
        self._seconds = seconds
        self._cancelled = cancelled
        self._judge = judge
        self._bytes = 0
        self._began = time.monotonic()

    def stop(self) -> bool:
        """Whether it is time to end; engines ask."""
        passed = time.monotonic() - self._began
        if self._judge(passed, self.count):
            self.end = "slow"
        elif passed > self._seconds or self._cancelled():
            self.end = "time"
        return self.end != "complete"

    def take(self, candidates: Iterator[Item]) -> None:
        """Runs until one of the ends."""
        try:
            for item in candidates:
                self._add(item)
                if self.end != "complete":
                    return
        finally:
            close = getattr(candidates, "close", None)
            if close is not None:
                close()

    def _add(self, item: Item) -> None:
        count, size = self._weigh(item)
        self.items.append(item)
        self.count += count
        self._bytes += size
        if self._judge(time.monotonic() - self._began, self.count):
            self.end = "slow"
        elif self.count > self._most:
            self.end = "enough"
        elif self._bytes > MAX_RESULT_BYTES:
            self.end = "size"
