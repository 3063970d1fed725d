"""The conversation of a session, as the agent loop uses it."""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

import msgspec

from handrail.policy.decide import decide
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import End, Error, User
from handrail.protocol.messages import AssistantMessage, CallPart, Message
from handrail.protocol.wire import escape_surrogates
from handrail.runtime.batch import refuse_batch
from handrail.runtime.decide import collect_touched_facts
from handrail.runtime.session import Session
from handrail.settings import Settings
from handrail.store.journal import PendingEvent
from handrail.store.runner import Lease
from handrail.store.state_dir import StateFolder
from handrail.store.transcript import Messages, NumberedMessage, WaitingPrompt
from handrail.tools.read import READ
from handrail.tools.tool import Touches

MAX_INSTRUCTION_BYTES = 32_000
_INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\U000e0000-\U000e007f]")
"""Control characters, and characters that change the direction of text or are invisible."""


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a file with instructions for agents."""

    name: str
    text: str
    left_out: int = 0


class Conversation:
    """The messages and turns of a session. Each method raises UsageError once the session is closed."""

    def __init__(self, session: Session, enter: Callable[..., Any]) -> None:
        """`enter` calls a function while the session cannot be closed."""
        self._session = session
        self._enter = enter
        self._messages = Messages(session.journal)

    def lease(self) -> Lease:
        """The lock of the loop. UsageError if another process holds it."""
        return self._enter(Lease, self._session.folder, self._session.id)

    def new_call_id(self) -> str:
        return self._enter(self._session.journal.new_call_id)

    def begin_turn(self, turn: str) -> None:
        """Assigns all further changes to this turn, so that the turn can be undone."""
        self._enter(setattr, self._session, "turn", turn)

    @property
    def cancelled(self) -> bool:
        return self._session.cancelled.is_set()

    def refuse(self, calls: tuple[ToolCall, ...], error: ToolError) -> Done | Parked:
        """Ends calls with this error unless they were started. Parked if one of them waits for a person."""
        return self._enter(refuse_batch, self._session, calls, error)

    def tell(self, *drafts: PendingEvent) -> None:
        self._enter(self._session.journal.append, *drafts)

    def add(self, messages: Iterable[Message], *drafts: PendingEvent, taken: int = 0) -> None:
        """Writes messages and events in one transaction. The prompts up to the number `taken` wait no longer."""
        self._enter(self._messages.add, messages, *drafts, taken=taken)

    def queue_prompt(self, text: str) -> None:
        """Stores a prompt that the agent gives to the model with the next results, or with the next turn."""
        self._enter(self._messages.queue_prompt, escape_surrogates(text))

    def list_prompts(self) -> list[WaitingPrompt]:
        return self._enter(self._messages.list_prompts)

    def messages(self, after: int = 0) -> list[NumberedMessage]:
        """All messages with a higher number, oldest first."""
        return self._enter(self._messages.list_after, after)

    def open_calls(self) -> tuple[CallPart, ...]:
        """The calls of the last message, if it is the model's: their results may come without a start."""
        last = next((one.message for one in reversed(self.messages())), None)
        return last.calls if isinstance(last, AssistantMessage) else ()

    def last_turn_event(self) -> User | End | Error | None:
        event = self._enter(self._session.journal.find_last, "user", "end", "error")
        return event if isinstance(event, User | End | Error) else None

    def last_prompt(self) -> int:
        """The number of the event that began the last turn, or 0."""
        event = self._enter(self._session.journal.find_last, "user")
        return event.seq if event is not None else 0

    def instructions(self) -> Instructions | None:
        """The instructions of the workspace. None if there are none, or policy does not allow to read them unasked."""
        return self._enter(_read_instructions, self._session)

    def active_skills(self) -> tuple[str, ...]:
        return tuple(sorted(self._enter(self._session.skills.active_names)))


def render_repository_map(session: Session, settings: Settings) -> str:
    """The map of the workspace as `agent.map` wants it. Empty if policy allows no reading unasked."""
    tokens = settings.agent.map
    if not tokens or session.offer.denies("fs.read"):
        return ""
    from handrail.code.repository_map import render_map  # noqa: PLC0415  engine room
    from handrail.tools.codebase_search import CODEBASE_SEARCH, open_index, refresh_root  # noqa: PLC0415  as above
    from handrail.tools.search import SessionSearch  # noqa: PLC0415  as above

    workspace = session.workspace
    try:
        facts = collect_touched_facts(workspace, Touches(reads=(".",)))
        if decide(CODEBASE_SEARCH, None, facts, session.rules).decision != "allow":
            return ""
        searching = SessionSearch(settings.search.ignore, settings.search.engine)
        find_folder = StateFolder.find(session.folder).code_index
        with closing(open_index(find_folder, workspace.main)) as index:
            refresh_root(searching, workspace, workspace.main, index, "", session.cancelled.is_set)
            return render_map(index, tokens)
    except (ToolError, StoreError, OSError):
        return ""  # the prompt works without it
    finally:
        workspace.drop_cached()


def _read_instructions(session: Session) -> Instructions | None:
    if session.offer.denies("fs.read"):
        return None
    files = (_read_file(session, name) for name in _INSTRUCTION_FILES)
    return next((instructions for instructions in files if instructions is not None), None)


def _read_file(session: Session, name: str) -> Instructions | None:
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
    visible = _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return Instructions(name=name, text=visible, left_out=left_out) if text.strip() else None
