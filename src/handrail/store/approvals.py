"""Parked calls, from the permission request until a runner resumes them.

A batch is parked as a whole. With its last answer a runner claims it. Claims of dead runners become ready, so another
runner can claim the batch.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

import msgspec

from handrail.protocol.permissions import Answer, PermissionRequest, Question
from handrail.protocol.wire import encode
from handrail.store.database import Database, Row
from handrail.store.inbox import find_last_request, list_pending_questions, list_pending_requests
from handrail.store.journal import BrokenEvent, CallContext, DuplicateCallError, PendingEvent, SessionJournal
from handrail.store.runner import is_dead

_INSERT_BATCH = "INSERT INTO batch VALUES (?, 'parked', ?) ON CONFLICT (id) DO UPDATE SET state = 'parked'"
_PARK_STARTED = "UPDATE call SET state = 'parked' WHERE id = ? AND state = 'started' AND runner = ?"
_PARK_CLAIMED = "UPDATE call SET state = 'parked' WHERE batch_id = ? AND state = 'claimed' AND runner = ?"
_REPLACE = "UPDATE request SET id = ?, data = ? WHERE id = ? AND data = ? AND answer IS NULL"
_ANSWER = "UPDATE request SET answer = ? WHERE id = ? AND data = ? AND answer IS NULL"
_PENDING = "SELECT 1 FROM request WHERE batch_id = ? AND answer IS NULL"
_TAKE_BATCH = "UPDATE batch SET state = 'taken' WHERE id = ? AND state = 'parked'"
_CLAIM = "UPDATE call SET state = 'claimed', runner = ? WHERE batch_id = ? AND state = ?"
_RELEASE = "UPDATE call SET state = 'ready' WHERE runner = ? AND state = 'claimed' AND batch_id = coalesce(?, batch_id)"
_READY = "SELECT batch_id FROM call WHERE state = 'ready' GROUP BY batch_id ORDER BY min(start_seq)"


class CallToPark(msgspec.Struct, frozen=True):
    """A call with the events to store."""

    id: str
    decided: CallContext
    pending_events: tuple[PendingEvent, ...]
    started: bool = False
    """Whether the journal knows it as started by this runner. Otherwise it is new."""


class StoredRequest(NamedTuple):
    request: PermissionRequest
    data: bytes
    """Differs if the request was replaced."""
    answered: bool


class _AnsweredError(Exception):
    """A request was answered or replaced meanwhile."""


# Parking


def save_parked(
    journal: SessionJournal,
    batch_id: str,
    calls: tuple[CallToPark, ...],
    call_ids: tuple[str, ...],
    requests: tuple[PermissionRequest, ...],
) -> None:
    """Stores calls of a batch as parked, with the requests about them. `call_ids` are all calls of the batch in their
    order. Calls of the batch that this runner claimed are parked too. DuplicateCallError if a call has another runner.
    """

    def update(first: int) -> None:
        for call in calls:
            if not call.started:
                journal.insert_call(call.id, batch_id, "parked", first, given=True)
            elif journal.database.execute(_PARK_STARTED, (call.id, journal.runner)).rowcount != 1:
                raise DuplicateCallError
            journal.set_context(call.id, call.decided)
            first += len(call.pending_events)
        journal.database.execute(_PARK_CLAIMED, (batch_id, journal.runner))
        _insert_batch(journal, batch_id, call_ids, requests)
        _insert_deferred(journal, calls)

    journal.write(tuple(event for call in calls for event in call.pending_events), update)


def _insert_batch(
    journal: SessionJournal, batch_id: str, calls: tuple[str, ...], requests: tuple[PermissionRequest, ...]
) -> None:
    """A batch that is parked once more keeps its calls."""
    journal.database.execute(_INSERT_BATCH, (batch_id, " ".join(calls)))
    for request in requests:
        row = (request.id, batch_id, request.tool_call_id, encode(request))
        journal.database.execute("INSERT INTO request VALUES (?, ?, ?, ?, NULL)", row)


def _insert_deferred(journal: SessionJournal, calls: tuple[CallToPark, ...]) -> None:
    for call in calls:
        if call.id in journal.digests and (digest := journal.digests[call.id]()):
            row = (call.id, digest, journal.runner)
            journal.database.execute("INSERT OR IGNORE INTO left_call VALUES (?, ?, ?)", row)


# Answers


def find_stored_request(database: Database, request_id: str) -> StoredRequest | None:
    row = database.row("SELECT data, answer FROM request WHERE id = ?", (request_id,))
    return StoredRequest(database.decode(row[0], PermissionRequest), row[0], row[1] is not None) if row else None


def replace_request(journal: SessionJournal, stored: StoredRequest, new: PermissionRequest, call: CallToPark) -> bool:
    """Replaces a request that is unchanged and has no answer, and the context of its call. Returns whether it did."""

    def update(_first: int) -> None:
        row = (new.id, encode(new), stored.request.id, stored.data)
        if journal.database.execute(_REPLACE, row).rowcount != 1:
            raise _AnsweredError
        journal.set_context(call.id, call.decided)

    try:
        journal.write(call.pending_events, update)
    except _AnsweredError:
        return False
    return True


def save_answer(
    journal: SessionJournal, stored: StoredRequest, answer: Answer, event: PendingEvent
) -> list[str] | None:
    """Stores the answer to a request. None if it was answered or replaced before.

    With the last answer of a batch this runner claims the batch in the same transaction. Then its calls are returned.
    """
    calls: list[str] = []

    def update(_first: int) -> None:
        row = (encode(answer), stored.request.id, stored.data)
        if journal.database.execute(_ANSWER, row).rowcount != 1:
            raise _AnsweredError
        calls[:] = _claim_answered(journal, stored.request.batch_id)

    try:
        journal.write((event,), update)
    except _AnsweredError:
        return None
    return calls


def _claim_answered(journal: SessionJournal, batch_id: str) -> list[str]:
    execute = journal.database.execute
    if execute(_PENDING, (batch_id,)).fetchone() or execute(_TAKE_BATCH, (batch_id,)).rowcount != 1:
        return []
    execute(_CLAIM, (journal.runner, batch_id, "parked"))
    return list_batch_calls(journal.database, batch_id)


# Claims


def list_batch_calls(database: Database, batch_id: str) -> list[str]:
    """The calls of a batch that is or was parked, in their order."""
    row = database.row("SELECT calls FROM batch WHERE id = ?", (batch_id,))
    calls: str = row[0] if row else ""
    return calls.split()


def list_ready_batches(database: Database) -> list[str]:
    """The batches with calls that are ready to run, the oldest first."""
    return [str(row[0]) for row in database.rows(_READY)]


def claim_ready(database: Database, runner: str, batch_id: str) -> list[str]:
    """Claims the ready calls of a batch. Returns all calls of the batch, or none if no call was ready."""
    with database.lock, database.transaction:
        claimed = database.execute(_CLAIM, (runner, batch_id, "ready")).rowcount
        return list_batch_calls(database, batch_id) if claimed else []


def release_claims(database: Database, runner: str, batch_id: str | None = None) -> None:
    """Makes the calls ready that a runner claimed and did not begin, of one batch or of all."""
    database.run(_RELEASE, (runner, batch_id))


def has_begun_calls(journal: SessionJournal) -> bool:
    """Whether a call that this runner began or claimed has no result."""
    query = "SELECT 1 FROM call WHERE runner = ? AND state IN ('claimed', 'started')"
    return journal.database.row(query, (journal.runner,)) is not None


def has_parked_calls(database: Database) -> bool:
    """Whether a call waits for an answer or for a runner."""
    return database.row("SELECT 1 FROM call WHERE state IN ('parked', 'ready', 'claimed') LIMIT 1") is not None


# Calls that a client finds again

_SAME = """
SELECT call_id, holder FROM left_call l WHERE digest = ?
ORDER BY EXISTS (SELECT 1 FROM call c WHERE c.id = l.call_id), call_id
"""
_ONE = "SELECT call_id, holder FROM left_call WHERE call_id = ? AND digest = ?"
_HOLD = "UPDATE left_call SET holder = ? WHERE call_id = ? AND holder IS ?"
_LET_GO = "UPDATE left_call SET holder = NULL WHERE call_id = ? AND holder = ?"
_FORGET = "DELETE FROM left_call WHERE call_id = ? AND holder = ?"


class DeferredCalls:
    """Parked calls that a client finds again by a digest of name and arguments, because it knows no ids.

    At most one live runner claims a deferred call. Claims of dead runners are void. A delivered call is deleted.
    """

    def __init__(self, journal: SessionJournal, folder: str) -> None:
        """`folder` is that of the session, with the marks of its runners."""
        self.folder = folder
        self._journal = journal
        self._database = journal.database
        self._runner = journal.runner

    def has_any(self) -> bool:
        return self._database.row("SELECT 1 FROM left_call LIMIT 1") is not None

    def version(self) -> int:
        """A number that changes when another process writes to the journal."""
        row = self._database.row("PRAGMA data_version")
        return row[0] if row else 0

    @contextmanager
    def expect(self, call_id: str, digest: Callable[[], str]) -> Generator[None]:
        """Defers a call if it is parked within the `with`, in the same transaction. This runner claims it."""
        self._journal.digests[call_id] = digest
        try:
            yield
        finally:
            del self._journal.digests[call_id]

    def claim(self, digest: str) -> str | None:
        """Claims an unclaimed call of this digest, finished calls first."""
        rows = self._database.rows(_SAME, (digest,))
        return next((row[0] for row in rows if self._claim(row)), None)

    def claim_one(self, call_id: str, digest: str) -> bool:
        """Claims one call. False if it is claimed, delivered, or another call."""
        row = self._database.row(_ONE, (call_id, digest))
        return row is not None and self._claim(row)

    def release(self, call_id: str) -> None:
        """Gives up a claim, so that a repeated call can claim it."""
        self._database.run(_LET_GO, (call_id, self._runner))

    def forget(self, call_id: str) -> None:
        self._database.run(_FORGET, (call_id, self._runner))

    def status(self, call_id: str) -> tuple[str, bool]:
        """The state of a call (see `CallEntry.state`), and whether a live runner runs it."""
        row = self._database.row("SELECT state, runner FROM call WHERE id = ?", (call_id,))
        if row is None:
            return "finished", False
        return row[0], row[0] in {"claimed", "started"} and not is_dead(self.folder, row[1])

    def asked(self, call_id: str) -> tuple[tuple[PermissionRequest, ...], tuple[Question, ...]]:
        row = self._database.row("SELECT batch_id FROM call WHERE id = ?", (call_id,))
        if row is None:
            return (), ()
        requests = list_pending_requests(self._database, row[0])
        questions = list_pending_questions(self._database, row[0])
        return (
            tuple(request for request in requests if request.tool_call_id == call_id),
            tuple(question for question in questions if question.tool_call_id == call_id),
        )

    def ended_at(self, call_id: str) -> datetime | None:
        """The time of a call's result. None if it has none."""
        entry = self._journal.entry(call_id)
        if entry is None or entry.end_seq is None:
            return None
        event = self._journal.event(entry.end_seq)
        return None if isinstance(event, BrokenEvent) else event.time

    def ran_at(self, call_id: str) -> datetime | None:
        """The time when the command of a finished call ran: for its preview, or after the answer."""
        request = find_last_request(self._database, call_id)
        if request is None or request.command is None:
            return None
        preview = request.preview
        return preview.time if preview is not None and preview.tried is not None else self.ended_at(call_id)

    def _claim(self, row: Row) -> bool:
        call_id, holder = row
        if holder is not None and not is_dead(self.folder, holder):
            return False
        with self._database.lock:
            self._database.run(_HOLD, (self._runner, call_id, holder))
            changed = self._database.row("SELECT changes()")
        return changed is not None and changed[0] == 1
