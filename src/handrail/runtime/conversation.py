"""Messages of a session, and the project's instructions."""

import os
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from handrail.policy.decide import decide
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.errors import ToolError
from handrail.protocol.events import End, Error, User
from handrail.protocol.messages import Message
from handrail.runtime.batch import refuse_batch
from handrail.runtime.decide import collect_touched_facts
from handrail.runtime.session import Session
from handrail.store.journal import PendingEvent
from handrail.store.runner import Lease
from handrail.store.transcript import Messages, NumberedMessage
from handrail.tools.read import READ
from handrail.tools.tool import Touches

# § [runtime.instructions] What a workspace says about how to work in it: AGENTS.md, else CLAUDE.md, as `read` would
# § let it be read.

NAMES = ("AGENTS.md", "CLAUDE.md")
"""The first that there is counts."""
MAX_INSTRUCTION_BYTES = 32_000


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the file, as much of it as is taken."""

    name: str
    text: str
    left_out: int = 0
    """Bytes behind it."""


def read_instructions(session: Session) -> Instructions | None:
    """The instructions in the workspace's main folder; None where there are none, or policy does not let them be
    read unasked."""
    if session.offer.denies("fs.read"):
        return None
    return next((found for name in NAMES if (found := _read(session, name)) is not None), None)


def _read(session: Session, name: str) -> Instructions | None:
    workspace = session.workspace
    try:
        facts = collect_touched_facts(workspace, Touches(reads=(name,)))
        if decide(READ, None, facts, session.rules).decision != "allow":
            return None
        with workspace.open_file(name) as opened:
            data = os.read(opened.descriptor, MAX_INSTRUCTION_BYTES)
            left_out = max(0, opened.status.st_size - len(data))
    except (ToolError, OSError):
        return None
    finally:
        workspace.drop_cached()
    text = data.decode("utf-8", "ignore" if left_out else "replace").removeprefix("\ufeff")
    return Instructions(name=name, text=_printable(text), left_out=left_out) if text.strip() else None


def _printable(text: str) -> str:
    """The text without what nobody sees: control characters, and marks that turn the direction of writing."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(character for character in plain if character in "\n\t" or not _is_hidden(character))


def _is_hidden(character: str) -> bool:
    code = ord(character)
    return (
        code < 32
        or 127 <= code < 160
        or 0x200B <= code <= 0x200F
        or 0x202A <= code <= 0x202E
        or (0x2060 <= code <= 0x206F)
        or 0xE0000 <= code <= 0xE007F
    )


# § [runtime.conversation] What the loop writes into the journal of its session, and reads back: the transcript, and
# § the events of turns.


class Conversation:
    """The transcript of one session."""

    def __init__(self, session: Session, enter: Callable[..., Any]) -> None:
        """`enter` does what the end of the session waits for, and raises UsageError once it is closed."""
        self._session = session
        self._enter = enter
        self._messages = Messages(session.journal)

    def lease(self) -> Lease:
        """To be held by whoever runs the loop; UsageError where somebody else does."""
        return self._enter(Lease, self._session.folder, self._session.id)

    def new_call_id(self) -> str:
        """An id for a call that the model wants to be made."""
        return self._enter(self._session.journal.new_call_id)

    def begin_turn(self, turn: str) -> None:
        """What is changed from here on belongs to this turn, so that a whole turn can be undone."""
        self._enter(setattr, self._session, "turn", turn)

    @property
    def cancelled(self) -> bool:
        """Whether the session refuses calls for now."""
        return self._session.cancelled.is_set()

    def refuse(self, calls: tuple[ToolCall, ...], error: ToolError) -> Done | Parked:
        """Gives calls that nobody began this error as their result; those that were begun keep their own. Parked where
        one of them waits for a person."""
        return self._enter(refuse_batch, self._session, calls, error)

    def tell(self, *drafts: PendingEvent) -> None:
        """Writes events."""
        self._enter(self._session.journal.append, *drafts)

    def add(self, messages: Iterable[Message], *drafts: PendingEvent) -> None:
        """Writes messages, and the events that stand or fall with them."""
        self._enter(self._messages.add, messages, *drafts)

    def messages(self, after: int = 0) -> list[NumberedMessage]:
        """All messages behind a number, oldest first."""
        return self._enter(self._messages.after, after)

    def last_turn_event(self) -> User | End | Error | None:
        """Where the last turn is: it began, it ended, or it failed. None where there was none."""
        found = self._enter(self._session.journal.last_of, "user", "end", "error")
        return found if isinstance(found, User | End | Error) else None

    def last_prompt(self) -> int:
        """The number of the event with which the last turn began; 0 where there was none."""
        found = self._enter(self._session.journal.last_of, "user")
        return found.seq if found is not None else 0

    def instructions(self) -> Instructions | None:
        """What the workspace says about how to work in it, as it is now."""
        return self._enter(read_instructions, self._session)

    def active_skills(self) -> tuple[str, ...]:
        """The names of the skills that are active, in their order: a look into the journal where nothing is new."""
        self._enter(self._session.skills.refresh)
        return tuple(sorted(self._session.skills.active_names()))
