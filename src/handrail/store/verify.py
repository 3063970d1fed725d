"""Checks the audit chain line by line, and against the journals."""

import os

import msgspec

from handrail.store.audit import START, decode_record
from handrail.store.database import Database
from handrail.store.folder import StateFolder
from handrail.store.journal import Journal


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
    """Reads the whole chain; every journal's last finished call must be in it."""
    wanted = last_calls(state)
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
                wanted.pop(record.tool_call_id, None)
    if not problems:
        problems += [
            f"The end was cut: call {call} of session {session} has no record." for call, session in wanted.items()
        ]
    return Verification(count, head, tuple(problems))


def last_calls(state: StateFolder) -> dict[str, str]:
    """The call that each session's journal finished last, by id."""
    found: dict[str, str] = {}
    for folder in state.sessions():
        database = Database(os.path.join(folder, "journal.db"), "crash")
        session = os.path.basename(folder)
        call = Journal(database, session, "").last_finished()
        database.close()
        if call:
            found[call] = session
    return found
