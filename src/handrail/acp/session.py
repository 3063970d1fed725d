"""One session with an editor: a handrail session, a model at work in it, and one prompt at a time."""

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from acp import RequestError
from acp.helpers import ContentBlock
from acp.interfaces import Client
from acp.schema import AvailableCommandsUpdate, ConfigOptionUpdate, PromptResponse, StopReason

from handrail.acp.asking import Asker
from handrail.acp.commands import CONTINUE, available_commands, command_in, run_command
from handrail.acp.errors import INVALID_REQUEST, failed
from handrail.acp.hosting import Host
from handrail.acp.prompts import Said, prompt_of
from handrail.acp.questions import in_words, meant
from handrail.acp.showing import Showing, Update, remark, words
from handrail.acp.telling import Telling, tell_again
from handrail.agent.loop import Agent
from handrail.agent.turn import Turn
from handrail.async_rail import AsyncHandrail
from handrail.models.model import Model, ModelError
from handrail.protocol.error import UsageError
from handrail.protocol.message import AssistantMessage
from handrail.settings import Loaded

_WAITS = "Something waits for your yes. `handrail approvals` lists it; `/continue` puts it to you again."


class Session:
    """Opened by `opening`. Everything of it happens in one event loop; calls run in threads of the rail."""

    def __init__(self, rail: AsyncHandrail, loaded: Loaded, host: Host, client: Client, *, forms: bool) -> None:
        self.rail, self.loaded = rail, loaded
        self._host, self._client = host, client
        self._asker = Asker(rail, client, forms=forms)
        self._asker.cancel = self.cancel
        self._showing = Showing(rail, self._window)
        self._telling: Telling | None = None
        self.notes: tuple[str, ...] = ()
        """What is not as the editor wanted it."""
        self.models: tuple[str, ...] = ()
        """The names of those that may be chosen."""
        self.model: str | None = None
        """The one that is asked from the next prompt on."""
        self._model: tuple[str | None, Model] | None = None
        self._agent: Agent | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._cancelled = False
        self._cancels = 0
        self._worked = False
        """Whether there was a turn here."""

    async def look_for_models(self) -> None:
        """Finds out which models there are to choose from."""
        self.models = self._host.models(self.loaded, await self.rail.in_pool(self._last_model))
        self.model = self.models[0] if self.models else None

    async def begin(self, *, again: bool) -> None:
        """Tells the editor from now on what happens. `again`: first all that happened, which it does not know."""
        with self._at_work():
            last = await self._tell_again() if again else await self._last_event()
            self._telling = Telling(self.rail, self._showing, self.send, last)
            self._asker.tell = self._telling.catch_up

    async def _tell_again(self) -> int:
        last = await tell_again(self.rail, self._showing, self.send)
        for update in await self._showing.plan():
            await self.send(update)
        return last

    async def _last_event(self) -> int:
        return await self.rail.in_pool(lambda: max((one.seq for one in self.rail.events()), default=0))

    async def send(self, update: Update | AvailableCommandsUpdate | ConfigOptionUpdate) -> None:
        """One update. An editor that has gone is told nothing, and what happens goes on."""
        with suppress(ConnectionError):
            await self._client.session_update(session_id=self.rail.session_id, update=update)

    async def greet(self) -> None:
        """Says what can be typed behind a slash, and what the person should know."""
        await self.send(available_commands())
        for note in self.notes:
            await self.send(words(remark(note)))

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """Does what the person says, to where nothing is left to do, or somebody has to answer."""
        if self._cancelled and await self._cancelled_while(self._idle.wait()):
            return PromptResponse(stop_reason="cancelled")
        with self._at_work():
            self._cancelled = False
            try:
                return PromptResponse(stop_reason=await self._do(prompt_of(blocks, self.rail.workspace)))
            finally:
                await self._catch_up()

    def cancel(self) -> None:
        """Ends the prompt that is at work; the next one works as ever."""
        self._cancelled = True
        self._cancels += 1
        if self._agent is not None:
            self._agent.cancel()

    async def _cancelled_while(self, waiting: Coroutine[Any, Any, object]) -> bool:
        """Waits; whether the person cancelled meanwhile. Who speaks right after a cancel is not refused: what it ended
        is about to be over."""
        before = self._cancels
        await waiting
        return self._cancels != before

    def must_be_idle(self) -> None:
        """Refuses where a prompt is at work, or the editor is just told what happened before."""
        if not self._idle.is_set():
            told = f"Session {self.rail.session_id} is at work. Wait for the end of its prompt, or cancel it."
            raise RequestError(INVALID_REQUEST, told)

    async def close(self) -> None:
        """Ends what is at work, with all that it started, background commands too. What waits for a yes goes on
        waiting. Who only looked ends nothing: another process may be at work in the session."""
        await self._stop()
        await (self.rail.end_session() if self._worked else self.rail.close())

    async def hand_over(self) -> None:
        """The same for who opens the session anew: background commands go on."""
        await self._stop()
        await self.rail.close()

    @contextmanager
    def _at_work(self) -> Generator[None]:
        self.must_be_idle()
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()

    async def _stop(self) -> None:
        if not self._asker.leave():
            self.cancel()
        await self._idle.wait()
        if self._telling is not None:
            await self._telling.close()
        await self._let_go()

    async def _do(self, prompt: Said) -> StopReason:
        command = command_in(prompt.text)
        if command is not None and command[0] != CONTINUE:
            told = await run_command(self.rail, *command)
            await self._catch_up()
            await self.send(words(told))
            return "end_turn"
        agent = await self._worker()
        await self.rail.in_pool(self.rail.specs)  # other servers may take their time, which nobody else waits for here
        asked = await self.rail.waiting_questions()
        if self._cancelled:
            return "cancelled"
        said = meant(asked[0], prompt.text) if asked else prompt.text
        turn = await self._turn(agent.go_on() if command is not None else agent.run(said, prompt.pictures))
        await self._catch_up()
        return await self._stopped(turn)

    async def _turn(self, work: Coroutine[Any, Any, Turn]) -> Turn:
        worked, self._worked = self._worked, True
        try:
            return await work
        except UsageError:  # another process is at work in the session
            self._worked = worked
            raise

    async def _stopped(self, turn: Turn) -> StopReason:
        """Why the turn ended, as the protocol says it; what it has no word for is told."""
        match turn.reason:
            case "cancelled":
                return "cancelled"
            case "error":
                raise failed(turn.code, turn.message or "The turn failed. /continue goes on from where it was.")
            case "parked":
                await self.send(words(f"\n\n> {_WAITS}\n\n"))
            case "question":
                for question in turn.questions:
                    await self.send(words(in_words(question)))
            case _:
                finish = await self.rail.in_pool(self._finish)
                if finish == "filtered":
                    return "refusal"
                if turn.reason == "limit":
                    return "max_tokens" if finish == "length" or self._spent(turn) else "max_turn_requests"
        return "end_turn"

    async def _worker(self) -> Agent:
        """The model at work. It is looked for at the first prompt: a session can be opened that has none yet."""
        if self._agent is None or self._model is None or self._model[0] != self.model:
            model = self._host.model(self.loaded, self.model)
            await self._let_go()
            self._agent = Agent(self.rail, model, limits=self._host.limits(self.loaded), person=self._asker)
            self._model = self.model, model
        return self._agent

    async def _let_go(self) -> None:
        if self._model is not None:
            with suppress(ModelError):
                await self._model[1].close()

    async def _catch_up(self) -> None:
        if self._telling is not None:
            await self._telling.catch_up()

    def _last_answer(self) -> AssistantMessage | None:
        said = (one.message for one in reversed(self.rail.conversation.messages()))
        return next((one for one in said if isinstance(one, AssistantMessage)), None)

    def _last_model(self) -> str | None:
        last = self._last_answer()
        return last.model if last is not None else None

    def _finish(self) -> str | None:
        last = self._last_answer()
        return last.finish if last is not None else None

    def _spent(self, turn: Turn) -> bool:
        most = self._host.limits(self.loaded).tokens
        return most is not None and turn.tokens >= most

    def _window(self) -> int | None:
        with suppress(ModelError):
            return self._model[1].window if self._model is not None else None
        return None
