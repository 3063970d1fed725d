"""Records the change sets of one session: begun before the first file changes, done after the last."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from handrail.changes.history import History
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import StoreError, ToolError
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.file_state import FileSnapshot, PathState
from handrail.workspace.resolve import READ_FILE, ResolvedParent, closing_descriptor
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.changes.model import ApplyOptions
    from handrail.store.change_log import ChangeLog, ChangeSetRecord, LoggedChangeSet, Step


UNDO_ID_SUFFIX = "-back"
"""Ends the call id of an undo that handrail makes itself, of changes that need an approval."""
MAX_PACKED_BYTES = 1 << 16
"""Size up to which contents are stored together."""
_MAX_COMPARED_BYTES = 8 * 1024 * 1024


class RecordedChangeSet(msgspec.Struct, frozen=True):
    changes: ChangeSet
    problem: str | None = None
    """An error that happened although it was made."""


class Recorder:
    def __init__(self, workspace: Workspace, history: History, session_id: str, runner: str) -> None:
        self.history = history
        self.turn = ""
        """The turn of the next change, so that a whole turn can be undone."""
        self._workspace = workspace
        self._session = session_id
        self._runner = runner
        self._last_kept = ("", b"")
        """The hash and the bytes of the last small content. An answer about its change may want it."""

    @cached_property
    def _log(self) -> "ChangeLog":
        """The change log, with a mark that this runner makes changes."""
        self.history.mark_work(self._session, self._runner)
        return self.history.log

    def record(
        self,
        call_id: str,
        planned: "ChangeSetRecord",
        work: "Callable[[], tuple[Step, ...]]",
        diffs: tuple[str, ...] = (),
    ) -> RecordedChangeSet:
        """Makes a change set. `work` returns the steps as they were applied. `diffs`: one for each step."""
        number = self._begin(call_id, planned, diffs)
        changes = ChangeSet(
            changes=planned.changes,
            number=number,
            undoable=True,
            undoes=planned.undoes,
            not_covered=planned.not_covered,
        )
        try:
            steps = work()
        except Exception as error:
            # It may have failed after the last change: the files tell.
            if self._is_made(number):
                return RecordedChangeSet(changes, error.message if isinstance(error, ToolError) else str(error))
            raise
        self._log.finish(number, msgspec.structs.replace(planned, steps=steps))
        return RecordedChangeSet(changes)

    def begin_command(self, call_id: str, summary: str) -> int:
        """Records a command that is about to run on the files themselves. Its changes are known afterwards."""
        from handrail.store.change_log import ChangeSetRecord  # noqa: PLC0415  slow to load, and reads do not need it

        return self._begin(call_id, ChangeSetRecord("exec", summary, (), ()), ())

    def _begin(self, call_id: str, planned: "ChangeSetRecord", diffs: tuple[str, ...]) -> int:
        ids = {"session": self._session, "call_id": call_id, "turn": self.turn or call_id, "runner": self._runner}
        try:
            return self._log.begin(**ids, body=planned, diffs=diffs)
        except StoreError as error:
            raise error.to_tool_error("Nothing was changed.") from None

    def carry_out(
        self, temporary: str, steps: "tuple[Step, ...]", options: "ApplyOptions | None" = None
    ) -> "list[Step]":
        """Applies steps, all or none. Returns those that changed something."""
        from handrail.changes.apply import apply_steps  # noqa: PLC0415  as above
        from handrail.changes.model import ApplyOptions  # noqa: PLC0415

        chosen = options if options is not None else ApplyOptions()
        return apply_steps(self._workspace, self.history, steps, temporary=temporary, options=chosen)

    # Contents

    def content(self, digest: str) -> bytes | None:
        """A kept content. None if it is missing or large."""
        last, data = self._last_kept
        if digest == last:
            return data
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
        """Keeps the content of a file before it is changed. ToolError if that fails."""
        try:
            if before.data is not None:
                self.history.blobs.keep(before.hash, before.data, pack=True)
                if len(before.data) <= MAX_PACKED_BYTES:
                    self._last_kept = (before.hash, before.data)
                return
            with closing_descriptor(landing.open(READ_FILE)) as file:
                self.history.blobs.keep_file(before.hash, file)
        except StoreError as error:
            raise _build_backup_error(landing.name, error) from None

    def keep_bytes(self, digest: str, data: bytes) -> None:
        """Keeps new bytes, to write them or to recover from a crash."""
        try:
            self.history.blobs.keep(digest, data, pack=True)
        except StoreError as error:
            raise _build_backup_error("The content", error) from None

    def keep_link(self, landing: ResolvedParent) -> None:
        self.history.blobs.put(os.fsencode(os.readlink(landing.name, dir_fd=landing.folder)), pack=True)

    def keep_all(self, states: Iterable[tuple[bytes, PathState]]) -> None:
        """Keeps the contents of files and the targets of links. ToolError if that fails. Nothing is changed then.

        The states may be read while they are iterated.
        """
        try:
            self.history.blobs.keep_all(self._read_contents(states))
        except StoreError as error:
            raise _build_backup_error("The change", error) from None

    def _read_contents(self, states: Iterable[tuple[bytes, PathState]]) -> Iterator[tuple[str, bytes]]:
        """Yields the small contents, and keeps the large ones by themselves."""
        for path, state in states:
            file = state.current
            if file is not None and file.data is not None and len(file.data) <= MAX_PACKED_BYTES:
                yield file.hash, file.data
            elif file is not None or (state.state is not None and state.state.kind == "link"):
                try:
                    with self._workspace.open_parent(path) as parent:
                        if file is not None:
                            self.keep(file, parent)
                        elif state.state is not None:
                            target = os.fsencode(os.readlink(parent.name, dir_fd=parent.folder))
                            yield state.state.hash, target
                except OSError as error:
                    raise to_tool_error(error, os.fsdecode(path)) from None

    # Recovery

    def settle(self, call_id: str) -> None:
        """Settles the change set of a call that was killed."""
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
            return False  # the next process that opens the workspace settles it; the caller learns why `work` failed


def _build_backup_error(name: str, error: StoreError) -> ToolError:
    """Nothing is changed, because the present content could not be kept for undo."""
    cause = error.__cause__
    if not isinstance(cause, OSError):
        return ToolError(
            "CONFLICT", f"{clip_path(name)} changed while it was being stored for undo. Nothing was changed."
        )
    full = cause.errno in {errno.ENOSPC, errno.EDQUOT}
    message = f"{clip_path(name)} could not be stored for undo ({cause.strerror}). Nothing was changed."
    return ToolError("NO_SPACE" if full else "IO_ERROR", message)
