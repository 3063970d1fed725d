"""Where file tools record what they change."""

from collections.abc import Callable
from typing import Protocol

from handrail.changes.planned import PlannedChangeSet
from handrail.changes.recorder import RecordedChangeSet
from handrail.store.change_log import Step
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import ResolvedParent


class Records(Protocol):
    """Where a change is written down, before and after it is made."""

    @property
    def durable(self) -> bool:
        """Whether what is reported as done must survive a loss of power."""
        ...

    def content(self, digest: str) -> bytes | None:
        """What was kept under a hash; None when nothing was, or it is large."""
        ...

    def keep(self, before: FileSnapshot, landing: ResolvedParent) -> None:
        """Keeps what a file holds before it is changed."""

    def keep_bytes(self, digest: str, data: bytes) -> None:
        """Keeps bytes that are to be written, or that settling a crash may need."""

    def keep_link(self, landing: ResolvedParent) -> None:
        """Keeps where a link leads."""

    def carry_out(self, temporary: str, steps: tuple[Step, ...]) -> list[Step]:
        """Takes steps whose contents are kept, all of them or none; those that changed something."""
        ...

    def record(
        self, call_id: str, planned: PlannedChangeSet, work: Callable[[], tuple[Step, ...]]
    ) -> RecordedChangeSet:
        """Does the work between the two records of it."""
        ...
