"""The journal of a session: events, calls and subscribers."""

import contextlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from threading import Lock
from typing import Any

import msgspec

from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Decision, Facts, Mode
from handrail.protocol.errors import StoreError
from handrail.protocol.events import (
    KIND_NAMES,
    AnyEvent,
    ChangeEvent,
    Event,
    Network,
    Notice,
    ToolCallEnd,
    ToolCallError,
    decode_event,
)
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.store import approvals
from handrail.store.database import Database, Row
from handrail.store.state_dir import make_call_id, parse_call_position

# § [store.listeners] Who is told of events, in order and only of what is stored.

Listener = Callable[[Event], None]
Kinds = Collection[type[Event]]
_One = tuple[Listener, int, Kinds | None]
"""Who listens, after which number, and what for; None: for all."""


class Listeners:
    """Listeners, each with the number after which it listens and what for, and the events that are still to be told.
    What nobody listens for costs a look, not a turn."""

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        self._on_failure = on_failure
        """Gets the kind of error a listener failed with; its text may quote the event."""
        self.everyone: tuple[_One, ...] = ()
        self._wanted: Kinds | None = ()
        self._changing = Lock()
        self._outbox: deque[Event] = deque()
        self._delivering = Lock()

    def add(self, listener: Listener, after: int, kinds: Kinds | None = None) -> Callable[[], None]:
        """Tells the listener of every event after a number, or of those of some kinds; returns how to stop that."""
        with self._changing:
            self._set((*self.everyone, (listener, after, kinds)))
        return lambda: self._remove(listener)

    def put(self, events: Iterable[Event]) -> None:
        """Events that are stored, to be told when the writer holds nothing any more."""
        wanted = self._wanted
        for event in events:
            if wanted is None or type(event) in wanted:
                self._outbox.append(event)

    def deliver(self) -> None:
        """Tells what is waiting, in order, by whichever thread comes first."""
        while self._outbox and self._delivering.acquire(blocking=False):
            try:
                while self._outbox:
                    self._tell(self._outbox.popleft())
            finally:
                self._delivering.release()

    def _tell(self, event: Event) -> None:
        """A listener that fails is not called again: what it watches is done, whether it can follow or not."""
        for listener, after, kinds in self.everyone:
            if event.seq > after and (kinds is None or type(event) in kinds):
                try:
                    listener(event)
                except Exception as error:  # whatever a stranger's listener does wrong, the call is done
                    self._remove(listener)
                    self._on_failure(type(error).__name__)

    def _remove(self, listener: Listener) -> None:
        with self._changing:
            self._set(tuple(other for other in self.everyone if other[0] is not listener))

    def _set(self, everyone: tuple[_One, ...]) -> None:
        kinds = [kinds for _, _, kinds in everyone]
        self._wanted = None if None in kinds else frozenset(kind for some in kinds if some is not None for kind in some)
        self.everyone = everyone


# § [store.journal] The journal of a session: every event in order, every call with its facts, decision and result.
# § It is the checkpoint. A call that may have effects is written down as started before the first of them; a call
# § without effects is written once, when its result is known. What was reported as done is in the file before it is
# § reported.

PendingEvent = tuple[type[Event], dict[str, Any]]
"""An event that has no number yet: its kind and its own fields."""


class DuplicateCallError(Exception):
    """A call of this id is in the journal already."""


class _AnsweredError(Exception):
    """A request has its answer already, or is another by now."""


class BrokenEvent(msgspec.Struct, frozen=True):
    """A stored event that cannot be read: reported, and the rest goes on."""

    seq: int
    kind: str
    problem: str


class CallContext(msgspec.Struct, frozen=True):
    """What a call was decided on, stored beside its first event."""

    batch_id: str
    facts: Facts
    decision: Decision
    mode: Mode | None = None
    """The mode that was in force; None in what older versions wrote, and where policy was not asked."""
    unattended: bool = False
    """Whether nobody was there to be asked."""
    judged: Decision | None = None
    """What policy said of what the call came to, where that was no plain yes."""


_LOST = Decision(decision="deny", rule="journal.broken", reason="what the call was decided on cannot be read")
_UNREADABLE = CallContext(batch_id="", facts=Facts(), decision=_LOST)


class CallEntry(msgspec.Struct, frozen=True):
    """What the journal holds about a call besides its events."""

    id: str
    state: str
    """parked, claimed, ready (claimed by one who was killed before it began), started or finished."""
    batch_id: str
    facts: Facts
    decision: Decision
    start_seq: int
    end_seq: int | None
    judged: Decision | None = None


class NewCall(msgspec.Struct, frozen=True):
    """A call that is to be written down for the first time."""

    id: str
    decided: CallContext
    pending_events: tuple[PendingEvent, ...]


_MAX_KEPT_MARKS = 10_000
_UNAUDITED = """
SELECT call_id FROM event WHERE seq > ? AND runner = ? AND kind IN ('tool_call.end', 'tool_call.error') ORDER BY seq
"""
_DECIDE_ANEW = "UPDATE event SET decided = ? WHERE seq = (SELECT start_seq FROM call WHERE id = ?)"
_INSERT_GIVEN = "INSERT INTO given VALUES (?, ?)"
_START_BEHIND = "SELECT seq FROM event WHERE seq > ? AND call_id = ? AND kind = 'tool_call.start' LIMIT 1"
_END_OF_CALL = """
SELECT seq FROM event WHERE seq > ? AND call_id = ? AND kind IN ('tool_call.end', 'tool_call.error') LIMIT 1
"""
_CHANGE_OF_CALL = "SELECT seq FROM event WHERE seq > ? AND call_id = ? AND kind = 'change' LIMIT 1"
_REACHED = "SELECT seq, kind, data FROM event WHERE seq > ? AND call_id = ? AND kind = 'network'"
_ENDS = """
SELECT seq, call_id, kind, data FROM event
WHERE seq > ? AND kind IN ('tool_call.end', 'tool_call.error') ORDER BY seq LIMIT 100
"""


class SessionJournal:
    """Appends to one session's journal and reads it back."""

    def __init__(self, database: Database, session_id: str, runner: str) -> None:
        self.database = database
        self.session_id = session_id
        self.runner = runner
        self._seq = self.last_seq()
        self._listeners = Listeners(self._note_failure)
        self._unseen: dict[str, bytes] = {}
        """Marks that go with the next transaction."""
        self._marks: dict[str, bytes] = {}
        """Marks that are stored, as far as this process knows."""
        self._conversation: Callable[[], str] | None = None
        self._seen_by: set[tuple[str, str]] = set()
        """Conversations, each with a path that it has seen."""
        self.digests: dict[str, Callable[[], str]] = {}
        """What calls on their way are found again by, should they wait: their callers know no ids."""

    # Writing

    def new_call_id(self) -> str:
        """An id for a call that comes in now."""
        return make_call_id(self._seq)

    def append(
        self, *drafts: PendingEvent, also: tuple[tuple[str, Row], ...] = (), stored: Callable[[], object] | None = None
    ) -> None:
        """Writes events, and statements that must stand or fall with them. `stored` is called before the listeners."""

        def statements(_first: int, _last: int) -> None:
            for statement, values in also:
                self.database.execute(statement, values)

        self._write(drafts, statements)
        if stored is not None:
            stored()
        self.deliver()

    def record(
        self, call_id: str, decided: CallContext, state: str, drafts: tuple[PendingEvent, ...], *, given: bool
    ) -> None:
        """Writes a call for the first time: started, or finished at once. Its first draft is its start.

        An id that was given to us may have been used before, and is kept in a table of its own: DuplicateCallError.
        """

        if not given and state == "finished":
            insert = None
        else:
            insert = partial(self._insert_call, call_id, decided.batch_id, state, given)
        self._write(drafts, insert, bytearray(encode(decided)))

    def _insert_call(self, call_id: str, batch_id: str, state: str, given: bool, first: int, _last: int) -> None:
        if given:
            self.database.execute(_INSERT_GIVEN, (call_id, first))
        if state != "finished":
            row = (call_id, batch_id, self.runner, state, first)
            self.database.execute("INSERT INTO call VALUES (?, ?, ?, ?, ?)", row)

    def set_state(
        self, call_id: str, state: str, drafts: tuple[PendingEvent, ...], decided: CallContext | None = None
    ) -> None:
        """Takes a call that is written down already to its next state; a finished one is no longer open. `decided`:
        what it was decided on, where that is more by now than when it began.

        DuplicateCallError when it is not open: there is one result, and it has it.
        """

        def update(_first: int, _last: int) -> None:
            if decided is not None:
                self.database.execute(_DECIDE_ANEW, (encode(decided), call_id))
            if state == "finished":
                done = self.database.execute("DELETE FROM call WHERE id = ?", (call_id,))
            else:
                statement = "UPDATE call SET state = ?, runner = ? WHERE id = ?"
                done = self.database.execute(statement, (state, self.runner, call_id))
            if done.rowcount != 1:
                raise DuplicateCallError

        self._write(drafts, update)

    def park(self, batch_id: str, calls: tuple[NewCall, ...], requests: tuple[Row, ...]) -> None:
        """Writes down a whole batch as waiting, and what is asked about it: (request id, call id, request) each."""

        def insert(first: int, _last: int) -> None:
            approvals.insert_calls(self.database, self.runner, batch_id, calls, first)
            approvals.insert_batch(self.database, batch_id, tuple(call.id for call in calls))
            for request in requests:
                approvals.insert_request(self.database, batch_id, request)
            self._note_left(calls)

        self._write(tuple(draft for call in calls for draft in call.pending_events), insert)

    def park_late(
        self, batch_id: str, begun: NewCall, later: tuple[NewCall, ...], calls: tuple[str, ...], request: Row
    ) -> None:
        """Writes down a call that has begun as waiting, since what it came to asks, and with it those of its batch that
        come after it: `later` those that are not written down yet. `calls`: all of the batch, in their order; those
        before it stay done. DuplicateCallError where the call is not this runner's any more.
        """

        def update(first: int, _last: int) -> None:
            if not approvals.park_begun(self.database, self.runner, batch_id, begun.id):
                raise DuplicateCallError
            self.database.execute(_DECIDE_ANEW, (encode(begun.decided), begun.id))
            approvals.insert_calls(self.database, self.runner, batch_id, later, first + len(begun.pending_events))
            approvals.insert_batch(self.database, batch_id, calls)
            approvals.insert_request(self.database, batch_id, request)
            self._note_left((begun, *later))

        self._write(tuple(draft for call in (begun, *later) for draft in call.pending_events), update)

    def _note_left(self, calls: tuple[NewCall, ...]) -> None:
        found = ((call.id, self.digests[call.id]()) for call in calls if call.id in self.digests)
        approvals.insert_deferred(self.database, self.runner, (one for one in found if one[1]))

    def renew(self, request_id: str, shown: bytes, anew: tuple[str, bytes], call: NewCall) -> bool:
        """Puts another question in the place of one that is stored as it was shown, and has no answer; whether it did.
        `anew`: its id, and the question.

        The call is then judged as that says: what it was decided on is put in its place too.
        """

        def update(_first: int, _last: int) -> None:
            execute = self.database.execute
            statement = "UPDATE request SET id = ?, data = ? WHERE id = ? AND data = ? AND answer IS NULL"
            if execute(statement, (*anew, request_id, shown)).rowcount != 1:
                raise _AnsweredError
            execute(_DECIDE_ANEW, (encode(call.decided), call.id))

        try:
            self._write(call.pending_events, update)
        except _AnsweredError:
            return False
        return True

    def answer(
        self, request_id: str, batch_id: str, shown: bytes, answer: bytes, event: PendingEvent
    ) -> list[str] | None:
        """Writes down the answer to a request; None when it had one, or is not stored as it was shown.

        With the last answer of a batch this runner takes the batch over in the same moment: then these are its calls,
        and nobody else runs them.
        """
        calls: list[str] = []

        def update(_first: int, _last: int) -> None:
            statement = "UPDATE request SET answer = ? WHERE id = ? AND data = ? AND answer IS NULL"
            if self.database.execute(statement, (answer, request_id, shown)).rowcount != 1:
                raise _AnsweredError
            calls[:] = self._take_over(batch_id)

        try:
            self._write((event,), update)
        except _AnsweredError:
            return None
        return calls

    def _take_over(self, batch_id: str) -> list[str]:
        execute = self.database.execute
        open_request = "SELECT 1 FROM request WHERE batch_id = ? AND answer IS NULL"
        take = "UPDATE batch SET state = 'taken' WHERE id = ? AND state = 'parked'"
        if execute(open_request, (batch_id,)).fetchone() or execute(take, (batch_id,)).rowcount != 1:
            return []
        claim = "UPDATE call SET state = 'claimed', runner = ? WHERE batch_id = ? AND state = 'parked'"
        execute(claim, (self.runner, batch_id))
        calls: str = execute("SELECT calls FROM batch WHERE id = ?", (batch_id,)).fetchone()[0]
        return calls.split()

    def _write(
        self,
        drafts: tuple[PendingEvent, ...],
        statements: Callable[[int, int], None] | None,
        decided: bytearray | None = None,
    ) -> None:
        """One transaction: the events, then what belongs to them. What it stored is told afterwards, and only then.

        The events are numbered before the transaction begins. If another process was faster, the numbers are taken:
        then its events are read first, and the write is tried again behind them.
        """
        with self.database.lock:
            while True:
                events, values = self._numbered(drafts, decided)
                marks = self._new_marks()
                try:
                    if statements is None and not marks:
                        # One statement is a transaction of its own, and cheaper than BEGIN and COMMIT around it.
                        self.database.run_held(_insert_events(len(events)), values)
                    else:
                        self._write_together(events, values, statements, marks)
                    break
                except StoreError as error:
                    self._read_on(error)
            self._seq += len(events)
            self._marks.update(marks)
            self._unseen.clear()
            if self._listeners.everyone:
                self._listeners.put(events)

    def _write_together(
        self,
        events: list[Event],
        values: list[Any],
        statements: Callable[[int, int], None] | None,
        marks: dict[str, bytes],
    ) -> None:
        with self.database.transaction:
            if events:
                self.database.execute(_insert_events(len(events)), values)
            if statements is not None:
                statements(self._seq + 1, self._seq + len(events))
            for path, mark in marks.items():
                self.database.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (path, mark))

    def _numbered(self, drafts: tuple[PendingEvent, ...], decided: bytearray | None) -> tuple[list[Event], list[Any]]:
        """The drafts as events that follow the last one, and the values of their rows; the first has `decided`.

        For bytes sqlite3 would look for an adapter, each time: that costs more than to copy them.
        """
        now, session, seq = datetime.now(UTC), self.session_id, self._seq
        events: list[Event] = []
        values: list[Any] = []
        for kind, fields in drafts:
            seq += 1
            event = kind(event_id=f"{session}:{seq}", seq=seq, session_id=session, time=now, **fields)
            events.append(event)
            values += (seq, KIND_NAMES[kind], fields.get("tool_call_id"), self.runner, bytearray(encode(event)))
            if len(events) == 1:
                values.append(decided)
        return events, values

    def _read_on(self, error: StoreError) -> None:
        """After a write that failed because another process took the numbers: its events come first."""
        cause = str(error.__cause__)
        if "event.seq" in cause:
            self._marks.clear()
            self._catch_up()
        elif "call.id" in cause or "given.id" in cause:
            raise DuplicateCallError from None
        else:
            raise error

    def _new_marks(self) -> dict[str, bytes]:
        """The marks that are not stored as they are."""
        if len(self._marks) > _MAX_KEPT_MARKS:
            self._marks.clear()
        return {path: mark for path, mark in self._unseen.items() if self._marks.get(path) != mark}

    def note_audited(self, size: int) -> None:
        """Writes down that every call finished by this runner so far has its line, all before a size of the audit."""
        self.database.run("INSERT OR REPLACE INTO runner VALUES (?, ?, ?)", (self.runner, self._seq, size))

    def unaudited(self, runner: str) -> tuple[list[str], int]:
        """Calls a runner finished after its last note, and from where on the audit may have their lines."""
        note = self.database.row("SELECT audited, audit_size FROM runner WHERE id = ?", (runner,)) or (0, 0)
        return [str(row[0]) for row in self.database.rows(_UNAUDITED, (note[0], runner))], int(note[1])

    def forget_runner(self, runner: str) -> None:
        """Removes a runner's note."""
        self.database.run("DELETE FROM runner WHERE id = ?", (runner,))

    # Listening

    def subscribe(self, listener: Listener, kinds: Kinds | None = None) -> Callable[[], None]:
        """Calls the listener with every event from now on, or with those of some kinds, in order; returns how to stop
        that."""
        with self.database.lock:
            self._catch_up()
            return self._listeners.add(listener, self._seq, kinds)

    def deliver(self) -> None:
        """Tells the listeners what is stored.

        Whatever writes leaves this to its caller, who may hold locks that a listener would wait for; only `append`
        does it itself.
        """
        self._listeners.deliver()

    def _note_failure(self, kind: str) -> None:
        text = f"A listener failed ({kind}) and hears no more."
        with contextlib.suppress(StoreError):
            self.append((Notice, {"code": "LISTENER_REMOVED", "text": text}))

    def _catch_up(self) -> None:
        """Goes on to the last number; events of other processes on the way are for the listeners there are."""
        if not self._listeners.everyone:
            self._seq = self.last_seq()
            return
        found = list(self.events(self._seq))
        self._listeners.put(event for event in found if isinstance(event, Event))
        # Not the last number that there is by now: what was written since the look is for the next one.
        self._seq = found[-1].seq if found else self._seq

    # Reading

    def events(self, after: int = 0) -> Iterator[AnyEvent | BrokenEvent]:
        """Every event after a number, oldest first."""
        query = "SELECT seq, kind, data FROM event WHERE seq > ? ORDER BY seq LIMIT 500"
        for row in self.database.pages(query, after):
            yield _read_event(*row)

    def event(self, seq: int) -> AnyEvent | BrokenEvent:
        """The event of one number."""
        row = self.database.row("SELECT seq, kind, data FROM event WHERE seq = ?", (seq,))
        return _read_event(*row) if row else BrokenEvent(seq, "", "there is no such event")

    def last_of(self, *kinds: str) -> AnyEvent | BrokenEvent | None:
        """The last event of one of these kinds."""
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT seq, kind, data FROM event WHERE kind IN ({marks}) ORDER BY seq DESC LIMIT 1"  # noqa: S608
        row = self.database.row(query, kinds)
        return _read_event(*row) if row else None

    def entry(self, call_id: str) -> CallEntry | None:
        """What is known about one call."""
        # In this order: a call that is begun in between is then not known yet, and never taken for finished.
        start = self._start_of(call_id)
        if start is None:
            return None
        row = self.database.row("SELECT state FROM call WHERE id = ?", (call_id,))
        return self._entry(call_id, row[0] if row else "finished", start)

    def has_reached(self, call_id: str) -> bool:
        """Whether a call reached a host, as far as it is written down."""
        start = self._start_of(call_id)
        rows = self.database.rows(_REACHED, (start, call_id)) if start is not None else []
        events = (_read_event(*row) for row in rows)
        return any(isinstance(event, Network) and event.allowed for event in events)

    def change_of(self, entry: CallEntry) -> ChangeSet | None:
        """What a call changed, as far as it is written down."""
        row = self.database.row(_CHANGE_OF_CALL, (entry.start_seq, entry.id))
        event = self.event(row[0]) if row else None
        return event.change if isinstance(event, ChangeEvent) else None

    def _start_of(self, call_id: str) -> int | None:
        row = self.database.row("SELECT start_seq FROM given WHERE id = ?", (call_id,))
        behind = parse_call_position(call_id)
        if row is None and behind is not None:  # it looks like one of our own making
            row = self.database.row(_START_BEHIND, (behind, call_id))
        return row[0] if row else None

    def unfinished(self, runner: str, state: str = "started") -> list[CallEntry]:
        """The calls of one runner that have no result."""
        query = "SELECT id, state, start_seq FROM call WHERE state = ? AND runner = ?"
        return [self._entry(*row) for row in self.database.rows(query, (state, runner))]

    def has_begun_calls(self) -> bool:
        """Whether a call that this runner began or took over has no result."""
        query = "SELECT 1 FROM call WHERE runner = ? AND state IN ('claimed', 'started')"
        return self.database.row(query, (self.runner,)) is not None

    def _entry(self, call_id: str, state: str, start_seq: int) -> CallEntry:
        row = self.database.row("SELECT decided FROM event WHERE seq = ?", (start_seq,))
        try:
            decided = decode_json(row[0] if row and row[0] else b"", CallContext)
        except UNREADABLE:
            decided = _UNREADABLE
        end = None
        if state == "finished":
            end = self.database.row(_END_OF_CALL, (start_seq, call_id))
        return CallEntry(
            call_id,
            state,
            decided.batch_id,
            decided.facts,
            decided.decision,
            start_seq,
            end[0] if end else None,
            decided.judged,
        )

    def finished(self) -> Iterator[tuple[str, ToolResult[Any] | None]]:
        """The calls that have a result, in the order they got it; None for a result that cannot be read."""
        for seq, call_id, kind, data in self.database.pages(_ENDS, 0):
            event = _read_event(seq, kind, data)
            yield call_id, event.result if isinstance(event, ToolCallEnd | ToolCallError) else None

    def last_seq(self) -> int:
        """The number of the last event."""
        row = self.database.row("SELECT seq FROM event ORDER BY seq DESC LIMIT 1")
        return row[0] if row else 0

    # What the session has seen of files

    def get_mark(self, path: str) -> bytes | None:
        """The mark that was last put on a file; None if the conversation has not seen the file."""
        if self._conversation is not None and (self._conversation(), path) not in self._seen_by:
            return None
        mark = self._unseen.get(path)
        if mark is None:
            row = self.database.row("SELECT mark FROM seen WHERE path = ?", (path,))
            mark = bytes(row[0]) if row else None
        return mark

    def set_mark(self, path: str, mark: bytes) -> None:
        """Marks a file; written with the result of the call that read or wrote it."""
        with self.database.lock:
            self._unseen[path] = mark
            if self._conversation is not None:
                self._seen_by.add((self._conversation(), path))

    def begin_conversations(self, current: Callable[[], str]) -> None:
        """Removes all marks. From here on a mark counts for conversations that have seen the file themselves."""
        with self.database.lock, self.database.transaction:
            self.database.execute("DELETE FROM seen")
            self._unseen.clear()
            self._marks.clear()
            self._conversation = current


@cache
def _insert_events(count: int) -> str:
    """Only the first has what was decided."""
    return f"INSERT INTO event VALUES (?, ?, ?, ?, ?, ?){', (?, ?, ?, ?, ?, NULL)' * (count - 1)}"  # noqa: S608  only question marks


def _read_event(seq: int, kind: str, data: bytes) -> AnyEvent | BrokenEvent:
    try:
        return decode_event(data)
    except UNREADABLE as error:
        return BrokenEvent(seq, kind, str(error))
