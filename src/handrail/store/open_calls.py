"""The calls of a session that have no result yet: table `call` of its journal.

A call is parked, ready, claimed or started. It leaves the table with its result, so the table is always small.
"""

import re
from typing import NamedTuple

from handrail.store.database import Database

_OWN_ID = re.compile(r"call-([0-9a-f]{1,15})-[0-9a-f]{16}")
_COLUMNS = "SELECT id, batch_id, runner, state, start_seq FROM call"
_SET_STATE = "UPDATE call SET state = ?, runner = ? WHERE id = ?"
_PARK_STARTED = "UPDATE call SET state = 'parked' WHERE id = ? AND state = 'started' AND runner = ?"
_PARK_CLAIMED = "UPDATE call SET state = 'parked' WHERE batch_id = ? AND state = 'claimed' AND runner = ?"
_CLAIM = "UPDATE call SET state = 'claimed', runner = ? WHERE batch_id = ? AND state = ?"
_RELEASE = "UPDATE call SET state = 'ready' WHERE runner = ? AND state = 'claimed' AND batch_id = coalesce(?, batch_id)"


class OpenCall(NamedTuple):
    id: str
    batch_id: str
    runner: str
    state: str
    """parked, claimed, ready (claimed by a runner that was killed before the call began) or started."""
    start_seq: int
    """The number of its first event."""


# Within a transaction


def insert_call(database: Database, call: OpenCall) -> None:
    database.execute("INSERT INTO call VALUES (?, ?, ?, ?, ?)", call)


def set_call_state(database: Database, call_id: str, state: str, runner: str) -> bool:
    """Moves a call to its next state. Returns whether it was open."""
    if state == "finished":
        return database.execute("DELETE FROM call WHERE id = ?", (call_id,)).rowcount == 1
    return database.execute(_SET_STATE, (state, runner, call_id)).rowcount == 1


def park_started_call(database: Database, call_id: str, batch_id: str, runner: str) -> bool:
    """Parks a call that a runner started, with the calls of its batch that the runner claimed. Returns whether it was
    started by this runner."""
    if database.execute(_PARK_STARTED, (call_id, runner)).rowcount != 1:
        return False
    database.execute(_PARK_CLAIMED, (batch_id, runner))
    return True


def claim_calls(database: Database, batch_id: str, state: str, runner: str) -> bool:
    """Claims the calls of a batch that are in a state. Returns whether there were any."""
    return database.execute(_CLAIM, (runner, batch_id, state)).rowcount > 0


# In a transaction of their own


def release_claims(database: Database, runner: str, batch_id: str | None = None) -> None:
    """Makes the calls ready that a runner claimed and did not begin, of one batch or of all."""
    database.run(_RELEASE, (runner, batch_id))


def find_call(database: Database, call_id: str) -> OpenCall | None:
    row = database.row(f"{_COLUMNS} WHERE id = ?", (call_id,))
    return OpenCall(*row) if row else None


def list_calls(database: Database, *states: str) -> list[OpenCall]:
    """The open calls by id: all, or those in some states."""
    calls = [OpenCall(*row) for row in database.rows(f"{_COLUMNS} ORDER BY id")]
    return [call for call in calls if not states or call.state in states]


def has_begun_calls(database: Database, runner: str) -> bool:
    """Whether a call that a runner began or claimed has no result."""
    return any(call.runner == runner for call in list_calls(database, "claimed", "started"))


def list_ready_batches(database: Database) -> list[str]:
    """The batches with calls that are ready to run, the oldest first."""
    ready = sorted(list_calls(database, "ready"), key=lambda call: call.start_seq)
    return list(dict.fromkeys(call.batch_id for call in ready))


def parse_call_position(call_id: str) -> int | None:
    """The number of the event before a call. None if the id was made elsewhere."""
    found = _OWN_ID.fullmatch(call_id)
    return int(found[1], 16) if found else None
