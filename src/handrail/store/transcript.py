"""Messages of a session, its todo list, and forks of it."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache

import msgspec

from handrail.protocol.errors import StoreError, UsageError
from handrail.protocol.events import Notice, ToolCallEnd, decode_event
from handrail.protocol.messages import AssistantMessage, CallResult, Message, ResultsMessage, UserMessage
from handrail.protocol.records import TodoItem
from handrail.protocol.wire import UNREADABLE, convert, encode, get_json_decoder
from handrail.store.active_skills import make_marker
from handrail.store.database import Database
from handrail.store.journal import PendingEvent, SessionJournal

# § [store.messages] The transcript of a session: numbered messages beside the events, in the same file.

_INSERT = "INSERT INTO message (kind, data) VALUES (?, ?)"
_SELECT = "SELECT number, data FROM message WHERE number > ? ORDER BY number"


class NumberedMessage(msgspec.Struct, frozen=True):
    """A message in its place."""

    number: int
    message: Message


class Messages:
    """Appends to the transcript and reads it back. A message stands or falls with the events that are given with it."""

    def __init__(self, journal: SessionJournal) -> None:
        self._journal = journal

    def add(self, messages: Iterable[Message], *drafts: PendingEvent) -> None:
        """Writes messages and events in one transaction."""
        rows = tuple((_INSERT, (str(one.__struct_config__.tag), encode(one))) for one in messages)
        self._journal.append(*drafts, also=rows)

    def any(self) -> bool:
        """Whether anything was said."""
        return bool(self._journal.database.rows("SELECT 1 FROM message LIMIT 1", ()))

    def last_model(self) -> str | None:
        """Who answered last."""
        query = "SELECT number, data FROM message WHERE kind = 'assistant' ORDER BY number DESC LIMIT 1"
        said = [self._read(*row) for row in self._journal.database.rows(query, ())]
        return said[0].model if said and isinstance(said[0], AssistantMessage) else None

    def first_prompt(self) -> str | None:
        """What the person said first."""
        query = "SELECT number, data FROM message WHERE kind = 'user' ORDER BY number LIMIT 1"
        said = [self._read(*row) for row in self._journal.database.rows(query, ())]
        return said[0].text if said and isinstance(said[0], UserMessage) else None

    def after(self, number: int = 0) -> list[NumberedMessage]:
        """Every message behind a number, oldest first."""
        return [NumberedMessage(row[0], self._read(*row)) for row in self._journal.database.rows(_SELECT, (number,))]

    def _read(self, number: int, data: bytes) -> Message:
        try:
            return _decoder().decode(data)
        except UNREADABLE as error:
            raise StoreError(
                f"message {number} of session {self._journal.session_id} cannot be read: {error}"
            ) from None


@cache
def _decoder() -> msgspec.json.Decoder[Message]:
    return get_json_decoder(Message)


# § [store.todos] The model's list of what is to be done, as it stands in a session's journal: the result of the
# § last call that gave one.

_CALL = '"tool_call_name":"todo"'
_BEFORE = """
SELECT seq, data FROM event WHERE seq < ? AND kind = 'tool_call.end' AND instr(data, CAST(? AS BLOB)) > 0
ORDER BY seq DESC LIMIT 1
"""
_LAST = 1 << 62


class _Data(msgspec.Struct):
    items: tuple[TodoItem, ...]


def read_last_todo(database: Database) -> tuple[TodoItem, ...]:
    """The list; empty while there is none."""
    before = _LAST
    while row := database.row(_BEFORE, (before, _CALL)):
        before = row[0]
        try:
            event = decode_event(row[1])
            if isinstance(event, ToolCallEnd) and event.tool_call_name == "todo":
                return convert(event.result.data, _Data).items
        except UNREADABLE:
            pass  # what cannot be read is not the last list that can
    return ()


# § [store.forking] A second session that begins where another one is: its transcript, and what that transcript
# § relies on.

_NOT_HERE = "This session was forked before this call had a result; in this session it was not made."
_COPIED = {
    "message": "SELECT number, kind, data FROM message WHERE number <= ? ORDER BY number",
    "output": "SELECT call_id, blob FROM output WHERE ? > 0",
    "seen": "SELECT path, mark FROM seen WHERE ? > 0",
    "skill": "SELECT name, data FROM skill WHERE ? >= 0",
}


def fork_journal(source: SessionJournal, path: str, session_id: str) -> None:
    """Begins the journal of a new session with the transcript of another: the messages, the stored outputs that it
    names, which files were read and which skills are active. Events, grants, requests and processes are not copied."""
    if os.path.exists(path):
        raise UsageError(f"there is a session {session_id} already; choose another id for the fork")
    unfinished = f"{path}.{os.urandom(6).hex()}.new"
    try:
        _fill(source, unfinished, session_id, lambda: make_marker(path))
        os.rename(unfinished, path)
    finally:
        for left in (unfinished, f"{unfinished}-wal", f"{unfinished}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(left)


def _fill(source: SessionJournal, path: str, session_id: str, mark_skills: Callable[[], None]) -> None:
    """Under another name: a session is there when all of it is."""
    transcript = Messages(source).after()
    last = transcript[-1].number if transcript else 0
    target = Database(path, "crash")
    try:
        with target.lock, target.transaction:
            for table, query in _COPIED.items():
                rows = source.database.rows(query, (last,))
                if rows and table == "skill":
                    mark_skills()
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    target.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608  names of ours
            if transcript and (open_calls := _open_calls(transcript[-1].message)):
                # With the rest or not at all: without it the fork would take the calls for its own.
                row = (last + 1, "results", encode(ResultsMessage(results=open_calls)))
                target.execute("INSERT INTO message VALUES (?, ?, ?)", row)
        told = f"Forked from session {source.session_id} behind its event {source.last_seq()}."
        SessionJournal(target, session_id, "fork").append((Notice, {"text": told}))
    finally:
        target.close()


def _open_calls(last: object) -> tuple[CallResult, ...]:
    """Calls without a result are those of the session that asked for them: a fork makes none of them again."""
    if not isinstance(last, AssistantMessage):
        return ()
    return tuple(
        CallResult(tool_call_id=call.tool_call_id, name=call.name, ok=False, content=_NOT_HERE) for call in last.calls
    )
