"""The conversation of a session, in tables beside its events: messages, active skills, stored outputs."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from handrail.protocol.errors import StoreError, UsageError
from handrail.protocol.events import Notice, ToolCallEnd
from handrail.protocol.messages import AssistantMessage, CallResult, Message, ResultsMessage, UserMessage
from handrail.protocol.records import TodoItem
from handrail.protocol.wire import UNREADABLE, convert, decode_json, encode
from handrail.store.database import Database, Row
from handrail.store.journal import SKILL_MARKER, PendingEvent, SessionJournal, copy_marks
from handrail.store.state_dir import open_private

_INSERT_MESSAGE = "INSERT INTO message VALUES (?, ?, ?)"
_INSERT_OUTPUT = "INSERT OR REPLACE INTO output VALUES (?, ?)"
_INSERT_SKILL = "INSERT OR REPLACE INTO skill VALUES (?, ?)"


class NumberedMessage(msgspec.Struct, frozen=True):
    number: int
    message: Message


class Messages:
    def __init__(self, journal: SessionJournal) -> None:
        self.journal = journal

    def add(self, messages: Iterable[Message], *pending: PendingEvent) -> None:
        insert = "INSERT INTO message (kind, data) VALUES (?, ?)"
        rows = tuple((insert, (str(message.__struct_config__.tag), encode(message))) for message in messages)
        self.journal.append(*pending, also=rows)

    def has_any(self) -> bool:
        return self.journal.database.row("SELECT 1 FROM message LIMIT 1") is not None

    def last_model(self) -> str | None:
        message = self._find("kind = 'assistant' ORDER BY number DESC")
        return message.model if isinstance(message, AssistantMessage) else None

    def first_prompt(self) -> str | None:
        message = self._find("kind = 'user' ORDER BY number")
        return message.text if isinstance(message, UserMessage) else None

    def list_after(self, number: int = 0) -> list[NumberedMessage]:
        query = "SELECT number, data FROM message WHERE number > ? ORDER BY number"
        rows = self.journal.database.rows(query, (number,))
        return [NumberedMessage(row[0], self._read(*row)) for row in rows]

    def _find(self, condition: str) -> Message | None:
        row = self.journal.database.row(f"SELECT number, data FROM message WHERE {condition} LIMIT 1")  # noqa: S608
        return self._read(*row) if row else None

    def _read(self, number: int, data: bytes) -> Message:
        try:
            return decode_json(data, Message)
        except UNREADABLE as error:
            raise StoreError(f"message {number} of session {self.journal.session_id} cannot be read: {error}") from None


# The todo list is the result of the last call of the tool `todo`.

_TODO_CALL = '"tool_call_name":"todo"'


class _TodoData(msgspec.Struct):
    items: tuple[TodoItem, ...]


def read_last_todo(journal: SessionJournal) -> tuple[TodoItem, ...]:
    """The last todo list that can be read. Empty if there is none."""
    for event in journal.ends_with(_TODO_CALL):
        if isinstance(event, ToolCallEnd) and event.tool_call_name == "todo":
            with suppress(*UNREADABLE):
                return convert(event.result.data, _TodoData).items
    return ()


class ActiveSkill(msgspec.Struct, frozen=True, omit_defaults=True):
    """An active skill as it was when it was activated, even if its file changes."""

    name: str
    tools: tuple[str, ...] | None = None
    """The tools that it allows. None if it restricts nothing."""
    patterns: dict[str, tuple[str, ...]] = {}
    """Patterns that it allows some of them for."""
    folders: tuple[str, ...] = ()
    """The names of its folder: relative in the workspace, absolute elsewhere."""
    outside: bool = False
    """Whether its folder is in none of the session's own roots."""
    has_files: bool = False
    """Whether its folder has more files to read than were shown."""


class ActiveSkills:
    """The active skills of a session. A change is stored together with the notice of it."""

    def __init__(self, journal: SessionJournal) -> None:
        self._journal = journal
        self._last: tuple[list[Row], tuple[ActiveSkill, ...]] = ([], ())
        """The rows of the last query, and their skills."""

    def list_skills(self) -> tuple[ActiveSkill, ...]:
        """All active skills by name. The same object until something changes."""
        if self._journal.has_never_had_skill():
            return self._last[1]
        rows = self._journal.database.rows("SELECT name, data FROM skill ORDER BY name")
        self._journal.last_query_found_no_skill = not rows
        if rows != self._last[0]:
            self._last = rows, tuple(self._read(*row) for row in rows)
        return self._last[1]

    def put(self, skill: ActiveSkill, text: str) -> None:
        """Activates a skill and replaces the one of its name."""
        _mark_skills(self._journal.database.path)
        insert = (_INSERT_SKILL, (skill.name, encode(skill)))
        self._journal.append((Notice, {"text": text}), also=(insert,))

    def drop(self, name: str, text: str) -> None:
        self._journal.append((Notice, {"text": text}), also=(("DELETE FROM skill WHERE name = ?", (name,)),))

    def _read(self, name: str, data: bytes) -> ActiveSkill:
        """An unreadable skill is an error, because it may have restricted something."""
        try:
            return decode_json(data, ActiveSkill)
        except UNREADABLE as error:
            raise StoreError(
                f"the active skill {name} of session {self._journal.session_id} cannot be read: {error}"
            ) from None


def _mark_skills(journal: str) -> None:
    try:
        os.close(open_private(journal + SKILL_MARKER, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))
    except OSError as error:
        raise StoreError(f"beside the journal {journal} nothing can be written: {error.strerror}") from error


# Stored outputs: the names of their blobs


def find_output(database: Database, name: str) -> str | None:
    row = database.row("SELECT blob FROM output WHERE call_id = ?", (name,))
    return str(row[0]) if row else None


def save_output(database: Database, name: str, blob: str) -> None:
    database.run(_INSERT_OUTPUT, (name, blob))


def list_outputs(database: Database) -> list[str]:
    return [str(row[0]) for row in database.rows("SELECT blob FROM output")]


_NOT_HERE = "This session was forked before this call had a result; in this session it was not made."


def fork_journal(source: SessionJournal, path: str, session_id: str) -> None:
    """Starts the journal of a new session with the transcript of another one.

    Messages, stored outputs, marks of files and active skills are copied. Events, grants, requests and processes are
    not. The journal gets its name when it is complete.
    """
    if os.path.exists(path):
        raise UsageError(f"there is a session {session_id} already; choose another id for the fork")
    unfinished = f"{path}.{os.urandom(6).hex()}.new"
    try:
        _fill_fork(source, unfinished, session_id, lambda: _mark_skills(path))
        os.rename(unfinished, path)
    finally:
        for left in (unfinished, f"{unfinished}-wal", f"{unfinished}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(left)


def _fill_fork(source: SessionJournal, path: str, session_id: str, mark_skills: Callable[[], None]) -> None:
    transcript = Messages(source).list_after()
    last = transcript[-1].number if transcript else 0
    target = Database(path, "crash")
    try:
        with target.lock, target.transaction:
            if transcript:
                query = "SELECT number, kind, data FROM message WHERE number <= ? ORDER BY number"
                _copy_rows(source.database, target, _INSERT_MESSAGE, query, last)
                _copy_rows(source.database, target, _INSERT_OUTPUT, "SELECT call_id, blob FROM output")
                copy_marks(source.database, target)
            if _copy_rows(source.database, target, _INSERT_SKILL, "SELECT name, data FROM skill"):
                mark_skills()
            if transcript and (open_calls := _close_calls(transcript[-1].message)):
                # In the same transaction: without the results the fork would run the calls.
                row = (last + 1, "results", encode(ResultsMessage(results=open_calls)))
                target.execute(_INSERT_MESSAGE, row)
        text = f"Forked from session {source.session_id} behind its event {source.last_seq()}."
        SessionJournal(target, session_id, "fork").append((Notice, {"text": text}))
    finally:
        target.close()


def _copy_rows(source: Database, target: Database, insert: str, query: str, *values: int) -> bool:
    """Returns whether there were any rows."""
    rows = source.rows(query, values)
    for row in rows:
        target.execute(insert, row)
    return bool(rows)


def _close_calls(last: object) -> tuple[CallResult, ...]:
    """Results for the calls of the last message, which the first session runs."""
    if not isinstance(last, AssistantMessage):
        return ()
    return tuple(
        CallResult(tool_call_id=call.tool_call_id, name=call.name, ok=False, content=_NOT_HERE) for call in last.calls
    )
