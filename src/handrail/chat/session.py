"""A session with a model: its turns, its mode, its events in the thread of the loop."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from handrail.agent.loop import Agent, AsyncApprover, ask_in_turn
from handrail.agent.turn import Turn, TurnLimits
from handrail.async_api import AsyncHandrail
from handrail.models.base import Model, StreamPiece
from handrail.protocol.calls import ToolCall
from handrail.protocol.decisions import Mode
from handrail.protocol.events import Event, User
from handrail.protocol.messages import AssistantMessage, UserMessage
from handrail.protocol.results import Attachment
from handrail.settings import LoadedSettings
from handrail.settings.load import find_managed_mode, pick_stricter_mode
from handrail.terminal.turn_summary import Tally

if TYPE_CHECKING:
    from handrail.api import ToolSource

CYCLE: tuple[Mode, ...] = ("plan", "ask", "auto")
"""The modes that a key chooses. `full` takes a flag or the user file."""
_DRAIN_SECONDS = 0.008
"""How long events are handled before keys get their turn."""


class SessionSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened with."""

    workspace: str
    session: str
    model: Model
    loaded: LoadedSettings
    limits: TurnLimits
    sources: "tuple[ToolSource, ...]" = ()
    notes: tuple[str, ...] = ()
    """What the person should know about the settings."""
    resumes: bool = False
    """Whether the session has messages."""


class Prompt(msgspec.Struct, frozen=True):
    """A prompt in the conversation."""

    number: int
    """Of its message."""
    turn: str
    text: str


class EventSink(Protocol):
    """What shows a session. Its methods run in the thread of the loop."""

    def show(self, event: Event) -> None: ...

    def show_preview(self, call: ToolCall, output: str) -> None: ...

    def show_piece(self, piece: StreamPiece) -> None: ...

    def remember(self, call_id: str, args: object) -> None: ...


class ChatSession:
    """A session with its agent. Events reach the sink in their order, each once."""

    def __init__(self, rail: AsyncHandrail, setup: SessionSetup, sink: EventSink, approver: AsyncApprover) -> None:
        self.rail, self.setup, self.model = rail, setup, setup.model
        self._sink, self._approver = sink, approver
        self._steering: list[str] = []
        self.tally = Tally()
        self._queue = _LoopQueue(self._handle)
        rail.subscribe(self._queue.put)
        rail.subscribe_to_previews(lambda call, output: self._queue.put(_PreviewOutput(call, output)))
        self.agent = self._build_agent()

    @classmethod
    async def open(
        cls, setup: SessionSetup, sink: EventSink, build_approver: Callable[[AsyncHandrail], AsyncApprover]
    ) -> "ChatSession":
        rail = await AsyncHandrail.open(
            setup.workspace,
            session=setup.session,
            settings=setup.loaded,
            on_permission=None,
            sources=setup.sources,
        )
        return cls(rail, setup, sink, build_approver(rail))

    @property
    def mode(self) -> Mode:
        return self.rail.mode

    # Turns

    async def run(self, prompt: str, pictures: tuple[Attachment, ...]) -> Turn:
        self.tally = Tally()
        await self.rail.in_pool(self.rail.specs)  # servers may be slow, so the loop goes on meanwhile
        turn = await self.agent.run(prompt, pictures)
        self._queue.drain_all()
        return turn

    async def go_on(self) -> Turn:
        """Continues a turn that waits for a person, or was cut off."""
        self.tally = Tally()
        for call in self.rail.conversation.open_calls():
            self._sink.remember(call.tool_call_id, call.args)
        await self.rail.in_pool(self.rail.specs)
        turn = await self.agent.go_on()
        self._queue.drain_all()
        return turn

    def steer(self, texts: Iterable[str]) -> None:
        """Gives the model messages with the next results of the running turn."""
        self._steering += texts

    def take_steering(self) -> tuple[str, ...]:
        """The messages that the model has not got yet."""
        texts, self._steering = tuple(self._steering), []
        return texts

    def cancel(self) -> bool:
        return self.agent.cancel()

    async def is_unfinished(self) -> bool:
        """Whether the last turn has work left."""
        last = await self.rail.in_pool(self.rail.conversation.last_turn_event)
        return isinstance(last, User) or getattr(last, "reason", None) in {"parked", "question"}

    async def read_last_exchange(self) -> tuple[str, str]:
        """The last prompt and the last words of the model."""
        messages = [one.message for one in await self.rail.in_pool(self.rail.conversation.messages)]
        prompts = [one.text for one in messages if isinstance(one, UserMessage) and not one.by_loop]
        answers = [one.text for one in messages if isinstance(one, AssistantMessage) and one.text.strip()]
        return "".join(prompts[-1:]), "".join(answers[-1:])

    async def list_prompts(self) -> list[Prompt]:
        """The prompts of the conversation, the latest first."""
        messages = await self.rail.in_pool(self.rail.conversation.messages)
        return [
            Prompt(one.number, one.message.message_id, one.message.text)
            for one in reversed(messages)
            if isinstance(one.message, UserMessage) and not one.message.by_loop
        ]

    # Choices

    async def next_mode(self) -> Mode:
        """Chooses the next mode of the cycle that the managed file allows."""
        loosest = find_managed_mode(self.setup.loaded)
        allowed: list[Mode] = [mode for mode in CYCLE if pick_stricter_mode(mode, loosest) == mode]
        at = allowed.index(self.mode) if self.mode in allowed else -1
        await self.rail.set_mode(allowed[(at + 1) % len(allowed)])
        return self.mode

    async def choose_model(self, model: Model) -> None:
        """Uses another model from the next prompt on."""
        before, self.model = self.model, model
        self.agent = self._build_agent()
        await before.close()

    async def close(self) -> None:
        with suppress(Exception):
            await self.model.close()
        await self.rail.close()

    def _build_agent(self) -> Agent:
        return Agent(
            self.rail,
            self.model,
            limits=self.setup.limits,
            person=partial(ask_in_turn, self.rail, approver=self._approver),
            on_piece=self._sink.show_piece,
            steering=self.take_steering,
        )

    def _handle(self, item: object) -> None:
        if isinstance(item, _PreviewOutput):
            self._sink.show_preview(item.call, item.output)
        elif isinstance(item, Event):
            if not isinstance(item, User):  # a message during the turn does not begin another one
                self.tally.add(item)
            self._sink.show(item)


class _PreviewOutput(NamedTuple):
    call: ToolCall
    output: str


class _LoopQueue:
    """Brings items from any thread into the thread of the loop, in order. A flood of them leaves time for keys."""

    def __init__(self, handle: Callable[[object], None]) -> None:
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._items: deque[object] = deque()
        self._lock = Lock()
        self._is_scheduled = False

    def put(self, item: object) -> None:
        with self._lock:
            self._items.append(item)
            if self._is_scheduled:
                return
            self._is_scheduled = True
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._drain)

    def drain_all(self) -> None:
        while self._items:
            self._handle(self._items.popleft())

    def _drain(self) -> None:
        until = time.monotonic() + _DRAIN_SECONDS
        while self._items and time.monotonic() < until:
            self._handle(self._items.popleft())
        with self._lock:
            self._is_scheduled = bool(self._items)
            if self._is_scheduled:
                self._loop.call_soon(self._drain)
