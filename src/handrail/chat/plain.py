"""The session on a terminal that only grows: for screen readers, for terminals without control sequences."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress

from handrail.chat.slash_commands import COMMANDS, HELP, describe_unknown, is_command_like, run_command
from handrail.chat.work import ChatHost, Entry, SessionWork
from handrail.terminal.diff_view import ViewerPage
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.keyboard import KeyTiming, raise_on_signal
from handrail.terminal.slash_hints import IN_SESSION

_PROMPT = "Your message (/help lists commands, Ctrl-D leaves): "
_CHOICE = "Type a number, then Enter. Enter alone goes back: "
_MAX_WIDTH = 100
_HUNG_UP = 129


class PlainChat(SessionWork):
    """One run of `handrail chat --plain`. It reads whole lines."""

    plain = True

    def __init__(self, host: ChatHost, glyphs: Glyphs, *, verbose: bool = False) -> None:
        super().__init__(host, glyphs, verbose=verbose)
        self._entries: deque[Entry] = deque()
        self._code: int | None = None

    async def run(self) -> int:
        """Runs until the person leaves. Returns the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._stop)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.leave, _HUNG_UP if number == signal.SIGHUP else 128 + number)
        await self.open_session(await asyncio.to_thread(self.host.prepare, None))
        try:
            while self._code is None:
                entry = self._entries.popleft() if self._entries else self._read_entry()
                if entry is None:
                    break
                await self._run_guarded(entry)
        finally:
            await self.close_session()
        return self._code or 0

    @property
    def width(self) -> int:
        try:
            return max(20, min(_MAX_WIDTH, os.get_terminal_size(2).columns - 1))
        except OSError:
            return _MAX_WIDTH

    def write(self, rows: list[str]) -> None:
        with suppress(OSError):
            sys.stderr.write("".join(f"{row}\n" for row in rows))
            sys.stderr.flush()

    def lend_for_prompt(self, what: str) -> AbstractAsyncContextManager[KeyTiming]:
        del what  # lines are read, so no key comes meanwhile
        return nullcontext(KeyTiming())

    def hold_screen(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        self.write([title, *(f"  {number}  {row}" for number, row in enumerate(rows, 1))])
        while typed := (self._read_line(_CHOICE) or "").strip():
            if typed.isascii() and typed.isdigit() and 0 < int(typed[:6]) <= len(rows):
                return int(typed) - 1
            self.write([f"There are {len(rows)} choices: type a number from 1 to {len(rows)}."])
        return None

    async def read_pages(self, pages: Sequence[ViewerPage]) -> None:
        self.write([line for page in pages for line in (f"{page.name}:", *page.rows(self.width))])

    async def show_command(self, *words: str) -> None:
        variables = {**os.environ, IN_SESSION: "1"}
        await asyncio.to_thread(subprocess.run, self.host.build_command(*words), check=False, env=variables)

    def put_prompt(self, text: str) -> None:
        self.say(f"The prompt was:\n{text}")

    def leave(self, code: int = 0) -> None:
        self._code = code
        self._stop()

    def leave_soon(self, code: int) -> None:
        self._code = code

    def call_attention(self, text: str, *, waits: bool) -> None:
        """A screen reader reads what appears."""

    def queue(self, texts: Sequence[str]) -> None:
        self._entries.extend(Entry(text, text) for text in texts)

    def _stop(self) -> None:
        self.cancel()

    def _read_entry(self) -> Entry | None:
        """The next message of the person. None if they leave."""
        while (line := self._read_line(_PROMPT)) is not None:
            if line.strip() == "?":
                self.say(HELP)
            elif line.strip():
                return Entry(line.strip(), line.strip())
        return None

    def _read_line(self, prompt: str) -> str | None:
        """A line. None at the end of the input, after Ctrl-C, or if the terminal is gone."""
        self.write([prompt.rstrip()])
        try:
            with raise_on_signal(signal.SIGHUP):
                line = sys.stdin.readline()
        except KeyboardInterrupt as interrupt:
            self._code = self._code or (0 if interrupt.args == (signal.SIGINT,) else 128 + interrupt.args[0])
            return None
        except OSError:
            return None
        return line or None

    async def _run_guarded(self, entry: Entry) -> None:
        name = entry.text[1:].partition(" ")[0]
        try:
            if entry.text.startswith("/") and name in COMMANDS:
                await run_command(self, entry.text)
            elif is_command_like(entry.text):
                self.fail(*describe_unknown(entry.text))
            else:
                await self.run_entry(entry)
        except Exception as error:
            if not self.report(error):
                raise
