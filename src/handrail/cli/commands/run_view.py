"""The view of `handrail run`: that of a session at a terminal, plain lines elsewhere."""

import io
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

from handrail.cli.exits import CommandFailed
from handrail.cli.output import print_painted, warn_painted, write_out
from handrail.models.base import StreamPiece
from handrail.protocol.calls import ToolCall
from handrail.protocol.events import (
    Event,
    Text,
    ToolEvent,
    User,
    Warning,  # noqa: A004
)
from handrail.protocol.text import escape_control
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.live_view import LiveView
from handrail.terminal.screen import Screen
from handrail.terminal.session_view import SessionView
from handrail.terminal.style import measure_columns

_PATIENCE_SECONDS, _PLAIN_PATIENCE_SECONDS = 0.3, 1.0
"""After which a person at a terminal sees what takes so long. A plain terminal cannot erase it."""
_WIDTH = 100
"""The columns of rows that are for no terminal."""


class _WordWriter:
    """Writes the rows of the model's words to stdout."""

    def __init__(self, view: "RunView") -> None:
        self._view = view

    @property
    def width(self) -> int:
        return (measure_columns(sys.stdout) or _WIDTH) - 1

    def write(self, rows: Sequence[str]) -> None:
        self._view.make_room()
        print_painted("".join(f"{row}\n" for row in rows))


class RunView:
    """Shows events as they come, from any thread. The words of the model go to stdout, everything else to stderr."""

    def __init__(self, options: SimpleNamespace, glyphs: Glyphs, model: str) -> None:
        self._plain, self._model, self._quiet = glyphs.plain, model, bool(options.quiet)
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._has_rows = sys.stdout is not None and sys.stdout.isatty() and not glyphs.plain
        """Whether the words of the model are rows, not the text as it is."""
        screen = Screen(sys.stderr or io.StringIO(), os.environ, plain=glyphs.plain)
        self._live = LiveView(screen, shown=is_terminal and not self._quiet)
        self._view = SessionView(
            glyphs,
            self,
            words=_WordWriter(self),
            verbose=bool(options.verbose),
            detail="warnings" if self._quiet else "all" if is_terminal else "lines",
            in_session=False,
        )
        self._render = self._view.render_live
        self._message = ""
        self._midline = self._is_lent = False
        self.failure: CommandFailed | None = None
        """Why the view cannot write any more."""

    @property
    def shows_results(self) -> bool:
        """Whether each call gets a row."""
        return not self._quiet

    # Rows of the session

    @property
    def width(self) -> int:
        return (measure_columns(sys.stderr) or _WIDTH) - 1

    def write(self, rows: Sequence[str]) -> None:
        self.make_room()
        for row in rows:
            warn_painted(row)

    def make_room(self) -> None:
        """Clears the live rows, and ends the line of the model."""
        self._live.clear()
        if self._midline:
            self._midline = False
            write_out("\n")

    # Events

    def show(self, event: Event) -> None:
        with self._live.lock:
            try:
                self._show(event)
            except CommandFailed as failure:  # a listener must not raise, and the turn can go on
                self.failure = failure

    def show_model_activity(self, piece: StreamPiece) -> None:
        """Shows that the model thinks, or writes a long call."""
        with self._live.lock:
            self._view.show_piece(piece)

    def remember(self, tool_call_id: str, args: object) -> None:
        """Remembers the arguments of a call whose start is not shown."""
        self._view.remember(tool_call_id, args)

    def print_line(self, text: str) -> None:
        with self._live.lock:
            self.write([escape_control(text)])

    def show_preview(self, call: ToolCall, output: str) -> None:
        """Shows that a call is previewed, and its new output."""
        with self._live.lock:
            self._view.show_preview(call, output)
            self._start_live()

    def end(self) -> None:
        """Ends the words of the model, and the live view."""
        with self._live.lock:
            self._live.stop()
            self._view.end_turn()
            self.make_room()

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
            self.make_room()
            yield

    @property
    def erasure(self) -> bytes:
        """Erases the live view, without a lock."""
        return self._live.erasure

    def _show(self, event: Event) -> None:
        if self._quiet and not isinstance(event, Text | ToolEvent | Warning):
            return
        if isinstance(event, User):
            self._view.begin_turn(self._model, " … Ctrl-C stops it")
        if isinstance(event, Text) and not self._has_rows:
            self._write_words(event)
        else:
            self._view.show(event)
        self._start_live()

    def _start_live(self) -> None:
        if not self._is_lent:
            self._live.start(self._render, _PLAIN_PATIENCE_SECONDS if self._plain else _PATIENCE_SECONDS)

    def _write_words(self, event: Text) -> None:
        """Writes the words as they are. Their messages are separate lines."""
        if event.message_id != self._message:
            self.make_room()
            self._message = event.message_id
        self._live.clear()
        write_out(event.text)
        self._midline = not event.text.endswith("\n") if event.text else self._midline
