"""Reads the change sets of a workspace without a session."""

import os
from collections.abc import Generator
from contextlib import closing, contextmanager

from handrail.protocol.changes import ChangeRecord
from handrail.protocol.errors import ToolError
from handrail.store.change_log import ChangeLog
from handrail.store.database import CHANGES, ReadOnlyDatabase
from handrail.store.state_dir import StateFolder


def list_changes(state: StateFolder, workspace: str) -> Generator[ChangeRecord]:
    """The change sets of a workspace from all sessions, the latest first."""
    with _open_change_log(state, workspace) as log:
        if log is not None:
            yield from (entry.to_record() for entry in log.latest() if entry.state == "done")


def read_change(state: StateFolder, workspace: str, number: int) -> tuple[ChangeRecord, str]:
    """A change set with its diff. ToolError if there is none of this number, or its diff is no longer kept."""
    with _open_change_log(state, workspace) as log:
        entry = log.entry(number) if log is not None else None
        if log is None or entry is None or entry.state != "done":
            raise ToolError("NOT_FOUND", f"There is no change {number}. `handrail log --changes` lists them.")
        if (diffs := log.diffs(number)) is None:
            raise ToolError("NOT_FOUND", f"Change {number} is too old.")
        return entry.to_record(), "".join(diffs)


@contextmanager
def _open_change_log(state: StateFolder, workspace: str) -> Generator[ChangeLog | None]:
    """The change log of a workspace. None if nothing changed yet."""
    path = os.path.join(state.home(os.path.realpath(workspace)), ".changes", "changes.db")
    if not os.path.lexists(path):
        yield None
        return
    with closing(ChangeLog(ReadOnlyDatabase(path, CHANGES))) as log:
        yield log
