"""What is held against a tree while it runs; `Limits` has it, and so has what a keeper is told."""

from collections.abc import Sequence
from typing import Protocol


class TreeLimits(Protocol):
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
    def disk(self) -> int:
        """Bytes that it may write to `uppers`."""
        ...

    @property
    def uppers(self) -> Sequence[str]:
        """Folders that are watched for that."""
        ...

    @property
    def threads(self) -> int:
        """How many at a time."""
        ...
