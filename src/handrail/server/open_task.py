"""A task that is open in the server: its session, its model, its running turn."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from handrail.agent.loop import Agent
from handrail.agent.turn import Turn
from handrail.api import Handrail
from handrail.async_api import AsyncHandrail
from handrail.models.base import Model, ModelError
from handrail.protocol.calls import Done
from handrail.protocol.errors import HandrailError
from handrail.protocol.events import Event, Notice
from handrail.server.options import ApiFailure, ServerOptions, TaskFolder
from handrail.settings import LoadedSettings
from handrail.state import report_defect

_DROPPED = "The turn was cancelled, so the prompt that waited for it was dropped:"
_MAX_WAITING, _MAX_WAITING_CHARS = 100, 1_000_000


class OpenTask:
    """A session with a model. Its methods run in the event loop, its calls in threads."""

    def __init__(
        self,
        rail: AsyncHandrail,
        folder: TaskFolder,
        loaded: LoadedSettings,
        options: ServerOptions,
        model: str | None,
        on_change: Callable[[], None],
    ) -> None:
        """`model`: the name that the client chose."""
        self.rail, self.folder = rail, folder
        self._loaded, self._options, self._on_change = loaded, options, on_change
        self.model_name = model
        self._model: Model | None = None
        self._agent: Agent | None = None
        self.turn: asyncio.Task[None] | None = None
        self.failure = ""
        self._cancels = self._stops = False
        self._holders = 0
        self._answers, self._opening = asyncio.Lock(), asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self.last_use = self._loop.time()

    @property
    def is_running(self) -> bool:
        return self.turn is not None and not self.turn.done()

    @property
    def is_busy(self) -> bool:
        """Whether it must stay open."""
        return self.is_running or self._holders > 0

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        self.last_use = self._loop.time()

    async def has_transcript(self) -> bool:
        return bool(await self.rail.in_pool(self.rail.conversation.messages))

    def has_prompts(self) -> bool:
        """Whether prompts wait until the model can get them."""
        return bool(self.rail.conversation.list_prompts())

    async def prompt(self, text: str) -> bool:
        """Stores a prompt, and starts a turn with it unless one runs. Returns whether one runs.

        ApiFailure if too many wait.
        """
        agent = await self.open_agent()
        waiting = self.rail.conversation.list_prompts()
        if len(waiting) >= _MAX_WAITING or sum(len(one.text) for one in waiting) + len(text) > _MAX_WAITING_CHARS:
            refusal = "Too many prompts wait for the turn. Nothing was queued."
            raise ApiFailure(429, "TOO_MANY", refusal, headers={"retry-after": "5"})
        self.rail.conversation.queue_prompt(text)
        if self.is_running:
            return True
        self._run(self._run_turns(agent, continues=False))
        return False

    async def go_on(self, *, cancel: bool = False) -> bool:
        """Continues the last turn. `cancel` closes it instead.

        Returns whether it did: another client may have started one meanwhile.
        """
        agent, continues = await self.open_agent(), await self.has_transcript()
        if self.is_running:
            return False
        self._run(self._run_turns(agent, continues=continues), cancel=cancel)
        return True

    async def settle(self, act: Callable[[Handrail], object], is_answer: Callable[[Event], bool]) -> None:
        """Answers in a thread, and returns when the answer is stored. The turn goes on after the last answer.

        `act` answers, and runs the calls if that was the last answer. `is_answer` finds the event of the answer. An
        exception of `act` before that is raised.
        """
        stored = self._loop.create_future()

        def note(event: Event) -> None:
            if is_answer(event):
                self._loop.call_soon_threadsafe(lambda: stored.done() or stored.set_result(None))

        async with self._answers:  # so that the event of one answer is not taken for that of another
            stop = self.rail.subscribe(note)
            acting = self._loop.create_task(self.rail.in_pool(lambda: act(self.rail.rail)))
            self._run(self._continue_after(acting, self.turn))
            await asyncio.wait({acting, stored}, return_when=asyncio.FIRST_COMPLETED)
            stop()
        if not stored.done():
            acting.result()

    def cancel(self, *, leave_open: bool = False) -> bool:
        """Cancels the running turn. Returns whether there was one. `leave_open`: it can be continued."""
        if not self.is_running:
            return False
        self._cancels, self._stops = True, leave_open
        if self._agent is None or not self._agent.cancel(leave_open=leave_open):
            self.rail.cancel()  # the calls of an answered batch
        return True

    async def close(self) -> None:
        """Background processes go on."""
        if self._model is not None:
            with suppress(ModelError, OSError):
                await self._model.close()
        await self.rail.close()

    # Turns

    def _run(self, work: Coroutine[Any, Any, None], *, cancel: bool = False) -> None:
        self.failure, self._cancels = "", cancel or (self.is_running and self._cancels)
        self.turn = self._loop.create_task(self._guard(work))
        self.turn.add_done_callback(lambda _: self._finish())
        self._on_change()

    def _finish(self) -> None:
        self.last_use = self._loop.time()
        self._on_change()

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Records why a turn could not run. The journal has the failures of models."""
        try:
            await work
        except HandrailError as error:
            self.failure = str(error)
        except Exception as error:  # a defect of ours or of a model's adapter
            self.failure = "The turn failed because of an internal error. It can be resumed."
            self._options.note(
                f"internal error in task {self.folder.id} {await asyncio.to_thread(report_defect, error)}"
            )

    async def _run_turns(self, agent: Agent, *, continues: bool) -> None:
        """Continues the last turn, then runs turns as long as prompts wait."""
        await self.rail.in_pool(self.rail.specs)  # servers may be slow, and must not block the event loop
        conversation = self.rail.conversation
        turn = await self._run_turn(agent, agent.go_on) if continues else None
        while not self._stops and (turn is None or turn.reason not in {"parked", "question"}):
            if not (waiting := conversation.list_prompts()):
                return
            if self._cancels and turn is not None:
                text = "\n\n".join(one.text for one in waiting)
                conversation.add((), (Notice, {"text": f"{_DROPPED} {text}"}), taken=waiting[-1].number)
                return
            turn = await self._run_turn(agent, agent.run_waiting)

    async def _run_turn(self, agent: Agent, run: Callable[[], Awaitable[Turn]]) -> Turn | None:
        if self._stops:
            return None
        if self._cancels:
            self.rail.uncancel()
            self._loop.call_soon(agent.cancel)  # at the first pause of the turn
        return await run()

    async def _continue_after(self, acting: asyncio.Task[object], before: asyncio.Task[None] | None) -> None:
        """`before`: the work that another answer began."""
        await asyncio.wait({acting} if before is None else {acting, before})
        if acting.exception() is None and isinstance(acting.result(), Done) and await self.has_transcript():
            await self._run_turns(await self.open_agent(), continues=True)
        elif self._cancels:
            self.rail.uncancel()

    async def open_agent(self) -> Agent:
        """The agent with the model. UsageError if there is no such model."""
        async with self._opening:
            if self._agent is None:
                host = self._options.host
                name = self.model_name or await asyncio.to_thread(self._find_last_model)
                self._model = await asyncio.to_thread(host.open_model, self._loaded, name)
                self.model_name = self._model.name
                limits = host.get_limits(self._loaded)
                self._agent = Agent(self.rail, self._model, limits=limits)
            return self._agent

    def _find_last_model(self) -> str | None:
        """The last model of the session, if it can still be chosen."""
        last = self._options.state.find_last_model(self.folder.workspace, self.folder.id)
        return last if last in self._options.host.list_models(self._loaded) else None
