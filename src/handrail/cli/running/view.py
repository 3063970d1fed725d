"""What a person sees of a turn: the model's words on stdout, a line for everything else on stderr."""

import sys
from argparse import Namespace
from collections.abc import Callable
from threading import Lock, Timer
from typing import Any

from handrail.cli.exits import CommandFailed
from handrail.cli.output import warn, write_out
from handrail.cli.running.form import Glyphs, SpoofGuard
from handrail.cli.running.lines import render_call_line, render_display, render_running_line
from handrail.models.base import CallPiece, StreamPiece
from handrail.protocol.events import (
    Display,
    Event,
    Network,
    Notice,
    Process,
    Reasoning,
    Text,
    ToolCallEnd,
    ToolCallError,
    ToolCallRunning,
    ToolCallStart,
    User,
    Warning,  # noqa: A004
)
from handrail.protocol.text import to_one_line

_PATIENCE_SECONDS = 1.0
"""Seconds after which somebody at a terminal is told what takes so long."""


class RunView:
    """Shows events as they come, from whatever thread."""

    def __init__(self, options: Namespace, form: Glyphs, model: str) -> None:
        self._form, self._model = form, model
        self._quiet, self._verbose = bool(options.quiet), int(options.verbose)
        self._tells_waits = not options.quiet and sys.stderr is not None and sys.stderr.isatty()
        self._lock = Lock()
        self._message = ""
        self._midline = False
        # Into a pipe go the words alone; on a terminal they stand among lines of ours.
        self._marking = SpoofGuard(form) if sys.stdout is not None and sys.stdout.isatty() and not form.plain else None
        self._thoughts = ""
        self._arguments: dict[str, object] = {}
        self._timer: Timer | None = None
        self.failure: CommandFailed | None = None
        """Why nothing can be shown any more."""

    def show(self, event: Event) -> None:
        """Shows one event."""
        if isinstance(event, Reasoning) and not self._verbose:
            return  # for the person it is still waiting
        with self._lock:
            self._stop_waiting()
            try:
                self._show(event)
            except CommandFailed as stop:  # a listener must not raise, and the turn is not the worse for it
                self.failure = stop

    def show_model_activity(self, piece: StreamPiece) -> None:
        """Tells what the model is at, where a call takes long to be written."""
        if isinstance(piece, CallPiece):
            with self._lock:
                self._wait(lambda: f"{self._form.running} {to_one_line(piece.name)} … the model writes the call")

    def preload(self, event: Event) -> None:
        """Remembers what a call is about that was begun before anybody looked."""
        if isinstance(event, ToolCallStart):
            self._arguments[event.tool_call_id] = event.args

    def remember(self, tool_call_id: str, args: object) -> None:
        """What a call is about of which only the model's message is written down."""
        self._arguments.setdefault(tool_call_id, args)

    def print_line(self, text: str) -> None:
        """A line of ours, below what there is."""
        with self._lock:
            self._stop_waiting()
            self._line(text)

    def end(self) -> None:
        """Nothing comes any more: what was said ends its line."""
        with self._lock:
            self._stop_waiting()
            self._end_words()

    def _show(self, event: Event) -> None:
        match event:
            case Text():
                self._words(event)
            case Reasoning():
                self._think(event.text)
            case User():
                self._await_model()
            case ToolCallStart():
                self._arguments[event.tool_call_id] = event.args
            case ToolCallRunning():
                args = self._arguments.get(event.tool_call_id)
                self._wait(lambda: render_running_line(event.label, args, self._form))
            case ToolCallEnd() | ToolCallError():
                self._call(event.result, event.label)
            case _ if not self._quiet or isinstance(event, Warning):
                for text in _told(event, self._form, self._verbose):
                    self._line(text)
            case _:
                pass

    def _words(self, event: Text) -> None:
        if event.message_id != self._message:
            self._end_words()
            self._message = event.message_id
        marking = self._marking
        write_out(marking.mark_piece(event.text, begins=not self._midline) if marking is not None else event.text)
        self._midline = not event.text.endswith("\n") if event.text else self._midline

    def _think(self, text: str) -> None:
        *whole, self._thoughts = (self._thoughts + text).split("\n")
        for line in whole:
            self._line(f"  {to_one_line(line)}")

    def _call(self, result: Any, label: str) -> None:
        args = self._arguments.pop(result.tool_call_id, None)
        if result.name == "display" and result.ok:
            return  # it was shown
        if not self._quiet:
            self._line(render_call_line(result, args, self._form, label))
        for text in result.warnings:
            self._line(f"{self._form.asks} {to_one_line(text)}")
        self._await_model()

    def _line(self, text: str) -> None:
        if self._thoughts:
            thought, self._thoughts = self._thoughts, ""
            self._line(f"  {to_one_line(thought)}")
        self._end_words()
        warn(text)

    def _end_words(self) -> None:
        if self._midline:
            self._midline = False
            write_out("\n")

    def _await_model(self) -> None:
        self._wait(lambda: f"{self._form.running} waiting for {self._model} … Ctrl-C stops it")

    def _wait(self, told: Callable[[], str]) -> None:
        if not self._tells_waits:
            return
        self._stop_waiting()
        timer = Timer(_PATIENCE_SECONDS, lambda: self._say_waiting(timer, told))
        timer.daemon = True
        self._timer = timer
        timer.start()

    def _say_waiting(self, timer: Timer, told: Callable[[], str]) -> None:
        with self._lock:
            if self._timer is timer:  # else it was too late to be stopped
                self._timer = None
                self._line(told())

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _told(event: Event, form: Glyphs, verbose: int) -> list[str]:
    """The lines of what is neither words nor a call."""
    match event:
        case Display():
            return render_display(event, form)
        case Notice():
            return [f"{form.info} {to_one_line(event.text)}"]
        case Warning() if event.tool_call_id is None or verbose:
            return [f"{form.asks} {to_one_line(event.text)}"]
        case Network() if not event.allowed:
            return [f"{form.denied} {event.host}:{event.port} was not reached: {to_one_line(event.reason)}"]
        case Process() if event.state == "ended":
            how = event.reason or (f"exit {event.exit_code}" if event.exit_code is not None else event.signal)
            return [f"{form.info} {event.process} has ended ({how}): {to_one_line(event.command)}"]
        case _:
            return []
