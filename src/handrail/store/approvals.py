"""Parked batches, permission requests and questions, with their answers."""

import os
import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from handrail.protocol.errors import StoreError
from handrail.protocol.events import ToolCallQuestionRequired, decode_event
from handrail.protocol.permissions import Answer, PermissionRequest, Question
from handrail.protocol.wire import encode
from handrail.store.database import Database, Row

if TYPE_CHECKING:
    from handrail.store.journal import NewCall


# § [store.parking] The rows of batches that wait for answers. All of it is written within a transaction of the
# § journal's.

_INSERT_BATCH = "INSERT INTO batch VALUES (?, 'parked', ?) ON CONFLICT (id) DO UPDATE SET state = 'parked'"
_PARK_BEGUN = "UPDATE call SET state = 'parked' WHERE id = ? AND state = 'started' AND runner = ?"
_PARK_CLAIMED = "UPDATE call SET state = 'parked' WHERE batch_id = ? AND state = 'claimed' AND runner = ?"


def insert_calls(database: Database, runner: str, batch_id: str, calls: "tuple[NewCall, ...]", first: int) -> None:
    """Calls that wait, and are written down for the first time; `first` is the number of their first event."""
    for call in calls:
        database.execute("INSERT INTO given VALUES (?, ?)", (call.id, first))
        database.execute("INSERT INTO call VALUES (?, ?, ?, 'parked', ?)", (call.id, batch_id, runner, first))
        database.execute("UPDATE event SET decided = ? WHERE seq = ?", (encode(call.decided), first))
        first += len(call.pending_events)


def insert_batch(database: Database, batch_id: str, calls: tuple[str, ...]) -> None:
    """A batch that waits; one that was answered and waits once more keeps its calls."""
    database.execute(_INSERT_BATCH, (batch_id, " ".join(calls)))


def insert_request(database: Database, batch_id: str, request: Row) -> None:
    """What is asked: (request id, call id, request)."""
    request_id, call_id, data = request
    database.execute("INSERT INTO request VALUES (?, ?, ?, ?, NULL)", (request_id, batch_id, call_id, data))


def insert_deferred(database: Database, runner: str, digests: "Iterable[tuple[str, str]]") -> None:
    """Calls that are found again by a digest (`DeferredCalls`), held by this runner. Before the first there is a file
    beside the journal that says that there may be some."""
    for call_id, digest in digests:
        try:
            os.close(os.open(build_deferred_marker_path(database), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            where = f"beside the journal {database.path}"
            raise StoreError(f"{where} nothing can be written: {error.strerror}") from error
        database.execute("INSERT OR IGNORE INTO left_call VALUES (?, ?, ?)", (call_id, digest, runner))


def build_deferred_marker_path(database: Database) -> str:
    """The file that says that there may be such calls."""
    return f"{database.path}-left"


def park_begun(database: Database, runner: str, batch_id: str, call_id: str) -> bool:
    """A call that has begun waits from here on, and with it what its runner has taken over of the batch; False where
    the call is not the runner's."""
    if database.execute(_PARK_BEGUN, (call_id, runner)).rowcount != 1:
        return False
    database.execute(_PARK_CLAIMED, (batch_id, runner))
    return True


# § [store.requests] What was asked of people, and what they said, as it stands in a session's journal.

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
    return tuple(database.decode(row[0], PermissionRequest) for row in database.rows(_WAITING, (batch_id,)))


def find_stored_request(database: Database, request_id: str) -> StoredRequest | None:
    """One question, answered or not, and the bytes that it is stored as."""
    row = database.row("SELECT data, answer FROM request WHERE id = ?", (request_id,))
    return StoredRequest(database.decode(row[0], PermissionRequest), row[0], row[1] is not None) if row else None


def find_last_request(database: Database, call_id: str) -> PermissionRequest | None:
    """What was last asked about a call, answered or not."""
    row = database.row(_ABOUT, (call_id,))
    return database.decode(row[0], PermissionRequest) if row else None


def find_answer(database: Database, call_id: str) -> tuple[PermissionRequest, Answer] | None:
    """What was asked about a call and what was said; None while nothing was."""
    row = database.row(_ANSWERED, (call_id,))
    return (database.decode(row[0], PermissionRequest), database.decode(row[1], Answer)) if row else None


def list_batch_requests(database: Database, batch_id: str) -> list[tuple[PermissionRequest, Answer | None]]:
    """What was asked about the calls of a batch, and what was said as far as anything was."""
    rows = database.rows("SELECT data, answer FROM request WHERE batch_id = ? ORDER BY id", (batch_id,))
    return [
        (database.decode(data, PermissionRequest), None if said is None else database.decode(said, Answer))
        for data, said in rows
    ]


def check_requests(database: Database) -> None:
    """Reads all that was asked and said; StoreError where something cannot be read."""
    for data, said in database.rows("SELECT data, answer FROM request"):
        database.decode(data, PermissionRequest)
        if said is not None:
            database.decode(said, Answer)


def list_batch_calls(database: Database, batch_id: str) -> list[str]:
    """The calls of a batch that waits or waited, in their order."""
    row = database.row("SELECT calls FROM batch WHERE id = ?", (batch_id,))
    calls: str = row[0] if row else ""
    return calls.split()


def list_open_answers(database: Database) -> list[tuple[PermissionRequest, Answer]]:
    """What was asked and said about the calls that have no result yet."""
    rows = database.rows(_OPEN)
    return [(database.decode(data, PermissionRequest), database.decode(said, Answer)) for data, said in rows]


# § [store.batches] Batches that were answered, and whose runner was killed before it began all of their calls: who
# § runs the rest.

_READY = "SELECT batch_id FROM call WHERE state = 'ready' GROUP BY batch_id ORDER BY min(start_seq)"
_RELEASE = "UPDATE call SET state = 'ready' WHERE runner = ? AND state = 'claimed' AND batch_id = coalesce(?, batch_id)"
_CLAIM = "UPDATE call SET state = 'claimed', runner = ? WHERE batch_id = ? AND state = 'ready'"


def release_claims(database: Database, runner: str, batch_id: str | None = None) -> None:
    """Makes what a runner took over and did not begin ready for whoever comes next: of one batch, or of all."""
    database.run(_RELEASE, (runner, batch_id))


def list_ready_batches(database: Database) -> list[str]:
    """The batches with calls that are ready to run, the oldest first."""
    return [str(row[0]) for row in database.rows(_READY)]


def claim_ready(database: Database, runner: str, batch_id: str) -> list[str]:
    """Takes over what is ready of a batch; all its calls in their order, or none where there was nothing to take.

    Of several who try, one gets all of it.
    """
    with database.lock:
        try:
            with database.transaction:
                if not database.execute(_CLAIM, (runner, batch_id)).rowcount:
                    return []
                found = database.execute("SELECT calls FROM batch WHERE id = ?", (batch_id,)).fetchone()
        except sqlite3.Error as error:
            database.fail(error)
    calls: str = found[0]
    return calls.split()


# § [store.questions] The questions of the model that wait for a reply, as they stand in a session's journal.  A
# § question is a call that is parked, and the event that asks it comes right behind the one that the call came in
# § with. It needs no row of its own: the reply gives the call its result, and with that it waits no more.

ASKED = """
SELECT e.data FROM call c JOIN event e ON e.seq = c.start_seq + 1
WHERE c.state = 'parked' AND e.kind = 'tool_call.question-required'
"""
_OF_BATCH = f"{ASKED} AND coalesce(?, c.batch_id) = c.batch_id ORDER BY c.start_seq"
_OF_CALL = f"{ASKED} AND c.id = ?"


def list_pending_questions(database: Database, batch_id: str | None = None) -> tuple[Question, ...]:
    """The questions that nobody has replied to: of one batch, or of the session."""
    return tuple(parse_question(row[0]) for row in database.rows(_OF_BATCH, (batch_id,)))


def find_pending_question(database: Database, call_id: str) -> Question | None:
    """The question that a call waits with; None where it is none, or has its reply."""
    row = database.row(_OF_CALL, (call_id,))
    return parse_question(row[0]) if row else None


def parse_question(data: bytes) -> Question:
    """The question that an event asks."""
    event = decode_event(data)
    if not isinstance(event, ToolCallQuestionRequired):
        raise AssertionError("the row is not of a question")
    return Question(
        tool_call_id=event.tool_call_id,
        question=event.question,
        options=event.options,
        multiple=event.multiple,
        custom=event.custom,
    )
