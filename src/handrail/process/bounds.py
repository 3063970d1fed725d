"""What is held against a tree while it runs; `Limits` has it, and so has what a keeper is told."""

from typing import Protocol


class Bounds(Protocol):
    """Of the whole tree together."""

    @property
    def memory(self) -> int:
        """Bytes."""
        ...

    @property
    def processes(self) -> int:
        """How many at a time."""
        ...

    @property
    def threads(self) -> int:
        """How many at a time."""
        ...
