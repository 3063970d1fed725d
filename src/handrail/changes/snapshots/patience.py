"""How long, and how much of it, a snapshot may take: nobody waits minutes for a command of a second."""

import time

MAX_SNAPSHOT_PATHS = 300_000
MAX_FILE_BYTES = 32 << 20
"""Bytes of a file that is kept."""
MAX_SNAPSHOT_BYTES = 1 << 30
"""Of files that are kept in one go."""
MAX_IGNORED_PATHS, MAX_IGNORED_BYTES = 5_000, 64 << 20
"""Of what git ignores and is kept all the same."""
BEFORE_SECONDS = 15.0
AFTER_SECONDS = 60.0
"""Longer, since by then the command has run, and what it changed is to be known."""


class SnapshotError(Exception):
    """There can be no snapshot; why, in words that follow a "since"."""


class SnapshotLimitError(SnapshotError):
    """It takes too long, or is too much."""

    def __init__(self) -> None:
        super().__init__("there is too much in the workspace to keep all of it beforehand")


class SnapshotDeadline:
    """Time that runs out."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self._until - time.monotonic())

    def check(self) -> None:
        """To be called again and again in long work."""
        if time.monotonic() > self._until:
            raise SnapshotLimitError
