"""The recorded changes of a fleet, for machines that run no session.

A shared folder has one change log, a clone has that of its session.
"""

import os
from collections.abc import Iterator
from contextlib import closing

from handrail.api import Handrail
from handrail.fleet.sessions import FleetSessions
from handrail.protocol.changes import ChangeRecord
from handrail.runtime.stored_output import StoredOutputs
from handrail.settings import LoadedSettings
from handrail.store.change_log import ChangeLog, LoggedChangeSet
from handrail.store.database import CHANGES
from handrail.store.postgres import SessionReader
from handrail.store.shared_store import SharedStore
from handrail.store.state_dir import make_private, make_temporary_folder


def list_changes(sessions: FleetSessions, log: str) -> Iterator[ChangeRecord]:
    """The change sets of a log, the latest first."""
    return (entry.to_record() for entry in _open_log(sessions, log).latest() if entry.state == "done")


def read_change(sessions: FleetSessions, log: str, number: int) -> tuple[ChangeRecord, str] | None:
    """A change set with its diff, which is empty if it is no longer kept. None if there is no set of this number."""
    opened = _open_log(sessions, log)
    entry: LoggedChangeSet | None = opened.entry(number)
    if entry is None or entry.state != "done":
        return None
    return entry.to_record(), "".join(opened.diffs(number) or ())


def find_folder(workspace: str, state: str) -> str:
    """A shared folder, if this machine has it. Otherwise an empty folder in the state folder."""
    if os.path.isdir(workspace):
        return workspace
    empty = os.path.join(state, "empty")
    make_private(empty)
    return empty


def open_folder(sessions: FleetSessions, folder: str, session: str, state: str, loaded: LoadedSettings) -> Handrail:
    """Opens a shared folder that this machine has, to undo or redo its changes. They are recorded in the database."""
    store = SharedStore(sessions.build_scope(session), f"folder:{os.path.realpath(folder)}")
    return Handrail(folder, session=session, state_dir=state, settings=loaded, on_permission="park", store=store)


def read_output(sessions: FleetSessions, session: str, call_id: str) -> bytes:
    """The raw output of a command. ToolError if there is none."""
    store = SharedStore(sessions.build_scope(session))
    with make_temporary_folder("handrail-output-") as folder, closing(store):
        view = SessionReader(sessions.build_scope(session))
        return StoredOutputs(store.open_blobs(folder), view).raw(call_id)


def _open_log(sessions: FleetSessions, log: str) -> ChangeLog:
    return ChangeLog(SessionReader(sessions.build_scope(log), CHANGES, owner=log))
