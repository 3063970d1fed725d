"""The interactive session: takes prompts, runs turns, asks the person."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any

from handrail.chat.composer import Composer, build_history
from handrail.chat.console import Console
from handrail.chat.first_rows import STARTS
from handrail.chat.keys import ComposerWork, build_bindings
from handrail.chat.slash_commands import COMMANDS, describe_unknown, is_command_like, run_command
from handrail.chat.work import LONG_SECONDS, ChatHost, Entry
from handrail.protocol.errors import HandrailError, ToolError
from handrail.protocol.text import escape_control, to_one_line, truncate
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.keyboard import KeyTiming
from handrail.terminal.slash_hints import IN_SESSION

if TYPE_CHECKING:
    from handrail.chat.session import ChatSession
    from handrail.terminal.diff_view import ViewerPage

_FAILED, _HUNG_UP = 1, 129


class Chat(ComposerWork):
    """One run of `handrail chat`."""

    def __init__(self, host: ChatHost, glyphs: Glyphs, *, verbose: bool = False) -> None:
        super().__init__(host, glyphs, verbose=verbose)
        self.composer = Composer(COMMANDS, self._list_files, build_history(self._load_history))
        self.console = Console(self.composer, build_bindings(self), self._render_live, self._render_bar, glyphs.paint)
        self._entries: deque[Entry] = deque()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failure: Exception | None = None
        self._code = 0
        self._processes = 0
        self._left = False
        """Whether the person is leaving, so that no page stays open."""

    async def run(self, before_start: Callable[[], None]) -> int:
        """Runs until the person leaves. Returns the exit code. `before_start` gives the terminal back."""
        loop = asyncio.get_running_loop()
        before_start()  # it also gives back the signals that end the process
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._hang_up, number)
        loop.add_signal_handler(signal.SIGINT, self.stop)
        try:
            code = await self.console.run(self._begin)
        finally:
            await self._end()
        if self._failure is not None:
            raise self._failure
        return self._code or code

    # What the keys do

    def submit(self) -> None:
        if self.composer.choose_completion():
            return
        shown = self.composer.buffer.text.strip("\n")
        if not shown.strip():
            self._steer()
            return
        was_typed = self.composer.was_typed
        entry = Entry(shown, self.composer.take().strip(), was_typed)
        if entry.text.startswith("/") and entry.text[1:].partition(" ")[0] in COMMANDS:
            self._echo(entry)
            self.start(run_command(self, entry.text))
            return
        if is_command_like(entry.text):
            self._echo(entry)
            self.fail(*describe_unknown(entry.text))
            return
        self._entries.append(entry)
        self._wake.set()
        self.console.refresh()

    def stop(self) -> bool:
        if not self.is_working or self.session is None:
            return False
        if self._entries and not self.composer.buffer.text:
            self.composer.put("\n".join(entry.shown for entry in self._entries))
            self._entries.clear()
        return self.cancel()

    def take_back(self) -> bool:
        if not self._entries:
            return False
        self.composer.put(self._entries.pop().shown)
        return True

    def leave(self, code: int = 0) -> None:
        """Ends the session."""
        self._code = self._code or code
        self._left = True
        if self.session is not None:
            self.session.cancel()
        if self.console.app.is_running and not self.console.app.is_done:
            self.console.app.exit(result=code)

    def leave_soon(self, code: int) -> None:
        self._code, self._left = code, True

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cycle_mode(self) -> None:
        if self.session is not None:
            self.start(self._cycle_mode(self.session))

    # The terminal

    @property
    def width(self) -> int:
        return self.console.width

    def write(self, rows: list[str]) -> None:
        self.console.write(rows)

    def lend_for_prompt(self, what: str) -> AbstractAsyncContextManager[KeyTiming]:
        return self.console.lend_when_quiet(f"{what} Stop typing for a second to see it.")

    def hold_screen(self) -> AbstractAsyncContextManager[None]:
        return self.console.hold_screen()

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        from handrail.chat.viewer import choose_row  # noqa: PLC0415  loaded with the session

        async with self.console.lend():
            return await asyncio.to_thread(choose_row, title, rows, lambda: not self._left)

    async def read_pages(self, pages: Sequence["ViewerPage"]) -> None:
        from handrail.chat.viewer import show_pages  # noqa: PLC0415  loaded with the session

        async with self.console.lend():
            await asyncio.to_thread(show_pages, pages, lambda: not self._left)

    async def show_command(self, *words: str) -> None:
        argv = self.host.build_command(*words)
        async with self.console.lend():
            process = await asyncio.create_subprocess_exec(*argv, env={**os.environ, IN_SESSION: "1"})
            await process.wait()

    def put_prompt(self, text: str) -> None:
        self.composer.put(text)

    def queue(self, texts: Sequence[str]) -> None:
        self._entries.extendleft(Entry(text, text) for text in reversed(texts))

    # The work

    def _begin(self) -> None:
        """Opens the session while the composer is there already."""
        self.start(self._work())

    async def _work(self) -> None:
        try:
            setup = await asyncio.to_thread(self.host.prepare, None)
            await self.open_session(setup)
        except Exception as error:
            self._failure = error
            self.leave(_FAILED)
            return
        while True:
            self.is_working = False
            self.console.note = ""
            await self._update_bar()
            self.console.refresh()
            while not self._entries:
                self._wake.clear()
                await self._wake.wait()
            self.is_working = True
            entry = self._entries.popleft()
            self._echo(entry)
            await self._guard(self.run_entry(entry))

    def _steer(self) -> None:
        if self.is_working and self.session is not None and self._entries:
            entries = [entry for entry in self._entries if not entry.text.startswith("!")]
            self.session.steer(entry.text for entry in entries)
            self._entries = deque(entry for entry in self._entries if entry.text.startswith("!"))
            for entry in entries:
                self._echo(entry, " (with the next result)")

    async def _cycle_mode(self, session: "ChatSession") -> None:
        mode = await session.next_mode()
        self.console.note = f"mode {mode}"
        self.console.refresh()

    async def _guard(self, work: Coroutine[Any, Any, object]) -> None:
        """Shows errors that have a text for the person. Others end the session."""
        try:
            await work
        except Exception as error:
            if not self.report(error):
                self._failure = error
                self.leave(_FAILED)
        finally:
            if self._left:
                self.leave(self._code)

    def call_attention(self, text: str, *, waits: bool) -> None:
        """Notifies the person if they look elsewhere: the window has no focus, or no key came for a while."""
        idle = self.console.clock.elapsed > LONG_SECONDS
        away = not self.console.focused if self.console.focused is not None else idle
        if away and waits:
            self.console.notify("handrail", to_one_line(text))

    def _hang_up(self, number: int) -> None:
        self.leave(_HUNG_UP if number == signal.SIGHUP else 128 + number)

    async def _end(self) -> None:
        """Stops the turn and closes the session. Background processes go on."""
        session = self.session
        if session is not None:
            session.cancel()
        for task in [*self._tasks]:
            task.cancel()
        if self._tasks:
            await asyncio.wait([*self._tasks])
        await self.close_session()
        with suppress(OSError):  # the terminal is gone
            self.console.flush()

    # What is shown

    def _echo(self, entry: Entry, remark: str = "") -> None:
        lines = escape_control(entry.shown.expandtabs(4)).split("\n")
        rows = [f"{'›' if not number else ' '} {line}" for number, line in enumerate(lines)]
        rows[-1] += self.glyphs.paint(remark, "dim")
        self.console.write(["", *(self.glyphs.paint(row, "heading") for row in rows)])

    def _render_live(self) -> list[str]:
        rows = self._view.render_live() if self._view is not None and self.is_working else []
        if self.is_working and self._entries:
            last = truncate(to_one_line(self._entries[-1].shown), 60)
            queued = f"  {len(self._entries)} queued: {last} (enter sends now, ↑ edits)"
            rows.append(self.glyphs.paint(truncate(queued, self.console.width), "dim"))
        return rows

    def _render_bar(self) -> str:
        if self.session is None:
            return STARTS
        between = self.glyphs.between
        running = f"{self._processes} {'process' if self._processes == 1 else 'processes'} (/ps)"
        state = ["working", "esc stop", "type to queue a message"] if self.is_working else [self.session.mode]
        facts = [*state, *([running] if self._processes else []), "shift+tab mode", "? keys"]
        while len(bar := f" {between.join(facts)}") > self.width and len(facts) > 1:
            facts.pop()
        return bar

    async def _update_bar(self) -> None:
        if self.session is not None:
            self._processes = sum(one.state == "running" for one in await self.session.rail.processes())

    def _list_files(self) -> Iterable[str]:
        """The files of the workspace, for completion. Runs in a thread."""
        with suppress(HandrailError, ToolError, OSError):
            return self.session.rail.rail.list_files() if self.session is not None else ()
        return ()

    def _load_history(self) -> Iterable[str]:
        with suppress(HandrailError):
            return [prompt for _, prompt in self.host.list_sessions()]
        return ()
