"""The work of a session: its turns, the person's own commands, the questions to the person."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from handrail.protocol.calls import Done, Parked
from handrail.protocol.results import OVERLAY_TIER
from handrail.protocol.text import escape_control, measure_width, to_one_line, truncate
from handrail.terminal.error_text import describe_turn_failure, render_error
from handrail.terminal.glyphs import Glyphs, SpoofGuard
from handrail.terminal.keyboard import KeyTiming
from handrail.terminal.markdown import MarkdownStream
from handrail.terminal.screen import format_folder, format_seconds
from handrail.terminal.style import paint_nothing, wrap_painted

if TYPE_CHECKING:
    from handrail.agent.turn import Turn
    from handrail.chat.session import ChatSession, SessionSetup
    from handrail.models.base import Model
    from handrail.settings import Settings
    from handrail.terminal.diff_view import ViewerPage
    from handrail.terminal.session_view import SessionView

LONG_SECONDS = 30.0
"""A turn that took longer is worth a notification if the person looks elsewhere."""
_MAX_END_ROWS = 12
"""Rows of the last answer, when a session is resumed."""
_SESSION_CHARS = 14
"""Of the id of a session: its beginning names it."""
_MAX_SHOWN_OUTPUT = 20_000
"""Characters of the output of a person's command that the model gets."""


class ChatHost(Protocol):
    """What the command line knows: settings, sessions, models, other commands."""

    def prepare(self, session: str | None) -> "SessionSetup":
        """The setup of the chosen session, or of this one. Runs in a thread. HandrailError, or an error of the command
        line that says why not."""
        ...

    def open_model(self, name: str) -> "Model": ...

    def list_sessions(self) -> list[tuple[str, str]]:
        """The id and the first prompt of the workspace's conversations, the latest first."""
        ...

    def build_command(self, *words: str) -> list[str]:
        """The program and arguments of another command of handrail."""
        ...

    def explain(self, error: Exception) -> tuple[str, str] | None:
        """The text of an error for the person, and the next step if it is known. None: a defect."""
        ...


class Entry(msgspec.Struct):
    """A prompt or a command of the person."""

    shown: str
    text: str
    was_typed: bool = False
    """Whether it is certain that nothing of it was pasted."""


class SessionWork(ABC):
    """A session on a terminal, without the way in which the terminal shows it."""

    plain = False
    """Whether the terminal is append-only."""

    def __init__(self, host: ChatHost, glyphs: Glyphs, *, verbose: bool) -> None:
        self.host, self.glyphs = host, glyphs
        self._verbose = verbose
        self.session: ChatSession | None = None
        self._view: SessionView | None = None
        self._was_opened = False
        self._heard: list[str] = []
        """Outputs of the person's commands, for the next prompt."""
        self.pictures: dict[str, bytes] = {}
        """Pictures from the clipboard, by what stands for them in the prompt."""
        self.is_working = False
        self._own_call: str | None = None
        """The running command of the person."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The columns for a row."""

    @abstractmethod
    def write(self, rows: list[str]) -> None:
        """Writes rows that are escaped."""

    @abstractmethod
    def lend_for_prompt(self, what: str) -> AbstractAsyncContextManager[KeyTiming]:
        """Gives the terminal to a prompt, once the person stops typing. `what` tells those who type what waits."""

    @abstractmethod
    def hold_screen(self) -> AbstractAsyncContextManager[None]:
        """Shows nothing else between pages and choices."""

    @abstractmethod
    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        """The number of the row that the person chooses, from 0. None: they went back. The rows are escaped."""

    @abstractmethod
    async def read_pages(self, pages: Sequence["ViewerPage"]) -> None:
        """Shows pages until the person goes back."""

    @abstractmethod
    async def show_command(self, *words: str) -> None:
        """Runs another command of handrail on this terminal."""

    @abstractmethod
    def put_prompt(self, text: str) -> None:
        """Offers a text to the person as the next prompt."""

    @abstractmethod
    def leave(self, code: int = 0) -> None:
        """Ends the session."""

    @abstractmethod
    def leave_soon(self, code: int) -> None:
        """Ends the session after the running work. A request that waits goes on waiting."""

    @abstractmethod
    def call_attention(self, text: str, *, waits: bool) -> None:
        """Notifies the person if they look elsewhere."""

    @property
    def view(self) -> "SessionView":
        if self._view is None:
            from handrail.terminal.session_view import SessionView  # noqa: PLC0415  after the first prompt is on the screen

            self._view = SessionView(self.glyphs, self, verbose=self._verbose)
        return self._view

    def cancel(self) -> bool:
        """Stops the running turn, or the running command of the person. Returns whether there was one."""
        if self.session is None:
            return False
        if self._own_call is not None:
            return self.session.rail.cancel_call(self._own_call)
        return self.session.cancel()

    def end_live(self) -> None:
        self.view.end_turn()

    def say(self, text: str) -> None:
        """Writes lines of handrail, escaped."""
        self.view.write_note(text)

    def write_wrapped(self, rows: Sequence[str]) -> None:
        """Writes rows of handrail, which break between words."""
        self.write([part.rstrip() for row in rows for part in wrap_painted(row or " ", self.width, "  ")])

    def fail(self, text: str, then: str) -> None:
        """Shows an error of the session with the next step."""
        line = to_one_line(text)
        self.write(render_error(line, to_one_line(then), self.glyphs.paint, self.width, in_session=True))

    def report(self, error: Exception, then: str = "/help") -> bool:
        """Shows an error that has a text for the person. Returns whether it has one. `then`: if it names no step."""
        found = self.host.explain(error)
        if found is not None:
            self.fail(found[0], found[1] or then)
        return found is not None

    async def switch(self, session_id: str) -> None:
        """Goes on in another session of the workspace."""
        setup = await asyncio.to_thread(self.host.prepare, session_id)
        before, self.session = self.session, None
        if before is not None:
            setup = msgspec.structs.replace(setup, model=before.model)
            await before.rail.close()
        try:
            await self.open_session(setup)
        except Exception:
            if before is not None:
                await self.open_session(before.setup)
            raise

    async def go_on(self) -> None:
        """Continues the last turn, if it waits."""
        session = self.session
        if session is None or not await session.is_unfinished():
            self.say("Nothing waits: the last turn has ended.")
            return
        await self._run_turn(session.go_on)

    async def open_session(self, setup: "SessionSetup") -> None:
        from handrail.chat.approver import ChatApprover  # noqa: PLC0415  after the first prompt is on the screen
        from handrail.chat.session import ChatSession  # noqa: PLC0415

        self.session = await ChatSession.open(setup, self.view, lambda rail: ChatApprover(rail, self))
        self._was_opened = True
        rail = self.session.rail.rail
        tier = await self.session.rail.in_pool(lambda: rail.sandbox_tier)
        self.write(self._render_header(setup, tier))
        for note in setup.notes:
            self.say(note)
        if setup.resumes:
            self._show_end(*await self.session.read_last_exchange())
        if setup.resumes and await self.session.is_unfinished():
            self.say("The last turn is unfinished. /continue resumes it; a new prompt replaces it.")

    def _show_end(self, prompt: str, answer: str) -> None:
        """Shows where the conversation ended."""
        stream = MarkdownStream(paint_nothing, SpoofGuard(self.glyphs))
        rows = [*stream.feed(answer, self.width), *stream.end(self.width)]
        left = [f"  … {len(rows) - _MAX_END_ROWS} earlier lines"] if len(rows) > _MAX_END_ROWS else []
        shown = [truncate(f"› {to_one_line(prompt)}", self.width), *left, *rows[-_MAX_END_ROWS:]]
        self.write([self.glyphs.paint(row, "dim") for row in shown])

    async def close_session(self) -> None:
        """Closes the session. Background processes go on."""
        session, self.session = self.session, None
        if session is not None:
            with suppress(Exception):
                running = [one for one in await session.rail.processes() if one.state == "running"]
                notes = (
                    f"Still running: {one.id[:9]} {to_one_line(one.command)} (handrail processes)" for one in running
                )
                self.write([truncate(note, 200) for note in notes])
        if self._was_opened:
            self.write(["To continue this session: handrail chat -c"])
        if session is not None:
            await session.close()

    async def run_entry(self, entry: Entry) -> None:
        from handrail.agent.prompt import fence_text  # noqa: PLC0415  loaded with the session
        from handrail.chat.pictures import attach_pictures  # noqa: PLC0415  few prompts have pictures

        session = self.session
        if session is None:
            return
        if entry.text.startswith("!"):
            await self._run_shell(session, entry)
            return
        prompt = attach_pictures(entry.text, session.rail.rail.workspace, self.pictures)
        for note in prompt.notes:
            self.say(note)
        heard = [fence_text("shell", text) for text in self._heard]
        self._heard.clear()
        self.pictures.clear()
        text = "\n\n".join([prompt.text, *heard])
        await self._run_turn(lambda: session.run(text, prompt.pictures))

    async def _run_turn(self, run: "Callable[[], Awaitable[Turn]]") -> None:
        session = self.session
        if session is None:
            return
        was_working, self.is_working = self.is_working, True
        self.view.begin_turn(session.model.name)
        begun = time.monotonic()
        try:
            turn = await run()
        finally:
            self.view.end_turn()
            self.is_working = was_working
        seconds = time.monotonic() - begun
        self.write([""])
        if turn.reason == "error":
            then = "/model PROVIDER:ANOTHER" if turn.code == "NOT_FOUND" else "handrail chat -c"
            self.fail(describe_turn_failure(turn.message or turn.code or "the turn failed"), then)
        self.write_wrapped(await self._render_turn_end(session, turn, seconds))
        self.queue(session.take_steering())
        self.call_attention(f"{turn.reason} after {format_seconds(seconds)}", waits=seconds > LONG_SECONDS)

    async def _render_turn_end(self, session: "ChatSession", turn: "Turn", seconds: float) -> list[str]:
        """The rows below a turn: its outcome, its changes, the next step."""
        from handrail.terminal.turn_summary import render_ending  # noqa: PLC0415  loaded with the session

        rows: list[str] = []
        if turn.reason != "error" or session.tally.calls:
            processes = await session.rail.processes()
            rows = render_ending(turn.reason, session.tally, seconds, processes, self.glyphs, here=None)
        if turn.reason in {"cancelled", "limit"} and turn.message:
            rows.append(f"  {to_one_line(turn.message)}")
        if turn.reason in {"parked", "question"}:
            noun = "question" if turn.reason == "question" else "request"
            rows.append(f"  A {noun} waits for you: /continue asks again, a new prompt denies it.")
        return rows

    async def _run_shell(self, session: "ChatSession", entry: Entry) -> None:
        """Runs a command of the person as a call. Only what they surely typed needs no approval."""
        command = entry.text[1:].strip()
        if not command:
            return
        rail = session.rail
        self._own_call = self.view.own_call = rail.new_call_id()
        try:
            result = await rail.call("exec", {"command": command}, tool_call_id=self._own_call)
        finally:
            self._own_call = None
        if result.error is not None and result.error.code == "PERMISSION_REQUIRED":
            result = await self._settle_own(session, result.tool_call_id, typed=entry.was_typed) or result
        self.view.end_turn()
        output: str = getattr(result.data, "output", "")
        if output:
            self.write(escape_control(truncate(output, _MAX_SHOWN_OUTPUT)).rstrip("\n").split("\n"))
        self._heard.append(f"$ {command}\n{truncate(result.content, _MAX_SHOWN_OUTPUT)}")

    async def _settle_own(self, session: "ChatSession", call_id: str, *, typed: bool) -> Any:
        from handrail.chat.approver import ChatApprover  # noqa: PLC0415  loaded with the session

        rail = session.rail
        requests = [one for one in await rail.waiting() if one.tool_call_id == call_id]
        for request in requests:
            if typed and "once" in request.answers and not await rail.outdated(request):
                outcome: Done | Parked = await rail.answer(request, "once")
            else:
                reply = await ChatApprover(rail, self).ask(request, 1, len(requests))
                settled = await rail.settle_reply(reply)
                if settled is None:
                    return None
                outcome = settled.rest
            if isinstance(outcome, Done):
                return next((one for one in outcome.results if one.tool_call_id == call_id), None)
        return None

    def _render_header(self, setup: "SessionSetup", tier: int) -> list[str]:
        """The facts of the session, in as many rows as they take."""
        mode = self.session.mode if self.session is not None else setup.loaded.settings.mode
        sandbox = _describe_sandbox(tier, setup.loaded.settings)
        rows = [format_folder(setup.workspace)]
        for fact in (mode, to_one_line(setup.model.name), sandbox, f"session {setup.session[:_SESSION_CHARS]}"):
            longer = f"{rows[-1]}{self.glyphs.between}{fact}"
            rows[-1:] = [longer] if measure_width(longer) <= self.width else [rows[-1], f"  {fact}"]
        return [self.glyphs.paint(row, "dim") for row in rows]

    @abstractmethod
    def queue(self, texts: Sequence[str]) -> None:
        """Puts messages that a turn did not take at the front of the queue."""


def _describe_sandbox(tier: int, settings: "Settings") -> str:
    """How commands are confined, in a few words."""
    if tier == 0:
        return "no sandbox"
    name = "overlay sandbox" if tier >= OVERLAY_TIER else f"sandbox tier {tier}"
    hosts = 0 if tier < 2 or "net.connect" in settings.tools.deny else len(settings.network.allow)
    return f"{name}, {f'network: {hosts} allowed' if hosts else 'no network'}"
