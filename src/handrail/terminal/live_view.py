"""The rows at the bottom of a terminal that are redrawn in place."""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, RLock, Thread

from handrail.protocol.text import to_one_line
from handrail.terminal.screen import Screen, format_seconds
from handrail.terminal.style import Paint, measure_painted, strip_styles, truncate_painted

_INTERVAL_SECONDS = 0.2
_MAX_TAIL_CHARS = 8_000
_MAX_TAIL_LINES = 5
_MAX_CALLS = 3
_INDENT = "    "


class LiveView:
    """Rows below everything else. Whoever writes to the terminal holds `lock` and calls `clear` before.

    A plain screen shows the first row once, as a line.
    """

    def __init__(self, screen: Screen, *, shown: bool = True) -> None:
        self.lock = RLock()
        self._screen, self._shown = screen, shown
        self._render: Callable[[], list[str]] | None = None
        self._ended = Event()
        self._drawn: list[str] = []

    def start(self, render: Callable[[], list[str]], delay: float) -> None:
        """Draw these rows after a delay, and again several times a second. If that has begun, it goes on."""
        with self.lock:
            if self._shown and self._render is not render:
                self.stop()
                self._render, self._ended = render, Event()
                Thread(target=self._tick, args=(self._ended, delay), daemon=True).start()

    def stop(self) -> None:
        """Erase the rows for good."""
        with self.lock:
            self._ended.set()
            self._render = None
            self.clear()

    def clear(self) -> None:
        """Make room for other output. The rows come back below it."""
        if self._drawn:
            with suppress(OSError, ValueError):
                self._screen.draw_rows([], self._list_erasable())
            self._drawn = []

    @property
    def erasure(self) -> bytes:
        """Erases the rows, for a signal handler that must not wait for the lock."""
        return b"\r" + b"\x1b[A" * (len(self._drawn) - 1) + b"\x1b[J" if self._drawn else b""

    def _tick(self, ended: Event, delay: float) -> None:
        while not ended.wait(delay):
            delay = _INTERVAL_SECONDS
            with self.lock, suppress(OSError, ValueError):  # the terminal is gone
                if self._render is not None and not ended.is_set():
                    self._draw(self._render())
                    if self._screen.plain:
                        return

    def _draw(self, rows: list[str]) -> None:
        if self._screen.plain:
            self._screen.write(rows[:1])
            return
        columns, height = self._screen.size()
        rows = [truncate_painted(row, columns - 1) for row in rows[: height - 1]]
        if rows != self._drawn:
            self._screen.draw_rows(rows, self._list_erasable())
            self._drawn = rows

    def _list_erasable(self) -> int:
        """The number of drawn rows. A narrower terminal has wrapped long rows, so these stay where they are."""
        columns = self._screen.size()[0]
        for count, row in enumerate(reversed(self._drawn)):
            if measure_painted(row) >= columns:
                self._screen.write([""])
                return count
        return len(self._drawn)


class RunningCalls:
    """The calls that run now: their time, and the last lines of the output that came last."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._calls: dict[str, tuple[str, float]] = {}
        self._output: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def begin(self, call_id: str, line: str) -> None:
        """Add a call, in one escaped line. If it is there, it keeps its time."""
        self._calls[call_id] = (line, self._calls[call_id][1] if call_id in self._calls else time.monotonic())

    def add_output(self, call_id: str, piece: str) -> None:
        self._output[call_id] = (self._output.pop(call_id, "") + piece)[-_MAX_TAIL_CHARS:]

    def end(self, call_id: str) -> None:
        self._calls.pop(call_id, None)
        self._output.pop(call_id, None)

    def clear(self) -> None:
        self._calls.clear()
        self._output.clear()

    def render(self) -> list[str]:
        now = time.monotonic()
        rows = [f"{line} {self._paint(format_seconds(now - begun), 'dim')}" for line, begun in self._calls.values()]
        more = [f"{_INDENT}and {len(rows) - _MAX_CALLS} more"] if len(rows) > _MAX_CALLS else []
        last = next(reversed(self._output.values()), "")
        tail = [self._paint(f"{_INDENT}{line}", "dim") for line in _list_last_lines(last)]
        return [*rows[:_MAX_CALLS], *more, *tail]


def _list_last_lines(output: str) -> list[str]:
    """The last lines, escaped. Of a line that was overwritten, only its last form."""
    lines = strip_styles(output).replace("\r\n", "\n").rstrip("\r\n").split("\n")[-_MAX_TAIL_LINES:]
    return [to_one_line(line.rstrip("\r").rpartition("\r")[2].expandtabs(8)) for line in lines if output]
