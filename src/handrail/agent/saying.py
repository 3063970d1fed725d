"""What a model says while it says it: the first words are told at once, those after them a few at a time, so that a
fast model does not cost a transaction a word."""

from collections.abc import Callable

from handrail.models.model import ReasoningPiece, TextPiece
from handrail.protocol.events import Event, Reasoning, Text
from handrail.protocol.wire import escape_surrogates
from handrail.runtime.conversation import Conversation

_GATHER_SECONDS = 0.025
"""Seconds: nobody reads faster."""


class EventBuffer:
    """The words of one message on their way to the journal and its listeners."""

    def __init__(self, conversation: Conversation, message_id: str) -> None:
        import asyncio  # noqa: PLC0415  who is here has it

        self._loop = asyncio.get_running_loop()
        self._conversation = conversation
        self._message_id = message_id
        self._kind: type[Event] | None = None
        self._gathered: list[str] = []
        self._since = 0.0
        self._timer: Callable[[], None] | None = None
        self._failure: Exception | None = None
        self._words: list[str] = []

    @property
    def text(self) -> str:
        """The words for the person, as far as they were said."""
        return "".join(self._words)

    def add(self, piece: TextPiece | ReasoningPiece) -> None:
        """Takes a piece."""
        kind, text = (Text if isinstance(piece, TextPiece) else Reasoning), escape_surrogates(piece.text)
        if not text:
            return
        if kind is Text:
            self._words.append(text)
        first = kind is not self._kind
        if first:
            self.flush()
            self._kind = kind
        self._gathered.append(text)
        if first or "\n" in text or (len(self._gathered) > 1 and self._loop.time() - self._since >= _GATHER_SECONDS):
            self.flush()
        elif self._timer is None:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(_GATHER_SECONDS, self._flush_later).cancel

    def flush(self) -> None:
        """Tells what was gathered. Nothing is left behind."""
        if self._timer is not None:
            self._timer()
            self._timer = None
        if self._failure is not None:
            raise self._failure
        text, self._gathered = "".join(self._gathered), []
        if text and self._kind is not None:
            self._conversation.tell((self._kind, {"message_id": self._message_id, "text": text}))

    def _flush_later(self) -> None:
        """A model that is slow now: what it said is not kept waiting. A failure is for whoever takes the next piece."""
        try:
            self._timer = None
            self.flush()
        except Exception as error:  # the loop's own handler would only print it
            self._failure = error
