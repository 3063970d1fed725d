"""Reads the keyboard of a terminal."""

import os
import select
import signal
import termios
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NamedTuple

from handrail.protocol.text import escape_char, escape_control, measure_width, to_one_line, wrap
from handrail.terminal.screen import Screen

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_PASTE_SECONDS = 5.0
"""How long to wait for the end of a paste."""
_MAX_BURST_BYTES = 1 << 20
_SEQUENCES = {
    "esc": (b"\x1b",),
    "enter": (b"\n", b"\r"),
    "space": (b" ",),
    "backspace": (b"\x7f", b"\x08"),
    "clear": (b"\x15",),
    "up": (b"\x1b[A", b"\x1bOA"),
    "down": (b"\x1b[B", b"\x1bOB"),
    "page up": (b"\x1b[5~",),
    "page down": (b"\x1b[6~",),
    "left": (b"\x1b[D", b"\x1bOD"),
    "right": (b"\x1b[C", b"\x1bOC"),
    "home": (b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"\x01"),
    "end": (b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"\x05"),
    "delete": (b"\x1b[3~",),
    "eof": (b"\x04",),
}
_NAMED = {sequence: name for name, sequences in _SEQUENCES.items() for sequence in sequences}
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)
_LOCAL_FLAGS, _SPECIAL = 3, 6
"""Indexes in the attributes of a terminal."""
_MAX_COMMAND_CHARS = 100_000
_COMMAND_PROMPT = "$ "
_COMMAND_HELP = "Change the command; Enter tries it in a copy, Esc goes back."
_PLAIN_COMMAND_HELP = "Type the whole new command; Enter tries it in a copy, Esc goes back:"
_MAX_REASON_CHARS = 1_000
_REASON_PROMPT = "Why not? Enter denies, also without a reason; Esc goes back: "
_REASON_PROMPTS = (_REASON_PROMPT, "Why not? Enter denies, Esc goes back: ", "Why not? Esc: back. ")
_MIN_REASON_COLUMNS = 20


class KeyTiming(NamedTuple):
    """Waiting times in seconds."""

    quiet: float = 1.0
    """Without a key, before a request appears."""
    deaf: float = 0.4
    """In which keys are dropped: after a request appeared, and after a paste."""
    settle: float = 0.03
    """In which the bytes of one key or one paste arrive."""
    quiet_before: float = 0.0
    """How long no key was pressed before the request came."""
    poll: float = 1.0
    """Between two checks whether the request is still pending."""


class KeyPress(NamedTuple):
    name: str
    """The name of a key, `text`, `paste`, or `gone` if the terminal is gone."""
    text: str = ""


class KeyReader:
    """Reads the keys of a terminal in raw mode."""

    def __init__(self, descriptor: int, timing: KeyTiming) -> None:
        self._descriptor = descriptor
        self._timing = timing
        self._quiet_before = timing.quiet_before
        self._gone = False

    def wait_until_quiet(self, on_first: Callable[[], None]) -> None:
        """Drop keys until none came for a while. Call `on_first` when the first one is dropped."""
        has_dropped, quiet = False, max(0.0, self._timing.quiet - self._quiet_before)
        self._quiet_before = 0.0
        while self._read_within(quiet):
            quiet = self._timing.quiet
            if not has_dropped:
                on_first()
                has_dropped = True

    def drop_early(self) -> bool:
        """Drop keys that are pressed before a person can have read the request. Whether there were any."""
        has_dropped, until = False, time.monotonic() + self._timing.deaf
        while (left := until - time.monotonic()) > 0 and not self._gone:
            has_dropped |= bool(self._read_within(left))
        return bool(self._read_within(0)) or has_dropped

    def next(self) -> KeyPress | None:
        """The next key. None if there was none for a while."""
        burst = self._read_within(self._timing.poll)
        if not burst:
            return KeyPress("gone") if self._gone else None
        while len(burst) < _MAX_BURST_BYTES and (more := self._read_within(self._timing.settle)):
            burst += more
        return self._finish_paste(burst) if _PASTE_BEGINS in burst else self._decode(burst)

    def rest(self) -> bytes:
        """The bytes that follow a paste at once. They belong to it."""
        rest = b""
        while more := self._read_within(self._timing.deaf):
            rest = (rest + more)[:_MAX_BURST_BYTES]
        return rest

    def _decode(self, burst: bytes) -> KeyPress:
        if burst in _NAMED:
            return KeyPress(_NAMED[burst], " " if burst == b" " else "")
        text = burst.decode(errors="replace")
        if len(text) == 1:
            return KeyPress("text", text) if text.isprintable() else KeyPress("unknown")
        if text.startswith("\x1b") and text[1:].isprintable() and len(text) < 12:
            return KeyPress("unknown")  # another key that sends several bytes
        self.rest()
        return KeyPress("paste", text)

    def _finish_paste(self, burst: bytes) -> KeyPress:
        while _PASTE_ENDS not in burst and len(burst) < _MAX_BURST_BYTES:
            more = self._read_within(_PASTE_SECONDS)
            if not more:
                break
            burst += more
        self.rest()
        return KeyPress("paste", burst.replace(_PASTE_BEGINS, b"").replace(_PASTE_ENDS, b"").decode(errors="replace"))

    def _read_within(self, seconds: float) -> bytes:
        """Wait so long for bytes. Empty if none came or the terminal is gone."""
        if self._gone or not select.select([self._descriptor], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:
            data = b""
        self._gone = not data
        return data


@contextmanager
def enter_raw_mode(descriptor: int, at_start: Callable[[], None], at_end: Callable[[], None]) -> Generator[None]:
    """Deliver each key at once, without echo.

    `at_start` and `at_end` are also called when the process is stopped (Ctrl-Z) and continues.
    """
    before = termios.tcgetattr(descriptor)

    def begin() -> None:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, _build_raw_mode(before))
        at_start()

    def end() -> None:
        with suppress(OSError, ValueError):
            at_end()
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    replaced = _handle_signals(begin, end)
    try:
        begin()
        yield
    finally:
        end()
        for number, handler in replaced.items():
            signal.signal(number, handler)


@contextmanager
def raise_on_signal(*more: signal.Signals) -> Generator[None]:
    """Lets SIGINT, SIGTERM and other signals end the prompt, which restores the terminal first. The KeyboardInterrupt
    has the number of the signal."""

    def leave(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM, *more)}
    wakes = signal.set_wakeup_fd(-1)  # otherwise the event loop would handle the signal too, afterwards
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakes)
        for number, handler in before.items():
            signal.signal(number, handler)


def edit_command(keys: KeyReader, screen: Screen, command: str) -> str | None:
    """Let a person edit the command. None if they went back.

    A plain screen cannot show an edit, so there they type the whole command.
    """
    line = _LineEditor("" if screen.plain else command)
    screen.status(_PLAIN_COMMAND_HELP if screen.plain else _COMMAND_HELP)
    if not screen.plain:
        screen.write([""])
    while True:
        if not screen.plain:
            line.draw(screen)
        key = keys.next()
        if key is None:
            continue
        if key.name in {"enter", "esc", "gone"}:
            screen.clear_status()
            return line.text.strip() or None if key.name == "enter" else None
        line.press(key)


def ask_reason(keys: KeyReader, screen: Screen) -> str | None:
    """Let a person type one line, perhaps an empty one. None if they went back or the terminal is gone."""
    typed = ""
    _draw_reason(screen, typed)
    while True:
        key = keys.next()
        match key and key.name:
            case "enter":
                screen.clear_status()
                return typed.strip()
            case "esc" | "gone":
                screen.clear_status()
                return None
            case "backspace":
                typed = typed[:-1]
            case "clear":
                typed = ""
            case "text" | "space" | "paste":
                more = key.text if key else ""
                typed = (typed + escape_control(" ".join(more.splitlines())))[:_MAX_REASON_CHARS]
            case _:
                continue
        _draw_reason(screen, typed)


def _draw_reason(screen: Screen, typed: str) -> None:
    """Show the end of the typed text that fits. A plain screen shows it only after it is sent."""
    if screen.plain:
        if not typed:
            screen.write([_REASON_PROMPT.rstrip()])
        return
    columns = screen.size()[0] - 2
    fitting = (one for one in _REASON_PROMPTS if columns - measure_width(one) >= _MIN_REASON_COLUMNS)
    prompt = next(fitting, _REASON_PROMPTS[-1])
    rows = list(wrap(to_one_line(typed), max(5, columns - measure_width(prompt))))
    screen.status(prompt + (rows[-1] if rows else ""))


class _LineEditor:
    """A text with a cursor. A newline is one character of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._cursor = len(text)

    def press(self, key: KeyPress) -> None:
        match key.name:
            case "left" | "right":
                self._cursor = max(0, min(len(self.text), self._cursor + (1 if key.name == "right" else -1)))
            case "home" | "end":
                self._cursor = 0 if key.name == "home" else len(self.text)
            case "backspace":
                self._delete(max(0, self._cursor - 1), self._cursor)
            case "delete":
                self._delete(self._cursor, self._cursor + 1)
            case "clear":
                self._delete(0, self._cursor)
            case "text" | "space" | "paste":
                self._insert(key.text.replace("\r\n", "\n").replace("\r", "\n"))
            case _:
                pass

    def draw(self, screen: Screen) -> None:
        """Show the part around the cursor that fits."""
        room = screen.size()[0] - len(_COMMAND_PROMPT) - 2
        before, after = _to_visible(self.text[: self._cursor]), _to_visible(self.text[self._cursor :])
        while measure_width(before) > room:
            before = before[max(1, len(before) // 2) :] if measure_width(before) > 2 * room else before[1:]
        screen.status(f"{_COMMAND_PROMPT}{before}{after}", measure_width(_COMMAND_PROMPT + before))

    def _delete(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self._cursor = start

    def _insert(self, more: str) -> None:
        more = more[: _MAX_COMMAND_CHARS - len(self.text)]
        self.text = self.text[: self._cursor] + more + self.text[self._cursor :]
        self._cursor += len(more)


def _to_visible(text: str) -> str:
    return escape_control(text).replace("\n", "⏎").replace("\t", escape_char("\t"))


def _build_raw_mode(mode: list[Any]) -> list[Any]:
    changed = [*mode[:_SPECIAL], list(mode[_SPECIAL])]
    changed[_LOCAL_FLAGS] = mode[_LOCAL_FLAGS] & ~(termios.ECHO | termios.ICANON)
    changed[_SPECIAL][termios.VMIN], changed[_SPECIAL][termios.VTIME] = 1, 0
    return changed


def _handle_signals(begin: Callable[[], None], end: Callable[[], None]) -> dict[int, Any]:
    """Restore the terminal before a signal ends or stops the process. Return the replaced handlers.

    Signals that the program handles itself are left to it.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}

    def die(number: int, _: FrameType | None) -> None:
        end()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def stop(number: int, _: FrameType | None) -> None:
        die(number, None)  # returns when the process is continued
        signal.signal(number, stop)
        begin()

    def continue_(_: int, __: FrameType | None) -> None:
        begin()  # after SIGSTOP, which has no handler: the shell had the terminal meanwhile

    handlers = {**dict.fromkeys(_END_SIGNALS, die), signal.SIGTSTP: stop, signal.SIGCONT: continue_}
    free = {number: handler for number, handler in handlers.items() if signal.getsignal(number) == signal.SIG_DFL}
    return {number: signal.signal(number, handler) for number, handler in free.items()}
