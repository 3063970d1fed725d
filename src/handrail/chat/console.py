"""The terminal of a session: finished rows in its scrollback, live rows with the composer below them."""

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style, default_ui_style, merge_styles
from prompt_toolkit.widgets import SearchToolbar

from handrail.chat.composer import Composer, VisibleText
from handrail.chat.first_rows import PROMPT
from handrail.chat.reflow import ReflowOutput, ReflowRenderer
from handrail.terminal.keyboard import KeyTiming
from handrail.terminal.style import Paint, paint_nothing, paint_on_light

_FLUSH_SECONDS = 0.04
"""Finished rows are written at most this often."""
_TICK_SECONDS = 0.25
"""Live rows are drawn at least this often while a turn runs."""
_MAX_FLUSH_ROWS = 2_000
_MAX_IDLE_ROWS, _MAX_BUSY_ROWS = 10, 3
"""Rows of the composer, without and with live rows above it."""
FOCUS_IN, FOCUS_OUT = Keys.F23, Keys.F24
"""Keys that stand for reports of the terminal."""
_REPORT_FOCUS, _IGNORE_FOCUS = "\x1b[?1004h", "\x1b[?1004l"
_NOTIFY_OFF = frozenset(("0", "off", "no", "false"))
_NEW_LINE = (Keys.Escape, Keys.ControlM)


def build_style(paint: Paint) -> Style:
    """Only the terminal's own colours, which its theme makes readable."""
    if paint is paint_nothing:
        return Style.from_dict({"chosen": "bold", "bar": "", "completion": "", "search": ""})
    chosen, note = ("ansiblue", "ansimagenta") if paint is paint_on_light else ("ansicyan", "ansiyellow")
    return Style.from_dict({"chosen": f"bold {chosen}", "bar": "dim", "prompt": "bold", "note": note})


class QuietClock:
    """Tells for how long no key was pressed."""

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._last = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the last key."""
        return time.monotonic() - self._last

    def note_key(self) -> None:
        self._last = time.monotonic()

    async def wait(self, on_wait: Callable[[], None]) -> None:
        """Waits until no key was pressed for the quiet time. Calls `on_wait` whenever it has to wait."""
        while (left := self._quiet - self.elapsed) > 0:
            on_wait()
            await asyncio.sleep(left)


class _Keyboard(Vt100Input):
    """Notes each byte when it arrives: prompt_toolkit delivers an Esc later, since it may begin a sequence."""

    def __init__(self, note_key: Callable[[], None]) -> None:
        super().__init__(sys.stdin)
        self._note_key = note_key

    def read_keys(self) -> list[KeyPress]:
        keys = super().read_keys()
        if not keys or any(one.key not in {FOCUS_IN, FOCUS_OUT} for one in keys):
            self._note_key()
        return keys


class Console:
    """Owns the terminal. Everything that it writes was escaped before."""

    def __init__(
        self,
        composer: Composer,
        bindings: KeyBindings,
        render_live: Callable[[], list[str]],
        render_bar: Callable[[], str],
        paint: Paint,
    ) -> None:
        _register_keys()
        self._composer, self._render_live_rows, self._render_bar = composer, render_live, render_bar
        self._rows: list[str] = []
        self._flush_at: asyncio.TimerHandle | None = None
        self._lent = 0
        self._lock = asyncio.Lock()
        self._holder: asyncio.Task[object] | None = None
        """The task that the terminal is lent to."""
        self.note = ""
        """A line below the composer, until the next key."""
        self.earlier_note = ""
        """The note that the last key removed."""
        self.clock = QuietClock(KeyTiming().quiet)
        self.focused: bool | None = None
        """Whether the window has the focus. None: the terminal does not report it."""
        self._search = SearchToolbar(text_if_not_searching="")
        depth = ColorDepth.DEPTH_1_BIT if paint is paint_nothing else ColorDepth.DEPTH_4_BIT
        output = ReflowOutput(sys.stdout, _read_size, default_color_depth=depth, enable_cpr=False)
        style = build_style(paint)
        self.app: Application[int] = Application(
            layout=self._build_layout(),
            key_bindings=merge_key_bindings([self._build_focus_bindings(), bindings]),
            style=style,
            include_default_pygments_style=False,
            full_screen=False,
            mouse_support=False,
            input=_Keyboard(self.clock.note_key),
            output=output,
            erase_when_done=True,
        )
        self.app.renderer = ReflowRenderer(merge_styles([default_ui_style(), style]), output)
        self.app.ttimeoutlen = 0.05
        self.app.timeoutlen = 0.15
        self.app.key_processor.before_key_press += self._note_key

    @property
    def width(self) -> int:
        """The columns for a row. The last one stays empty, since some terminals wrap behind it."""
        return max(20, self.app.output.get_size().columns - 1)

    def write(self, rows: list[str]) -> None:
        """Writes rows above the composer."""
        self._rows += rows
        if self._flush_at is None and not self._lent:
            loop = asyncio.get_running_loop()
            self._flush_at = loop.call_later(_FLUSH_SECONDS, self.flush)

    def refresh(self) -> None:
        """Draws the live rows again, soon."""
        if not self._lent:
            self.app.invalidate()

    def flush(self) -> None:
        """Writes the rows that wait."""
        if self._flush_at is not None:
            self._flush_at.cancel()
            self._flush_at = None
        if self._lent or not self._rows:
            return
        rows, self._rows = self._rows, []
        output = self.app.output
        if self.app.is_running:
            self.app.renderer.erase(leave_alternate_screen=False)
        for start in range(0, len(rows), _MAX_FLUSH_ROWS):
            output.write_raw("".join(f"{row}\r\n" for row in rows[start : start + _MAX_FLUSH_ROWS]))
            output.flush()
        if self.app.is_running:
            self.app.render_counter += 1  # otherwise the rows would come from its cache
            self.app.renderer.render(self.app, self.app.layout)

    async def tick(self) -> None:
        """Draws the live rows several times a second, for their clocks."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if self._render_live_rows():
                self.refresh()

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Gives the terminal to other code, in its usual mode, with the composer erased. The task that has it may ask
        again."""
        if self._holder is asyncio.current_task():
            yield
            return
        async with self._lock:
            self._holder = asyncio.current_task()
            self.flush()
            self._lent += 1
            try:
                async with in_terminal():
                    self._control(_IGNORE_FOCUS)
                    yield
                    sys.stderr.flush()
                    self._control(_REPORT_FOCUS)
            finally:
                self._holder = None
                self._lent -= 1
                self.flush()

    @asynccontextmanager
    async def hold_screen(self) -> AsyncGenerator[None]:
        """Keeps the composer away between pages, so that a key is for the page that comes next."""
        async with self.lend():
            yield
            self._control("\r\x1b[K")

    @asynccontextmanager
    async def lend_when_quiet(self, held_up: str) -> AsyncGenerator[KeyTiming]:
        """The same for a prompt: first waits until no key was pressed for a while. Keys until then are the composer's.

        The timing tells the prompt how long it was quiet. `held_up` is shown while keys hold the prompt up.
        """

        def hold_up() -> None:
            self.note = held_up
            self.refresh()

        timing = KeyTiming()
        while True:
            await self.clock.wait(hold_up)
            self.note = ""
            async with self.lend():
                if not select.select([sys.stdin], [], [], 0)[0]:  # otherwise a key came just now
                    yield timing._replace(quiet_before=self.clock.elapsed)
                    self.clock.note_key()
                    return
            await asyncio.sleep(timing.settle)  # the composer reads the key

    @contextmanager
    def hold(self) -> Generator[None]:
        """Writes nothing while other code has the terminal by the means of prompt_toolkit."""
        self.flush()
        self._lent += 1
        self._control(_IGNORE_FOCUS)
        try:
            yield
        finally:
            self._control(_REPORT_FOCUS)
            self._lent -= 1
            self.flush()

    async def suspend(self) -> None:
        """Stops the process until the shell continues it."""
        async with self.lend():
            os.kill(0, signal.SIGTSTP)

    def _control(self, sequence: str) -> None:
        self.app.output.write_raw(sequence)
        self.app.output.flush()

    def notify(self, title: str, text: str) -> None:
        """Sends a notification of the terminal, or rings its bell. Both texts were escaped before."""
        if os.environ.get("HANDRAIL_NOTIFY", "").lower() in _NOTIFY_OFF:
            return
        safe = f"{title}: {text}".replace(";", ",")[:200]
        known = {"iTerm.app", "WezTerm", "ghostty", "kitty"} & {
            os.environ.get("TERM_PROGRAM", ""),
            os.environ.get("TERM", "").removeprefix("xterm-"),
        }
        self._control(f"\x1b]9;{safe}\x07" if known or os.environ.get("WT_SESSION") else "\x07")

    async def run(self, after_start: Callable[[], None]) -> int:
        """Shows the composer until the session ends."""
        started = False

        def begin(_: object) -> None:
            nonlocal started
            if not started:
                started = True
                self._control(_REPORT_FOCUS)
                after_start()

        self.app.after_render += begin
        ticking = asyncio.ensure_future(self.tick())
        try:
            return await self.app.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:  # the terminal is gone
            return 129
        finally:
            ticking.cancel()
            self._lent = 0
            with suppress(OSError):
                self._control(_IGNORE_FOCUS)
                self.flush()

    # Layout

    def _build_layout(self) -> Layout:
        control = BufferControl(
            self._composer.buffer,
            input_processors=[VisibleText()],
            search_buffer_control=self._search.control,
            preview_search=True,
        )
        composer = Window(
            control,
            wrap_lines=True,
            dont_extend_height=True,
            height=self._measure_composer,
            get_line_prefix=lambda line, wrapped: [("class:prompt", PROMPT if not line and not wrapped else "  ")],
        )
        completes = Condition(lambda: self._composer.buffer.complete_state is not None)
        return Layout(
            HSplit(
                [
                    self._build_text_window(self._render_live, lambda: bool(self._render_live_rows())),
                    composer,
                    ConditionalContainer(
                        Window(FormattedTextControl(self._composer.render_completions), dont_extend_height=True),
                        completes & ~has_focus(self._search.control),
                    ),
                    self._search,
                    self._build_text_window(self._render_bar_row, lambda: True),
                ]
            ),
            focused_element=control,
        )

    def _build_text_window(
        self, render: Callable[[], StyleAndTextTuples], is_shown: Callable[[], bool]
    ) -> ConditionalContainer:
        window = Window(FormattedTextControl(render), dont_extend_height=True, wrap_lines=False)
        return ConditionalContainer(window, Condition(is_shown))

    def _render_live(self) -> StyleAndTextTuples:
        return to_formatted_text(ANSI("\n".join(self._render_live_rows())))

    def _render_bar_row(self) -> StyleAndTextTuples:
        return [("class:note", f" {self.note}")] if self.note else [("class:bar", self._render_bar()[: self.width])]

    def _measure_composer(self) -> Dimension:
        return Dimension(min=1, max=_MAX_BUSY_ROWS if self._render_live_rows() else _MAX_IDLE_ROWS)

    # Keys

    def _note_key(self, _: object) -> None:
        self.earlier_note, self.note = self.note, ""

    def _build_focus_bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add(FOCUS_IN, eager=True)
        def _(_: KeyPressEvent) -> None:
            self.focused = True

        @bindings.add(FOCUS_OUT, eager=True)
        def _(_: KeyPressEvent) -> None:
            self.focused = False

        return bindings


def _read_size() -> Size:
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):  # the terminal is gone
        columns, rows = 0, 0
    return Size(rows=rows or 24, columns=columns or 80)


def _register_keys() -> None:
    """Teaches prompt_toolkit the reports of focus, and Shift+Enter of terminals that send it."""
    ANSI_SEQUENCES.setdefault("\x1b[I", FOCUS_IN)
    ANSI_SEQUENCES.setdefault("\x1b[O", FOCUS_OUT)
    ANSI_SEQUENCES["\x1b[27;2;13~"] = ANSI_SEQUENCES["\x1b[13;2u"] = _NEW_LINE
