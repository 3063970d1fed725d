"""Parked calls, from the permission request until a runner resumes them.

A batch is parked as a whole. With its last answer a runner claims it. Claims of dead runners become ready, so another
runner can claim the batch.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime

import msgspec

from handrail.protocol.events import BrokenEvent
from handrail.protocol.permissions import Answer, PermissionRequest, Question
from handrail.protocol.records import shorten_ids
from handrail.store.database import Database, Row
from handrail.store.inbox import (
    Inbox,
    StoredRequest,
    answer_request,
    find_answer,
    find_last_request,
    has_pending_requests,
    insert_request,
    list_pending_questions,
    list_pending_requests,
    swap_request,
)
from handrail.store.journal import (
    CallContext,
    DuplicateCallError,
    OpenCall,
    PendingEvent,
    SessionJournal,
    find_call,
    list_calls,
)
from handrail.store.runner import is_dead
from handrail.store.state_dir import StateFolder

_INSERT_BATCH = "INSERT INTO batch VALUES (?, 'parked', ?) ON CONFLICT (id) DO UPDATE SET state = 'parked'"
"""A batch that is parked once more keeps its calls."""
_DEFER = "INSERT OR IGNORE INTO left_call VALUES (?, ?, ?)"
_TAKE_BATCH = "UPDATE batch SET state = 'taken' WHERE id = ? AND state = 'parked'"


class CallToPark(msgspec.Struct, frozen=True):
    """A call with the events to store."""

    id: str
    decided: CallContext
    pending_events: tuple[PendingEvent, ...]
    started: bool = False
    """Whether the journal knows it as started by this runner. Otherwise it is new."""


class _AnsweredError(Exception):
    """A request was answered or replaced meanwhile."""


def save_parked(
    journal: SessionJournal,
    batch_id: str,
    calls: tuple[CallToPark, ...],
    call_ids: tuple[str, ...],
    requests: tuple[PermissionRequest, ...],
    answered: tuple[tuple[PermissionRequest, Answer], ...] = (),
) -> None:
    """Stores calls of a batch as parked, with the requests about them. `call_ids` are all calls of the batch in their
    order. Calls of the batch that this runner claimed are parked too. `answered` are requests that need no person.
    DuplicateCallError if a call has another runner.
    """

    def update(first: int) -> None:
        for call in calls:
            if not call.started:
                journal.insert_call(call.id, batch_id, "parked", first, given=True)
            elif not journal.park_started_call(call.id, batch_id):
                raise DuplicateCallError
            journal.set_context(call.id, call.decided)
            first += len(call.pending_events)
            if call.id in journal.digests and (digest := journal.digests[call.id]()):
                journal.left_call_marker.set()
                journal.database.execute(_DEFER, (call.id, digest, journal.runner))
        journal.database.execute(_INSERT_BATCH, (batch_id, " ".join(call_ids)))
        for request in requests:
            insert_request(journal.database, request)
        for request, answer in answered:
            insert_request(journal.database, request, answer)

    journal.write(tuple(event for call in calls for event in call.pending_events), update)


def replace_request(journal: SessionJournal, stored: StoredRequest, new: PermissionRequest, call: CallToPark) -> bool:
    """Replaces a request that is unchanged and has no answer, and the context of its call. Returns whether it did."""

    def update(_first: int) -> None:
        if not swap_request(journal.database, stored, new):
            raise _AnsweredError
        journal.set_context(call.id, call.decided)

    try:
        journal.write(call.pending_events, update)
    except _AnsweredError:
        return False
    return True


def save_answer(
    journal: SessionJournal,
    stored: StoredRequest,
    answer: Answer,
    event: PendingEvent,
    *,
    new: str = "claimed",
    also: tuple[tuple[str, Row], ...] = (),
) -> list[str] | None:
    """Stores the answer to a request. None if it was answered or replaced before.

    With the last answer of a batch this runner claims the batch in the same transaction. Then its calls are returned.
    `new="ready"` leaves the batch to the next runner instead. `also` are further statements of that transaction.
    """
    calls: list[str] = []

    def update(_first: int) -> None:
        if not answer_request(journal.database, stored, answer):
            raise _AnsweredError
        calls[:] = _claim_answered(journal, stored.request.batch_id, new)
        for statement, values in also if calls else ():
            journal.database.execute(statement, values)

    try:
        journal.write((event,), update)
    except _AnsweredError:
        return None
    return calls


def _claim_answered(journal: SessionJournal, batch_id: str, new: str) -> list[str]:
    database = journal.database
    if has_pending_requests(database, batch_id) or database.execute(_TAKE_BATCH, (batch_id,)).rowcount != 1:
        return []
    journal.claim_calls(batch_id, "parked", new=new)
    return list_batch_calls(database, batch_id)


def list_abandoned_calls(journal: SessionJournal, folder: str) -> list[OpenCall]:
    """The parked calls whose runner is dead and that no live client holds."""
    holders: dict[str, str | None] = dict(journal.database.rows("SELECT call_id, holder FROM left_call"))
    calls = [call for call in list_calls(journal.database, "parked") if is_dead(folder, call.runner)]
    return [call for call in calls if (holder := holders.get(call.id)) is None or is_dead(folder, holder)]


def list_batch_calls(database: Database, batch_id: str) -> list[str]:
    """The calls of a batch that is or was parked, in their order."""
    row = database.row("SELECT calls FROM batch WHERE id = ?", (batch_id,))
    calls: str = row[0] if row else ""
    return calls.split()


def claim_ready(journal: SessionJournal, batch_id: str) -> list[str]:
    """Claims the ready calls of a batch. Returns all calls of the batch, or none if no call was ready."""
    with journal.database.lock, journal.database.transaction:
        return list_batch_calls(journal.database, batch_id) if journal.claim_calls(batch_id, "ready") else []


# Calls that a client finds again

_SAME = "SELECT call_id, holder FROM left_call WHERE digest = ? ORDER BY call_id"
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
        marker = self._journal.left_call_marker
        if marker.is_missing():
            return False
        marker.last_query_found_none = self._database.row("SELECT 1 FROM left_call LIMIT 1") is None
        return not marker.last_query_found_none

    def version(self) -> int:
        """A number that changes when another process writes to the journal."""
        return self._database.read_version()

    @contextmanager
    def expect(self, call_id: str, digest: Callable[[], str]) -> Generator[None]:
        """Defers a call if it is parked within the `with`, in the same transaction. This runner claims it."""
        self._journal.digests[call_id] = digest
        try:
            yield
        finally:
            del self._journal.digests[call_id]

    def shorten_id(self, subject_id: str) -> str:
        """The id of a request or question, as short as is unambiguous among all that wait."""
        inbox = Inbox(StateFolder.find(self.folder), None)
        return shorten_ids((subject_id, *inbox.list_pending_ids()))[subject_id]

    def load_key(self, name: str) -> tuple[bytes, str]:
        """A key of the state folder for signatures, and the path of the session in that folder."""
        state = StateFolder.find(self.folder)
        return state.load_key(name), os.path.relpath(self.folder, state.path)

    def claim(self, digest: str) -> str | None:
        """Claims an unclaimed call of this digest, finished calls first."""
        rows = self._database.rows(_SAME, (digest,))
        unfinished = {call.id for call in list_calls(self._database)} if rows else set[str]()
        rows.sort(key=lambda row: row[0] in unfinished)
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
        call = find_call(self._database, call_id)
        if call is None:
            return "finished", False
        return call.state, call.state in {"claimed", "started"} and not is_dead(self.folder, call.runner)

    def list_pending(self, call_id: str) -> tuple[tuple[PermissionRequest, ...], tuple[Question, ...]]:
        call = find_call(self._database, call_id)
        if call is None:
            return (), ()
        requests = list_pending_requests(self._database, call.batch_id)
        questions = list_pending_questions(self._journal, call.batch_id)
        return (
            tuple(request for request in requests if request.tool_call_id == call_id),
            tuple(question for question in questions if question.tool_call_id == call_id),
        )

    def has_expired(self, call_id: str) -> bool:
        """Whether handrail denied the call because nobody waited for it any more."""
        found = find_answer(self._database, call_id)
        return found is not None and found[1].by == "expiry"

    def find_end_time(self, call_id: str) -> datetime | None:
        """The time of a call's result. None if it has none."""
        entry = self._journal.entry(call_id)
        if entry is None or entry.end_seq is None:
            return None
        event = self._journal.event(entry.end_seq)
        return None if isinstance(event, BrokenEvent) else event.time

    def find_run_time(self, call_id: str) -> datetime | None:
        """The time when the command of a finished call ran: for its preview, or after the answer."""
        request = find_last_request(self._database, call_id)
        if request is None or request.command is None:
            return None
        preview = request.preview
        return preview.time if preview is not None and preview.tried is not None else self.find_end_time(call_id)

    def _claim(self, row: Row) -> bool:
        call_id, holder = row
        if holder is not None and not is_dead(self.folder, holder):
            return False
        return self._database.run(_HOLD, (self._runner, call_id, holder)) == 1
