"""The view of `handrail run`: the words of the model on stdout, a line for everything else on stderr."""

import io
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from handrail.cli.exits import CommandFailed
from handrail.cli.output import warn_painted, write_out
from handrail.models.base import CallPiece, StreamPiece
from handrail.protocol.calls import ToolCall
from handrail.protocol.events import (
    Event,
    Reasoning,
    Text,
    ToolCallEnd,
    ToolCallError,
    ToolCallStart,
    ToolEvent,
    User,
    Warning,  # noqa: A004
)
from handrail.protocol.results import ToolResult
from handrail.protocol.text import escape_control, to_one_line
from handrail.terminal.call_lines import describe_unasked, render_call_line, render_event, render_running_line
from handrail.terminal.glyphs import Glyphs, SpoofGuard
from handrail.terminal.live_view import CallTracker, LiveView, RunningCalls
from handrail.terminal.screen import Screen
from handrail.terminal.style import wrap_line

_PATIENCE_SECONDS = 1.0
"""After which a person at a terminal sees what takes so long."""
_CALL_PATIENCE_SECONDS = 0.3
"""The same for a call on a terminal that can erase it."""


class RunView:
    """Shows events as they come, from any thread."""

    def __init__(self, options: SimpleNamespace, glyphs: Glyphs, model: str) -> None:
        self._glyphs, self._model = glyphs, model
        self._quiet, self._verbose = bool(options.quiet), int(options.verbose)
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        is_shown = not options.quiet and self._is_terminal
        self._live = LiveView(Screen(sys.stderr or io.StringIO(), os.environ, plain=glyphs.plain), shown=is_shown)
        self._running = RunningCalls(glyphs.paint)
        self._calls = CallTracker(self._running, self._begin_call)
        self._render_running = self._with_words_ended(self._running.render)
        self._message = ""
        self._midline = False
        # On a terminal, the words of the model stand among the lines of handrail.
        shares_terminal = sys.stdout is not None and sys.stdout.isatty() and not glyphs.plain
        self._guard = SpoofGuard(glyphs) if shares_terminal else None
        self._thoughts = ""
        self._is_lent = False
        self.failure: CommandFailed | None = None
        """Why the view cannot write any more."""

    def show(self, event: Event) -> None:
        if isinstance(event, Reasoning) and not self._verbose:
            return  # the person still waits
        with self._live.lock:
            try:
                self._show(event)
            except CommandFailed as failure:  # a listener must not raise, and the turn can go on
                self.failure = failure

    def show_model_activity(self, piece: StreamPiece) -> None:
        """Shows that the model writes a long call."""
        if isinstance(piece, CallPiece):
            with self._live.lock:
                self._wait(
                    lambda: f"{self._glyphs.sign('running')} {to_one_line(piece.name)} … the model writes the call"
                )

    def preload(self, event: Event) -> None:
        """Remembers the arguments of a call from before this process."""
        if isinstance(event, ToolCallStart):
            self._calls.remember(event.tool_call_id, event.args)

    def remember(self, tool_call_id: str, args: object) -> None:
        """Remembers the arguments of a call that has no event yet."""
        self._calls.remember(tool_call_id, args)

    def print_line(self, text: str) -> None:
        with self._live.lock:
            self._line(escape_control(text))

    def show_preview(self, call: ToolCall, output: str) -> None:
        """Shows that a call is previewed, and its new output."""
        with self._live.lock:
            self._begin_call(call.tool_call_id, call.name, call.args)
            self._running.add_output(call.tool_call_id, output)

    def end(self) -> None:
        """Ends the line of the model, and the live view."""
        with self._live.lock:
            self._live.stop()
            self._end_words()

    @contextmanager
    def lend(self) -> Generator[None]:
        """Shows no live view while a prompt has the terminal."""
        self.end()
        self._is_lent = True
        try:
            yield
        finally:
            self._is_lent = False

    @contextmanager
    def above(self) -> Generator[None]:
        """Lets others write lines."""
        with self._live.lock:
            self._live.clear()
            self._end_words()
            yield

    @property
    def erasure(self) -> bytes:
        """Erases the live view, without a lock."""
        return self._live.erasure

    def _show(self, event: Event) -> None:
        match event:
            case Text():
                self._write_words(event)
            case Reasoning():
                self._write_thoughts(event.text)
            case User():
                self._await_model()
            case ToolCallEnd() | ToolCallError():
                self._show_result(event.result, event.label)
            case ToolEvent():
                self._calls.track(event)
            case _ if not self._quiet or isinstance(event, Warning):
                for text in render_event(event, self._glyphs, self._verbose):
                    self._line(text)
            case _:
                pass

    def _begin_call(self, call_id: str, name: str, args: object) -> None:
        self._running.begin(call_id, render_running_line(name, args, self._glyphs))
        self._show_running()

    def _show_running(self) -> None:
        patience = _PATIENCE_SECONDS if self._glyphs.plain else _CALL_PATIENCE_SECONDS
        if not self._is_lent:
            self._live.start(self._render_running, patience)

    def _write_words(self, event: Text) -> None:
        self._live.stop()
        if event.message_id != self._message:
            self._end_words()
            self._message = event.message_id
        guard = self._guard
        write_out(guard.mark_piece(event.text, begins=not self._midline) if guard is not None else event.text)
        self._midline = not event.text.endswith("\n") if event.text else self._midline

    def _write_thoughts(self, text: str) -> None:
        *whole, self._thoughts = (self._thoughts + text).split("\n")
        for line in whole:
            self._line(f"  {to_one_line(line)}")

    def _show_result(self, result: ToolResult[Any], label: str) -> None:
        args, change = self._calls.finish(result.tool_call_id)
        if result.name == "display" and result.ok:
            return  # the view showed the display itself
        if not self._quiet:
            line = render_call_line(result, args, self._glyphs, label, change)
            is_long = self._is_terminal and not result.ok
            self._line(wrap_line(line, self._glyphs.width - 1, 2).rstrip() if is_long else line)
            if result.meta.answered_by is not None:
                self._line(f"    {describe_unasked(result.meta.answered_by, changed=result.meta.undo is not None)}")
        for text in result.warnings:
            self._line(f"{self._glyphs.sign('asks')} {to_one_line(text)}")
        if self._running:
            self._show_running()
        else:
            self._await_model()

    def _line(self, text: str) -> None:
        """Writes a line that is escaped already."""
        if self._thoughts:
            thought, self._thoughts = self._thoughts, ""
            self._line(f"  {to_one_line(thought)}")
        self._live.clear()
        self._end_words()
        warn_painted(text)

    def _end_words(self) -> None:
        if self._midline:
            self._midline = False
            write_out("\n")

    def _await_model(self) -> None:
        self._wait(lambda: f"{self._glyphs.sign('running')} waiting for {to_one_line(self._model)} … Ctrl-C stops it")

    def _wait(self, render: Callable[[], str]) -> None:
        """Shows a line after a second, unless something else is shown before."""
        self._live.start(self._with_words_ended(lambda: [render()]), _PATIENCE_SECONDS)

    def _with_words_ended(self, render: Callable[[], list[str]]) -> Callable[[], list[str]]:
        def end_words() -> list[str]:
            self._end_words()
            return render()

        return end_words
