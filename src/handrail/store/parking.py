"""The rows of batches that wait for answers. All of it is written within a transaction of the journal's."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.protocol.error import StoreError
from handrail.protocol.wire import encode
from handrail.store.database import Database, Row

if TYPE_CHECKING:
    from handrail.store.journal import NewCall

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
