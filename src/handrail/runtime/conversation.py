"""What the loop writes into the journal of its session, and reads back: the talk with the model, and its events."""

from collections.abc import Iterable

from handrail.protocol.message import Message
from handrail.runtime.instructions import Instructions, project_instructions
from handrail.runtime.session import Session
from handrail.store.journal import Draft
from handrail.store.messages import Messages, Numbered


class Conversation:
    """The talk of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._messages = Messages(session.journal)

    def new_call_id(self) -> str:
        """An id for a call that the model wants to be made."""
        return self._session.journal.new_call_id()

    def begin_turn(self, turn: str) -> None:
        """What is changed from here on belongs to this turn, for who takes a whole turn back."""
        self._session.turn = turn

    def tell(self, *drafts: Draft) -> None:
        """Writes events."""
        self._session.journal.append(*drafts)

    def add(self, messages: Iterable[Message], *drafts: Draft) -> None:
        """Writes messages, and the events that stand or fall with them."""
        self._messages.add(messages, *drafts)

    def messages(self, after: int = 0) -> list[Numbered]:
        """All messages behind a number, oldest first."""
        return self._messages.after(after)

    def instructions(self) -> Instructions | None:
        """What the workspace says about how to work in it, as it is now."""
        return project_instructions(self._session)
