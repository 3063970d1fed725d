"""The journal of a session: every event in order.

The journal is the checkpoint. A call that may have effects is recorded as started before its first effect. A call
without effects is recorded once, with its result. A result is stored before it is reported.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Decision, Facts, Mode
from handrail.protocol.errors import StoreError
from handrail.protocol.events import (
    KIND_NAMES,
    AnyEvent,
    BrokenEvent,
    ChangeEvent,
    Event,
    Network,
    Notice,
    ToolCallEnd,
    ToolCallError,
    ToolCallStart,
    decode_event,
)
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.store.database import Database, Row, RowMarker

if TYPE_CHECKING:
    from handrail.store.listeners import Kinds, Listener, Listeners

PendingEvent = tuple[type[Event], dict[str, Any]]
"""An event without a number: its type and its own fields."""
SKILL_MARKER, LEFT_CALL_MARKER = "-skills", "-left"
"""The ends of the names of row markers. They are about active skills, and about calls that a client finds again."""
_MAX_KNOWN_MARKS = 10_000
_HEAD = b'{"kind":"%b","eventId":"%b:%d","seq":%d,"sessionId":"%b",'
_FIRST_FIELD = b'{"time":'  # of a row
_TIME = _FIRST_FIELD[1:]
_OWN_ID = r"call-([0-9a-f]{1,15})-[0-9a-f]{16}"
_OPEN_CALLS = "SELECT id, batch_id, runner, state, start_seq FROM call"
_SET_STATE = "UPDATE call SET state = ?, runner = ? WHERE id = ?"
_PARK_STARTED = "UPDATE call SET state = 'parked' WHERE id = ? AND state = 'started' AND runner = ?"
_PARK_CLAIMED = "UPDATE call SET state = 'parked' WHERE batch_id = ? AND state = 'claimed' AND runner = ?"
_CLAIM = "UPDATE call SET state = ?, runner = ? WHERE batch_id = ? AND state = ?"
_RELEASE = "UPDATE call SET state = 'ready' WHERE runner = ? AND state = 'claimed' AND batch_id = coalesce(?, batch_id)"
_ENDS = "kind IN ('tool_call.end', 'tool_call.error')"
_EVENTS = "SELECT seq, kind, data FROM event"
_END_OF_CALL = f"SELECT seq FROM event WHERE seq > ? AND call_id = ? AND {_ENDS} LIMIT 1"  # noqa: S608
_FINISHED = f"SELECT seq, call_id, kind, data FROM event WHERE seq > ? AND {_ENDS} ORDER BY seq LIMIT 100"  # noqa: S608
_START_OF_CALL = "SELECT seq FROM event WHERE seq > ? AND call_id = ? AND kind = 'tool_call.start' LIMIT 1"
_STARTS = "SELECT seq, data, decided FROM event WHERE seq > ? AND kind = 'tool_call.start' ORDER BY seq LIMIT 500"
_LAST_ENDS = f"{_EVENTS} WHERE seq < ? AND kind = 'tool_call.end' AND instr(data, ?) > 0"


class OpenCall(msgspec.Struct, frozen=True):
    id: str
    batch_id: str
    runner: str
    state: str
    """parked, claimed, ready (claimed by a runner that was killed before the call began) or started."""
    start_seq: int
    """The number of its first event."""


class DuplicateCallError(Exception):
    """A call of this id is in the journal already."""


class CallContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """The basis of a call's decision, stored beside its first event."""

    batch_id: str
    facts: Facts
    decision: Decision
    mode: Mode | None = None
    """None in journals of older versions, and if policy was not asked."""
    unattended: bool = False
    """Whether no person could answer."""
    judged: Decision | None = None
    """The decision about the outcome of the call, unless that was a plain allow."""


class CallEntry(msgspec.Struct, frozen=True):
    """A call as the journal knows it, besides its events."""

    id: str
    state: str
    """finished, or the state of an open call."""
    batch_id: str
    facts: Facts
    decision: Decision
    start_seq: int
    end_seq: int | None
    judged: Decision | None = None


class PastCall(msgspec.Struct, frozen=True):
    """The start of a call with the basis of its decision."""

    start: ToolCallStart
    decided: CallContext


_LOST = Decision(decision="deny", rule="journal.broken", reason="the facts of the decision cannot be read")
_LOST_CONTEXT = CallContext(batch_id="", facts=Facts(), decision=_LOST)


class SessionJournal:
    def __init__(self, database: Database, session_id: str, runner: str) -> None:
        self.database = database
        self.session_id = session_id
        self.runner = runner
        self.seq = self.last_seq()
        """The number of the last event that this process knows."""
        self._listeners: Listeners | None = None
        self._new_marks: dict[str, bytes] = {}
        """Marks that go with the next transaction."""
        self._known_marks: dict[str, bytes] = {}
        """Marks that are stored, as far as this process knows."""
        self._conversation: Callable[[], str] | None = None
        self._seen_by: set[tuple[str, str]] = set()
        """Conversations, each with a path that it has seen."""
        self.digests: dict[str, Callable[[], str]] = {}
        """By the ids of running calls: the digest by which a client finds the call again if it is parked."""
        self._numbers = count(int.from_bytes(os.urandom(8), "big") >> 1)  # of ids, in each process others
        self.skill_marker = RowMarker(database.path + SKILL_MARKER)
        self.left_call_marker = RowMarker(database.path + LEFT_CALL_MARKER)

    # Writing

    def new_call_id(self) -> str:
        """An id for a call that starts after the last event. The number replaces an index."""
        return f"call-{self.seq:x}-{next(self._numbers):016x}"

    def append(
        self, *pending: PendingEvent, also: tuple[tuple[str, Row], ...] = (), stored: Callable[[], object] | None = None
    ) -> None:
        """Stores events in one transaction with other statements. `stored` is called before the listeners."""

        def execute_all(_first: int) -> None:
            for statement, values in also:
                self.database.execute(statement, values)

        self.write(pending, execute_all)
        if stored is not None:
            stored()
        self.deliver()

    def record(
        self, call_id: str, decided: CallContext, state: str, pending: tuple[PendingEvent, ...], *, given: bool
    ) -> None:
        """Stores a new call: started, or finished at once. Its first event is its start.

        DuplicateCallError if `given`, an id from outside, was used before.
        """

        def insert(first: int) -> None:
            self.insert_call(call_id, decided.batch_id, state, first, given=given)

        self.write(pending, insert if given or state != "finished" else None, decided)

    def insert_call(self, call_id: str, batch_id: str, state: str, first: int, *, given: bool) -> None:
        """Inserts the rows of a call whose first event has this number, within a transaction."""
        if given:
            self.database.execute("INSERT INTO given VALUES (?, ?)", (call_id, first))
        if state != "finished":
            row = (call_id, batch_id, self.runner, state, first)
            self.database.execute("INSERT INTO call VALUES (?, ?, ?, ?, ?)", row)

    def set_state(
        self, call_id: str, state: str, pending: tuple[PendingEvent, ...], decided: CallContext | None = None
    ) -> None:
        """Moves a stored call to its next state. `decided` replaces its context.

        DuplicateCallError if the call is not open: it has its result.
        """

        def update(_first: int) -> None:
            if decided is not None:
                self.set_context(call_id, decided)
            if state == "finished":
                changed = self.database.execute("DELETE FROM call WHERE id = ?", (call_id,))
            else:
                changed = self.database.execute(_SET_STATE, (state, self.runner, call_id))
            if changed.rowcount != 1:
                raise DuplicateCallError

        self.write(pending, update)

    def set_context(self, call_id: str, decided: CallContext) -> None:
        """Replaces the context of an open call, within a transaction."""
        call = find_call(self.database, call_id)
        if call is not None:
            self.database.execute("UPDATE event SET decided = ? WHERE seq = ?", (encode(decided), call.start_seq))

    def write(
        self,
        pending: tuple[PendingEvent, ...],
        statements: Callable[[int], None] | None,
        decided: CallContext | None = None,
    ) -> None:
        """Stores events, statements and new marks in one transaction. `statements` gets the number of the first event.

        Events are numbered before the transaction. If another process takes the numbers, its events are read first.
        """
        context = bytearray(encode(decided)) if decided is not None else None
        with self.database.lock:
            while True:
                events, values = self._number(pending, context)
                marks = self._pick_changed_marks()
                try:
                    if statements is None and not marks and not self.database.in_transaction:
                        # One statement is its own transaction, and cheaper than BEGIN and COMMIT around it.
                        self.database.execute(_insert_events(len(events)), values)
                    else:
                        with self.database.transaction:
                            if events:
                                self.database.execute(_insert_events(len(events)), values)
                            if statements is not None:
                                statements(self.seq + 1)
                            for path, mark in marks.items():
                                self.database.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (path, mark))
                    break
                except (StoreError, self.database.error) as error:
                    if self._is_stored_despite(error, bool(events)):
                        break
            self.seq += len(events)
            self._known_marks.update(marks)
            self._new_marks.clear()
            if self._listeners is not None:
                self._listeners.put(events)

    def _number(self, pending: tuple[PendingEvent, ...], context: bytearray | None) -> tuple[list[Event], list[Any]]:
        """The events with their numbers, and the values of their rows. Only the first row has the context.

        A row has the fields from `time` on: its columns know the others. For bytes sqlite3 looks up an adapter each
        time, which costs more than a bytearray.
        """
        now, session, seq = datetime.now(UTC), self.session_id, self.seq
        events: list[Event] = []
        values: list[Any] = []
        for kind, fields in pending:
            seq += 1
            event = kind(event_id=f"{session}:{seq}", seq=seq, session_id=session, time=now, **fields)
            events.append(event)
            data = bytearray(encode(event))
            del data[1 : data.index(_TIME)]
            values += (seq, KIND_NAMES[kind], fields.get("tool_call_id"), self.runner, data)
            if len(events) == 1:
                values.append(context)
        return events, values

    def _is_stored_despite(self, error: Exception, numbered: bool) -> bool:
        """Whether a write was stored although its connection was lost. If not, prepares another try, or raises."""
        if self.database.reconnect(error):
            row = self.database.row("SELECT runner FROM event WHERE seq = ?", (self.seq + 1,)) if numbered else None
            return row == (self.runner,)
        cause = str(error.__cause__ or error).partition("\n")[0]
        if "call.id" in cause or "given.id" in cause:
            raise DuplicateCallError from None
        if "event.seq" not in cause:
            self.database.fail(error)
        self._known_marks.clear()
        self._catch_up()
        return False

    # Listeners

    def subscribe(self, listener: "Listener", kinds: "Kinds | None" = None) -> Callable[[], None]:
        """Calls the listener with every later event, or those of some kinds, in order. Returns a function to stop."""
        from handrail.store.listeners import Listeners  # noqa: PLC0415  most calls from a shell have none

        with self.database.lock:
            self._catch_up()
            if self._listeners is None:
                self._listeners = Listeners(self._report_failure)
            return self._listeners.add(listener, self.seq, kinds)

    def deliver(self) -> None:
        """Calls the listeners with the stored events.

        Only `append` does it itself. Other writers leave it to their callers, who may hold locks that a listener needs.
        """
        if self._listeners is not None:
            self._listeners.deliver()

    def _report_failure(self, kind: str) -> None:
        text = f"A listener failed ({kind}) and gets no more events."
        with contextlib.suppress(StoreError):
            self.append((Notice, {"code": "LISTENER_REMOVED", "text": text}))

    def _catch_up(self) -> None:
        """Moves on to the last number. Listeners get the events of other processes."""
        if self._listeners is None or not self._listeners.everyone:
            self.seq = self.last_seq()
            return
        found = list(self.events(self.seq))
        self._listeners.put(event for event in found if isinstance(event, Event))
        self.seq = found[-1].seq if found else self.seq  # not `last_seq`: later events are for the next time

    # Reading

    def last_seq(self) -> int:
        return next((seq for (seq,) in self.database.rows("SELECT seq FROM event ORDER BY seq DESC LIMIT 1")), 0)

    def events(self, after: int = 0) -> Iterator[AnyEvent | BrokenEvent]:
        for row in self.database.pages(f"{_EVENTS} WHERE seq > ? ORDER BY seq LIMIT 500", after):
            yield self._read_event(*row)

    def event(self, seq: int) -> AnyEvent | BrokenEvent:
        row = self.database.row(f"{_EVENTS} WHERE seq = ?", (seq,))
        return self._read_event(*row) if row else BrokenEvent(seq, "", "there is no such event")

    def find_last(self, *kinds: str, before: int = 1 << 62) -> AnyEvent | BrokenEvent | None:
        query = f"{_EVENTS} WHERE kind IN ({', '.join('?' * len(kinds))}) AND seq < ? ORDER BY seq DESC LIMIT 1"
        row = self.database.row(query, (*kinds, before))
        return self._read_event(*row) if row else None

    def list_events_of(self, call_id: str | None, *kinds: str, after: int = 0) -> list[AnyEvent | BrokenEvent]:
        of_call, ids = ("", ()) if call_id is None else ("call_id = ? AND ", (call_id,))
        query = f"{_EVENTS} WHERE {of_call}kind IN ({', '.join('?' * len(kinds))}) AND seq > ? ORDER BY seq"
        return [self._read_event(*row) for row in self.database.rows(query, (*ids, *kinds, after))]

    def entry(self, call_id: str) -> CallEntry | None:
        # The start first: a call that begins between the two queries is unknown then, and not finished.
        start = self._find_start(call_id)
        if start is None:
            return None
        call = find_call(self.database, call_id)
        return self._read_entry(call_id, call.state if call else "finished", start)

    def list_unfinished(self, runner: str, state: str = "started") -> list[CallEntry]:
        calls = [call for call in list_calls(self.database, state) if call.runner == runner]
        return [self._read_entry(call.id, call.state, call.start_seq) for call in calls]

    def ends_with(self, text: str) -> Iterator[AnyEvent | BrokenEvent]:
        """The results of calls that contain a text, the last first."""
        before = 1 << 62
        while row := self.database.row(f"{_LAST_ENDS} ORDER BY seq DESC LIMIT 1", (before, text.encode())):
            before = row[0]
            yield self._read_event(*row)

    def has_reached(self, call_id: str) -> bool:
        """Whether a call is known to have reached a host."""
        start = self._find_start(call_id)
        events = self.list_events_of(call_id, "network", after=start) if start is not None else []
        return any(isinstance(event, Network) and event.allowed for event in events)

    def change_of(self, entry: CallEntry) -> ChangeSet | None:
        event = next(iter(self.list_events_of(entry.id, "change", after=entry.start_seq)), None)
        return event.change if isinstance(event, ChangeEvent) else None

    def context(self, seq: int) -> CallContext | None:
        """The context of the call that starts with an event. None if it cannot be read."""
        row = self.database.row("SELECT decided FROM event WHERE seq = ?", (seq,))
        try:
            return decode_json(row[0] if row and row[0] else b"", CallContext)
        except UNREADABLE:
            return None

    def _find_start(self, call_id: str) -> int | None:
        row = self.database.row("SELECT start_seq FROM given WHERE id = ?", (call_id,))
        if row is None and (own := re.fullmatch(_OWN_ID, call_id)):  # it has the number of the event before the call
            row = self.database.row(_START_OF_CALL, (int(own[1], 16), call_id))
        return row[0] if row else None

    def _read_entry(self, call_id: str, state: str, start_seq: int) -> CallEntry:
        basis = self.context(start_seq) or _LOST_CONTEXT
        end = self.database.row(_END_OF_CALL, (start_seq, call_id)) if state == "finished" else None
        decided = (basis.batch_id, basis.facts, basis.decision)
        return CallEntry(call_id, state, *decided, start_seq, end[0] if end else None, basis.judged)

    def list_past_calls(self) -> Iterator[PastCall | BrokenEvent]:
        for row in self.database.pages(_STARTS, 0):
            yield self._read_start(*row)

    def list_finished(self) -> Iterator[tuple[str, ToolResult[Any] | None]]:
        """The calls that have a result, in the order of their ends. None for a result that cannot be read."""
        for seq, call_id, kind, data in self.database.pages(_FINISHED, 0):
            event = self._read_event(seq, kind, data)
            yield call_id, event.result if isinstance(event, ToolCallEnd | ToolCallError) else None

    def count_finished(self) -> int:
        return self.database.rows(f"SELECT count(*) FROM event WHERE {_ENDS}")[0][0]  # noqa: S608

    def list_finished_by(self, runner: str, after: int) -> list[str]:
        """The calls that a runner finished after a number, in the order of their ends."""
        query = f"SELECT call_id FROM event WHERE seq > ? AND runner = ? AND {_ENDS} ORDER BY seq"  # noqa: S608
        return [str(row[0]) for row in self.database.rows(query, (after, runner))]

    def _read_event(self, seq: int, kind: str, data: bytes) -> AnyEvent | BrokenEvent:
        try:
            if data[: len(_FIRST_FIELD)] == _FIRST_FIELD:  # a row of an older version has all fields
                session = encode(self.session_id)[1:-1]
                data = _HEAD % (kind.encode(), session, seq, seq, session) + data[1:]
            return decode_event(data)
        except UNREADABLE as error:
            return BrokenEvent(seq, kind, str(error))

    def _read_start(self, seq: int, data: bytes, decided: bytes | None) -> PastCall | BrokenEvent:
        event = self._read_event(seq, "tool_call.start", data)
        if not isinstance(event, ToolCallStart):
            return event if isinstance(event, BrokenEvent) else BrokenEvent(seq, "tool_call.start", "it is not a call")
        try:
            return PastCall(event, decode_json(decided or b"", CallContext))
        except UNREADABLE as error:
            return BrokenEvent(seq, "tool_call.start", str(error))

    # Open calls: those without a result. A call leaves the table with its result, so the table is always small.

    def park_started_call(self, call_id: str, batch_id: str) -> bool:
        """Parks a call that this runner started, with the calls of its batch that the runner claimed, within a
        transaction. Returns whether it was started by this runner."""
        if self.database.execute(_PARK_STARTED, (call_id, self.runner)).rowcount != 1:
            return False
        self.database.execute(_PARK_CLAIMED, (batch_id, self.runner))
        return True

    def claim_calls(self, batch_id: str, state: str, *, new: str = "claimed") -> bool:
        """Claims the calls of a batch that are in a state, within a transaction. Returns whether there were any."""
        return self.database.execute(_CLAIM, (new, self.runner, batch_id, state)).rowcount > 0

    def release_claims(self, runner: str, batch_id: str | None = None) -> None:
        """Makes the calls ready that a runner claimed and did not begin, of one batch or of all."""
        self.database.run(_RELEASE, (runner, batch_id))

    def has_begun_calls(self) -> bool:
        """Whether a call that this runner began or claimed has no result."""
        return any(call.runner == self.runner for call in list_calls(self.database, "claimed", "started"))

    def list_ready_batches(self) -> list[str]:
        """The batches with calls that are ready to run, the oldest first."""
        ready = sorted(list_calls(self.database, "ready"), key=lambda call: call.start_seq)
        return list(dict.fromkeys(call.batch_id for call in ready))

    # Files that the session has seen

    def get_mark(self, path: str) -> bytes | None:
        """The last mark of a file. None if the conversation has not seen the file."""
        if self._conversation is not None and (self._conversation(), path) not in self._seen_by:
            return None
        if (mark := self._new_marks.get(path)) is not None:
            return mark
        row = self.database.row("SELECT mark FROM seen WHERE path = ?", (path,))
        return bytes(row[0]) if row else None

    def set_mark(self, path: str, mark: bytes) -> None:
        """Marks a file. The mark is stored with the result of the call that read or wrote the file."""
        with self.database.lock:
            self._new_marks[path] = mark
            if self._conversation is not None:
                self._seen_by.add((self._conversation(), path))

    def begin_conversations(self, current: Callable[[], str]) -> None:
        """Removes all marks. A mark counts from now on for conversations that have seen the file themselves."""
        with self.database.lock, self.database.transaction:
            self.database.execute("DELETE FROM seen")
            self._new_marks.clear()
            self._known_marks.clear()
            self._conversation = current

    def _pick_changed_marks(self) -> dict[str, bytes]:
        if len(self._known_marks) > _MAX_KNOWN_MARKS:
            self._known_marks.clear()
        return {path: mark for path, mark in self._new_marks.items() if self._known_marks.get(path) != mark}


def find_call(database: Database, call_id: str) -> OpenCall | None:
    row = database.row(f"{_OPEN_CALLS} WHERE id = ?", (call_id,))
    return OpenCall(*row) if row else None


def list_calls(database: Database, *states: str) -> list[OpenCall]:
    """The open calls by id: all, or those in some states."""
    calls = [OpenCall(*row) for row in database.rows(f"{_OPEN_CALLS} ORDER BY id")]
    return [call for call in calls if not states or call.state in states]


def copy_marks(source: Database, target: Database) -> None:
    """Copies the marks of all files, within a transaction of the target."""
    target.copy_rows(source, "INSERT INTO seen VALUES (?, ?)", "SELECT path, mark FROM seen")


@cache
def _insert_events(count: int) -> str:
    return f"INSERT INTO event VALUES (?, ?, ?, ?, ?, ?){', (?, ?, ?, ?, ?, NULL)' * (count - 1)}"  # noqa: S608  only question marks
