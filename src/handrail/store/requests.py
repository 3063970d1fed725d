"""What was asked of people, and what they said, as it stands in a session's journal."""

from typing import NamedTuple

from handrail.protocol.permission import Answer, PermissionRequest
from handrail.store.database import Database

_WAITING = "SELECT data FROM request WHERE answer IS NULL AND coalesce(?, batch_id) = batch_id ORDER BY id"
_ABOUT = "SELECT data FROM request WHERE call_id = ? ORDER BY id DESC LIMIT 1"
_ANSWERED = "SELECT data, answer FROM request WHERE call_id = ? AND answer IS NOT NULL ORDER BY id DESC LIMIT 1"
_OPEN = "SELECT data, answer FROM request WHERE answer IS NOT NULL AND call_id IN (SELECT id FROM call)"


class StoredRequest(NamedTuple):
    """A question as it stands in the journal."""

    request: PermissionRequest
    data: bytes
    """What it is told by from what somebody else puts in its place."""
    answered: bool


def list_pending_requests(database: Database, batch_id: str | None) -> tuple[PermissionRequest, ...]:
    """The questions that nobody has answered: of one batch, or of the session."""
    return tuple(database.decoded(row[0], PermissionRequest) for row in database.rows(_WAITING, (batch_id,)))


def find_stored_request(database: Database, request_id: str) -> StoredRequest | None:
    """One question, answered or not, and the bytes that it is stored as."""
    row = database.row("SELECT data, answer FROM request WHERE id = ?", (request_id,))
    return StoredRequest(database.decoded(row[0], PermissionRequest), row[0], row[1] is not None) if row else None


def find_last_request(database: Database, call_id: str) -> PermissionRequest | None:
    """What was last asked about a call, answered or not."""
    row = database.row(_ABOUT, (call_id,))
    return database.decoded(row[0], PermissionRequest) if row else None


def find_answer(database: Database, call_id: str) -> tuple[PermissionRequest, Answer] | None:
    """What was asked about a call and what was said; None while nothing was."""
    row = database.row(_ANSWERED, (call_id,))
    return (database.decoded(row[0], PermissionRequest), database.decoded(row[1], Answer)) if row else None


def list_batch_requests(database: Database, batch_id: str) -> list[tuple[PermissionRequest, Answer | None]]:
    """What was asked about the calls of a batch, and what was said as far as anything was."""
    rows = database.rows("SELECT data, answer FROM request WHERE batch_id = ? ORDER BY id", (batch_id,))
    return [
        (database.decoded(data, PermissionRequest), None if said is None else database.decoded(said, Answer))
        for data, said in rows
    ]


def check_requests(database: Database) -> None:
    """Reads all that was asked and said; StoreError where something cannot be read."""
    for data, said in database.rows("SELECT data, answer FROM request"):
        database.decoded(data, PermissionRequest)
        if said is not None:
            database.decoded(said, Answer)


def list_batch_calls(database: Database, batch_id: str) -> list[str]:
    """The calls of a batch that waits or waited, in their order."""
    row = database.row("SELECT calls FROM batch WHERE id = ?", (batch_id,))
    calls: str = row[0] if row else ""
    return calls.split()


def list_open_answers(database: Database) -> list[tuple[PermissionRequest, Answer]]:
    """What was asked and said about the calls that have no result yet."""
    rows = database.rows(_OPEN)
    return [(database.decoded(data, PermissionRequest), database.decoded(said, Answer)) for data, said in rows]
