"""Reads the journals of sessions, and the last records of the audit, without being at work on any session."""

import os
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.event import Event
from handrail.store.audit import AuditRecord, decode_record, read_audit_lines
from handrail.store.database import Database, Durability
from handrail.store.folder import StateFolder
from handrail.store.journal import SessionJournal
from handrail.store.read_only import ReadOnlyDatabase


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session that has a journal."""

    id: str
    events: int
    last: datetime | None
    problem: str | None = None
    """Why its journal cannot be read."""


@contextmanager
def open_journal(folder: str, durability: Durability | None = None) -> Generator[SessionJournal]:
    """The journal in the folder of a session, which must have one: to look at it, or with a durability to append."""
    path = os.path.join(folder, "journal.db")
    database = ReadOnlyDatabase(path) if durability is None else Database(path, durability)
    try:
        yield SessionJournal(database, os.path.basename(folder), "")
    finally:
        database.close()


def list_stored_sessions(state: StateFolder, workspace: str) -> list[SessionInfo]:
    """The sessions of a workspace, the one with the latest event first; last those that cannot be read."""
    found = [_kept(folder) for folder in state.sessions(workspace)]
    return sorted(found, key=lambda kept: kept.last.timestamp() if kept.last else 0, reverse=True)


def read_last_records(state: StateFolder, limit: int) -> list[AuditRecord | None]:
    """The last records of the audit, oldest first; None for a line that is not what was sealed."""
    whole = [line for line in deque(read_audit_lines(state.audit), maxlen=limit) if line.endswith(b"\n")]
    return [found[0] if (found := decode_record(line)) else None for line in whole]


def _kept(folder: str) -> SessionInfo:
    session = os.path.basename(folder)
    try:
        with open_journal(folder) as journal:
            count = journal.last_seq()
            event = journal.event(count) if count else None
    except StoreError as error:
        return SessionInfo(session, 0, None, str(error))
    return SessionInfo(session, count, event.time if isinstance(event, Event) else None)
