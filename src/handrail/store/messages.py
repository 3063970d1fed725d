"""The transcript of a session: numbered messages beside the events, in the same file."""

from collections.abc import Iterable
from functools import cache

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.message import AssistantMessage, Message, UserMessage
from handrail.protocol.reading import UNREADABLE, get_json_decoder
from handrail.protocol.wire import encode
from handrail.store.journal import PendingEvent, SessionJournal

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
