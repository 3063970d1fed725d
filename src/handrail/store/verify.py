"""Checks the audit chain line by line, and against the journals."""

import os
from collections import Counter
from contextlib import closing

import msgspec

from handrail.protocol.error import StoreError
from handrail.store.audit import START, decode_record
from handrail.store.database import Database
from handrail.store.folder import StateFolder
from handrail.store.journal import Journal

_MOST = 10
"""Missing calls that are named."""


class Verification(msgspec.Struct, frozen=True):
    """What was found; intact when there is no problem."""

    records: int
    head: str
    problems: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether every record is as it was written and none is missing."""
        return not self.problems


def verify(state: StateFolder) -> Verification:
    """Reads the whole chain; every call that a journal has a result of must be in it."""
    wanted, unread = finished_calls(state)
    head, count, problems = START, 0, list[str]()
    if os.path.exists(state.audit):
        with open(state.audit, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    break  # a crash tore it; the journal knows the call, and it is written anew
                found = decode_record(line)
                if found is None:
                    problems.append(f"Record {number} was changed or removed; {count} before it are sound.")
                    break
                record, digest = found
                if record.prev != head or record.seq != number:
                    what = "changed or removed" if record.seq > number else "inserted or changed"
                    problems.append(f"Record {number} was {what}; {count} before it are sound.")
                    break
                head, count = digest, number
                wanted[record.session_id, record.tool_call_id] -= 1
    if not problems:
        problems += _missing([key for key, left in wanted.items() if left > 0])
    return Verification(count, head, (*problems, *unread))


def _missing(calls: list[tuple[str, str]]) -> list[str]:
    told = [f"The end was cut: call {call} of session {session} has no record." for session, call in calls[:_MOST]]
    return [*told, f"{len(calls) - _MOST} more calls have no record."] if len(calls) > _MOST else told


def finished_calls(state: StateFolder) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many results the journals have of each call (sessions of several workspaces may share a name); and which
    journals cannot be read."""
    found: Counter[tuple[str, str]] = Counter()
    unread: list[str] = []
    for folder in state.sessions():
        session = os.path.basename(folder)
        try:
            with closing(Database(os.path.join(folder, "journal.db"), "crash")) as database:
                found.update((session, call) for call in Journal(database, session, "").finished())
        except StoreError as error:
            unread.append(f"The calls of session {session} could not be looked up: {error}.")
    return found, unread
