"""Writes down what the calls of one session change: before the first file, and after the last."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from handrail.changes.history import History, build_backup_error
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import StoreError, ToolError
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.changes.model import PlannedChangeSet
    from handrail.store.change_log import ChangeSetRecord, LoggedChangeSet, Step


UNDO_ID_SUFFIX = "-back"
"""What the call's id ends with for the undo of what it changed and somebody would have to say yes to."""
_MAX_COMPARED_BYTES = 8 * 1024 * 1024


class RecordedChangeSet(msgspec.Struct, frozen=True):
    """A change set that was made."""

    changes: ChangeSet
    problem: str | None = None
    """What went wrong although it was made."""


class Recorder:
    """The change sets of one session."""

    def __init__(self, workspace: Workspace, history: History, session_id: str, runner: str) -> None:
        self.history = history
        self.turn = ""
        """The turn that the next change belongs to, so that a whole turn can be undone."""
        self._workspace = workspace
        self._session = session_id
        self._runner = runner

    @property
    def durable(self) -> bool:
        """Whether what is reported as done must survive a loss of power."""
        return self.history.durable

    def record(
        self, call_id: str, planned: "PlannedChangeSet", work: "Callable[[], tuple[Step, ...]]"
    ) -> RecordedChangeSet:
        """Does the work between the two records of it. `work` returns the steps as they were really taken."""
        body = planned.body()
        number = self._begin(call_id, body, planned.diffs)
        try:
            steps = work()
        except Exception as error:
            # It may have failed after the last change: the files say.
            if self._is_made(number):
                return RecordedChangeSet(
                    _set(number, planned), error.message if isinstance(error, ToolError) else str(error)
                )
            raise
        self.history.log.finish(number, msgspec.structs.replace(body, steps=steps))
        return RecordedChangeSet(_set(number, planned))

    def begin_command(self, call_id: str, summary: str) -> int:
        """Writes down that a command is about to run on the files themselves: what it changes is known afterwards."""
        from handrail.store.change_log import ChangeSetRecord  # noqa: PLC0415  as above

        return self._begin(call_id, ChangeSetRecord("exec", summary, (), ()), ())

    def _begin(self, call_id: str, body: "ChangeSetRecord", diffs: tuple[str, ...]) -> int:
        """The number of a change that is about to be made; ToolError where it cannot be written down."""
        names = {"session": self._session, "call_id": call_id, "turn": self.turn or call_id, "runner": self._runner}
        try:
            log = self.history.log
            self.history.mark_work(self._session, self._runner)
            return log.begin(**names, body=body, diffs=diffs)
        except StoreError as error:
            raise error.in_result("Nothing was changed.") from None

    def content(self, digest: str) -> bytes | None:
        """What was kept under a hash; None when nothing was, or it is large."""
        kept = bytearray()
        try:
            for piece in self.history.blobs.chunks(digest):
                kept += piece
                if len(kept) > _MAX_COMPARED_BYTES:
                    return None
        except (OSError, StoreError):
            return None
        return bytes(kept)

    def keep(self, before: FileSnapshot, landing: ResolvedParent) -> None:
        """Keeps what a file holds before it is changed; ToolError when that cannot be."""
        self.history.keep(before, landing)

    def keep_bytes(self, digest: str, data: bytes) -> None:
        """Keeps bytes that are to be written, or that settling a crash may need."""
        try:
            self.history.blobs.keep(digest, data, pack=True)
        except StoreError as error:
            raise build_backup_error("What is to be written", error) from None

    def keep_link(self, landing: ResolvedParent) -> None:
        """Keeps where a link leads."""
        self.history.blobs.put(os.fsencode(os.readlink(landing.name, dir_fd=landing.folder)), pack=True)

    def carry_out(self, temporary: str, steps: "tuple[Step, ...]") -> "list[Step]":
        """Takes steps whose contents are kept, all of them or none; those that changed something."""
        from handrail.changes.apply import StepApplier  # noqa: PLC0415  as above

        return StepApplier(self._workspace, self.history, temporary).apply_steps(steps)

    def settle(self, call_id: str) -> None:
        """Settles what a call of this session left when it was cut off."""
        from handrail.changes.recovery import recover_change_set  # noqa: PLC0415  as above

        entry = self.made_by(call_id)
        if entry is not None and entry.state == "begun":
            recover_change_set(self._workspace, self.history, entry.number)

    def made_by(self, call_id: str) -> "LoggedChangeSet | None":
        """The change set of a call of this session."""
        return None if self.history.is_empty else self.history.log.find_by_call(self._session, call_id)

    def _is_made(self, number: int) -> bool:
        from handrail.changes.recovery import settle  # noqa: PLC0415  as above

        try:
            with self.history.settling():
                entry = self.history.log.entry(number)
                return entry is not None and settle(self._workspace, self.history, entry) == "made"
        except (ToolError, StoreError):
            return False  # whoever opens the workspace next will see; what is told now is why the work failed


def _set(number: int, planned: "PlannedChangeSet") -> ChangeSet:
    return ChangeSet(
        changes=planned.changes,
        number=number,
        undoable=True,
        undoes=planned.undoes,
        not_covered=planned.not_covered,
    )
