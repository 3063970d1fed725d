"""One session with an editor: a handrail session, a model at work in it, and one prompt at a time."""

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from acp import RequestError
from acp.helpers import ContentBlock
from acp.schema import AvailableCommandsUpdate, ConfigOptionUpdate, PromptResponse, StopReason

from handrail.acp.asking import EditorApprover
from handrail.acp.commands import CONTINUE, build_commands_update, parse_command, run_command
from handrail.acp.ending import list_closing_messages, resolve_stop_reason
from handrail.acp.errors import INVALID_REQUEST
from handrail.acp.hosting import AgentHost
from handrail.acp.prompts import PromptContent, parse_prompt
from handrail.acp.reached import EditorLink
from handrail.acp.showing import Update, UpdateBuilder
from handrail.acp.telling import JournalFollower, replay_session
from handrail.acp.wording import build_message_chunk, format_remark
from handrail.acp.working import SessionModel
from handrail.agent.turn import Turn
from handrail.async_api import AsyncHandrail
from handrail.protocol.errors import UsageError
from handrail.settings import LoadedSettings
from handrail.terminal.question_prompt import spell_out


class EditorSession:
    """Opened by `opening`. Everything of it happens in one event loop; calls run in threads of the rail."""

    def __init__(self, rail: AsyncHandrail, loaded: LoadedSettings, host: AgentHost, editor: EditorLink) -> None:
        self.rail, self.loaded = rail, loaded
        self._editor = editor
        self._asker = EditorApprover(rail, editor)
        self._asker.cancel = self.cancel
        self.work = SessionModel(rail, loaded, host, self._asker)
        self._showing = UpdateBuilder(rail, editor.folder, self.work.window)
        self._telling: JournalFollower | None = None
        self.notes: tuple[str, ...] = ()
        """What is not as the editor wanted it."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._cancelled = False
        self._cancels = 0
        self._worked = False
        """Whether there was a turn here."""

    async def begin(self, *, again: bool) -> None:
        """Tells the editor from now on what happens. `again`: first all that happened, which it does not know."""
        with self._at_work():
            last = await self._tell_again() if again else await self._last_event()
            self._telling = JournalFollower(self.rail, self._showing, self.send, last)
            self._asker.tell = self._telling.catch_up

    async def _tell_again(self) -> int:
        last = await replay_session(self.rail, self._showing, self.send)
        for update in await self._showing.plan():
            await self.send(update)
        return last

    async def _last_event(self) -> int:
        return await self.rail.in_pool(lambda: max((one.seq for one in self.rail.events()), default=0))

    async def send(self, update: Update | AvailableCommandsUpdate | ConfigOptionUpdate) -> None:
        """One update. An editor that has gone is told nothing, and what happens goes on."""
        with suppress(ConnectionError):
            await self._editor.client.session_update(session_id=self.rail.session_id, update=update)

    async def greet(self) -> None:
        """Says what can be typed behind a slash, and what the person should know."""
        await self.send(build_commands_update())
        for note in self.notes:
            await self.send(build_message_chunk(format_remark(note)))

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """Does what the person says, to where nothing is left to do, or somebody has to answer."""
        if self._cancelled and not await self._still_wanted():
            return PromptResponse(stop_reason="cancelled")
        with self._at_work():
            self._cancelled = False
            try:
                return PromptResponse(stop_reason=await self._do(parse_prompt(blocks, self._editor.folder)))
            finally:
                await self._catch_up()

    def cancel(self) -> None:
        """Ends the prompt that is at work; the next one works as ever."""
        self._cancelled = True
        self._cancels += 1
        self.work.cancel()

    async def _still_wanted(self) -> bool:
        """Waits for the end of a prompt that was cancelled: who speaks right after that is not refused. Whether they
        did not cancel again."""
        before = self._cancels
        await self._idle.wait()
        return self._cancels == before

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
        await self.work.close()

    async def _do(self, prompt: PromptContent) -> StopReason:
        command = parse_command(prompt.text)
        if command is not None and command[0] != CONTINUE:
            told = await run_command(self.rail, *command)
            await self._catch_up()
            await self.send(build_message_chunk(told))
            return "end_turn"
        agent = await self.work.agent()
        await self.rail.in_pool(self.rail.specs)  # other servers may take their time, which nobody else waits for here
        asked = await self.rail.waiting_questions()
        if self._cancelled:
            return "cancelled"
        said = spell_out(asked[0], prompt.text) if asked else prompt.text
        turn = await self._turn(agent.go_on() if command is not None else agent.run(said, prompt.pictures))
        await self._catch_up()
        for left in list_closing_messages(turn):
            await self.send(build_message_chunk(left))
        return await resolve_stop_reason(turn, self.work)

    async def _turn(self, work: Coroutine[Any, Any, Turn]) -> Turn:
        worked, self._worked = self._worked, True
        try:
            return await work
        except UsageError:  # another process is at work in the session
            self._worked = worked
            raise

    async def _catch_up(self) -> None:
        if self._telling is not None:
            await self._telling.catch_up()
