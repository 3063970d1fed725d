"""The transcript of a session: its messages, in a table beside its events."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from handrail.protocol.errors import StoreError, UsageError
from handrail.protocol.events import Notice
from handrail.protocol.messages import AssistantMessage, CallResult, Message, ResultsMessage, UserMessage
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.store.conversation_state import copy_outputs, copy_skills
from handrail.store.database import Database, Row, RowMarker
from handrail.store.journal import SKILL_MARKER, PendingEvent, SessionJournal, copy_marks

_INSERT_MESSAGE = "INSERT INTO message VALUES (?, ?, ?)"


class NumberedMessage(msgspec.Struct, frozen=True):
    number: int
    message: Message


class WaitingPrompt(NamedTuple):
    """A prompt that came while a turn ran."""

    number: int
    text: str


def build_insert(message: Message) -> tuple[str, Row]:
    """The statement that stores a message."""
    return "INSERT INTO message (kind, data) VALUES (?, ?)", (str(message.__struct_config__.tag), encode(message))


def build_prompt(text: str) -> tuple[str, Row]:
    """The statement that stores a waiting prompt."""
    return "INSERT INTO prompt (text) VALUES (?)", (text.encode(),)


class Messages:
    def __init__(self, journal: SessionJournal) -> None:
        self.journal = journal

    def add(self, messages: Iterable[Message], *pending: PendingEvent, taken: int = 0) -> None:
        """Stores messages and events. The prompts up to the number `taken` wait no longer."""
        taking = (("DELETE FROM prompt WHERE number <= ?", (taken,)),) if taken else ()
        self.journal.append(*pending, also=(*map(build_insert, messages), *taking))

    def queue_prompt(self, text: str) -> None:
        self.journal.database.run(*build_prompt(text))

    def list_prompts(self) -> list[WaitingPrompt]:
        """The prompts that wait until the model can get them."""
        rows = self.journal.database.rows("SELECT number, text FROM prompt ORDER BY number")
        return [WaitingPrompt(number, text.decode()) for number, text in rows]

    def has_any(self) -> bool:
        return self.journal.database.row("SELECT 1 FROM message LIMIT 1") is not None

    def last_model(self) -> str | None:
        message = self._find("kind = 'assistant' ORDER BY number DESC")
        return message.model if isinstance(message, AssistantMessage) else None

    def last(self) -> Message | None:
        return self._find("TRUE ORDER BY number DESC")

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


_NOT_HERE = "This session was forked before this call had a result; in this session it was not made."


def fork_journal(source: SessionJournal, path: str, session_id: str, before: int | None = None) -> None:
    """Starts the journal of a new session with the transcript of another one.

    Messages, stored outputs, marks of files and active skills are copied. Events, grants, requests and processes are
    not. `before`: only earlier messages. The journal gets its name when it is complete.
    """
    if os.path.exists(path):
        raise UsageError(f"there is a session {session_id} already; choose another id for the fork")
    unfinished = f"{path}.{os.urandom(6).hex()}.new"
    try:
        _fill_fork(source, unfinished, session_id, before, RowMarker(path + SKILL_MARKER).set)
        os.rename(unfinished, path)
    finally:
        for left in (unfinished, f"{unfinished}-wal", f"{unfinished}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(left)


def _fill_fork(
    source: SessionJournal, path: str, session_id: str, before: int | None, mark_skills: Callable[[], None]
) -> None:
    transcript = [one for one in Messages(source).list_after() if before is None or one.number < before]
    last = transcript[-1].number if transcript else 0
    target = Database(path, "crash")
    try:
        with target.lock, target.transaction:
            if transcript:
                query = "SELECT number, kind, data FROM message WHERE number <= ? ORDER BY number"
                target.copy_rows(source.database, _INSERT_MESSAGE, query, last)
                copy_outputs(source.database, target)
                copy_marks(source.database, target)
            if copy_skills(source.database, target):
                mark_skills()
            if transcript and (open_calls := _close_calls(transcript[-1].message)):
                # In the same transaction: without the results the fork would run the calls.
                row = (last + 1, "results", encode(ResultsMessage(results=open_calls)))
                target.execute(_INSERT_MESSAGE, row)
        text = f"Forked from session {source.session_id} behind its event {source.last_seq()}."
        SessionJournal(target, session_id, "fork").append((Notice, {"text": text}))
    finally:
        target.close()


def _close_calls(last: object) -> tuple[CallResult, ...]:
    """Results for the calls of the last message, which the first session runs."""
    if not isinstance(last, AssistantMessage):
        return ()
    return tuple(
        CallResult(tool_call_id=call.tool_call_id, name=call.name, ok=False, content=_NOT_HERE) for call in last.calls
    )
