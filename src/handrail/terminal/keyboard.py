"""Reads keys, pastes and typed lines from a terminal."""

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

# § [terminal.keys] Keys as a person presses them, told apart from what was pasted or typed before.

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_PASTE_SECONDS = 5.0
"""How long the end of a paste is waited for."""
_MAX_BURST_BYTES = 1 << 20
_NAMED = {
    b"\x1b": "esc",
    b"\n": "enter",
    b"\r": "enter",
    b" ": "space",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x15": "clear",
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[D": "left",
    b"\x1bOD": "left",
    b"\x1b[C": "right",
    b"\x1bOC": "right",
    b"\x1b[H": "home",
    b"\x1bOH": "home",
    b"\x1b[1~": "home",
    b"\x01": "home",
    b"\x1b[F": "end",
    b"\x1bOF": "end",
    b"\x1b[4~": "end",
    b"\x05": "end",
    b"\x1b[3~": "delete",
}


class KeyTiming(NamedTuple):
    """How long is waited, in seconds."""

    quiet: float = 1.0
    """Without a key, before a question appears."""
    deaf: float = 0.4
    """In which a question that has just appeared takes no key, nor one after a paste."""
    settle: float = 0.03
    """In which bytes that belong together have come: a key that sends several, or a paste."""
    poll: float = 1.0
    """Between two looks whether the question is still open."""


class KeyPress(NamedTuple):
    """What was pressed: a name, or `text` with what was typed or `paste` with what was pasted; `gone` at the end."""

    name: str
    text: str = ""


class KeyReader:
    """The keys of a terminal that gives every byte at once."""

    def __init__(self, descriptor: int, timing: KeyTiming) -> None:
        self._descriptor = descriptor
        self._timing = timing
        self._gone = False

    def wait_until_quiet(self, on_first: Callable[[], None]) -> None:
        """Drops keys until none has come for a while; says so when the first is dropped."""
        told = False
        while self._bytes_within(self._timing.quiet):
            if not told:
                on_first()
                told = True

    def drop_early(self) -> None:
        """Drops what is pressed before anybody can have read the question."""
        until = time.monotonic() + self._timing.deaf
        while (left := until - time.monotonic()) > 0 and not self._gone:
            self._bytes_within(left)
        self._bytes_within(0)

    def next(self) -> KeyPress | None:
        """The next key; None when there was none for a while."""
        burst = self._bytes_within(self._timing.poll)
        if not burst:
            return KeyPress("gone") if self._gone else None
        while len(burst) < _MAX_BURST_BYTES and (more := self._bytes_within(self._timing.settle)):
            burst += more
        return self._pasted(burst) if _PASTE_BEGINS in burst else self._pressed(burst)

    def rest(self) -> bytes:
        """What comes right after a paste: it belongs to it."""
        rest = b""
        while more := self._bytes_within(self._timing.deaf):
            rest = (rest + more)[:_MAX_BURST_BYTES]
        return rest

    def _pressed(self, burst: bytes) -> KeyPress:
        if burst in _NAMED:
            return KeyPress(_NAMED[burst], " " if burst == b" " else "")
        text = burst.decode(errors="replace")
        if len(text) == 1:
            return KeyPress("text", text) if text.isprintable() else KeyPress("unknown")
        if text.startswith("\x1b") and text[1:].isprintable() and len(text) < 12:
            return KeyPress("unknown")  # some other key that sends several bytes
        self.rest()
        return KeyPress("paste", text)

    def _pasted(self, burst: bytes) -> KeyPress:
        while _PASTE_ENDS not in burst and len(burst) < _MAX_BURST_BYTES:
            more = self._bytes_within(_PASTE_SECONDS)
            if not more:
                break
            burst += more
        self.rest()
        return KeyPress("paste", burst.replace(_PASTE_BEGINS, b"").replace(_PASTE_ENDS, b"").decode(errors="replace"))

    def _bytes_within(self, seconds: float) -> bytes:
        """What there is, waiting so long for it; empty when nothing came, or nothing can come any more."""
        if self._gone or not select.select([self._descriptor], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # the terminal is gone
            data = b""
        self._gone = not data
        return data


# § [terminal.single_keys] Takes keys from a terminal one by one, and gives the terminal back as it was, whatever
# § happens meanwhile.

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)
_LOCAL_FLAGS, _SPECIAL = 3, 6


@contextmanager
def enter_raw_mode(descriptor: int, at_start: Callable[[], None], at_end: Callable[[], None]) -> Generator[None]:
    """Keys come at once and unseen while this is open. `at_start` and `at_end` are called also when the process is
    stopped (Ctrl-Z) and goes on."""
    before = termios.tcgetattr(descriptor)

    def begin() -> None:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, _one_by_one(before))
        at_start()

    def end() -> None:
        with suppress(OSError, ValueError):
            at_end()
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    restored = _signals(begin, end)
    try:
        begin()
        yield
    finally:
        end()
        for number, handler in restored.items():
            signal.signal(number, handler)


def _one_by_one(mode: list[Any]) -> list[Any]:
    changed = [*mode[:_SPECIAL], list(mode[_SPECIAL])]
    changed[_LOCAL_FLAGS] = mode[_LOCAL_FLAGS] & ~(termios.ECHO | termios.ICANON)
    changed[_SPECIAL][termios.VMIN], changed[_SPECIAL][termios.VTIME] = 1, 0
    return changed


def _signals(begin: Callable[[], None], end: Callable[[], None]) -> dict[int, Any]:
    """Handles signals that would end or stop the process without giving the terminal back. Those that the program
    handles itself are left to it."""
    if threading.current_thread() is not threading.main_thread():
        return {}

    def die(number: int, _: FrameType | None) -> None:
        end()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def stop(number: int, _: FrameType | None) -> None:
        end()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # goes on behind this when somebody continues it
        signal.signal(number, stop)
        begin()

    def go_on(_: int, __: FrameType | None) -> None:
        begin()  # it was stopped in a way that nobody could handle, and the shell took the terminal meanwhile

    handlers = {**dict.fromkeys(_ENDING, die), signal.SIGTSTP: stop, signal.SIGCONT: go_on}
    free = {number: handler for number, handler in handlers.items() if signal.getsignal(number) == signal.SIG_DFL}
    return {number: signal.signal(number, handler) for number, handler in free.items()}


# § [terminal.editing] One line that a person changes: a command that is to be tried in other words.

_MAX_TEXT_CHARS = 100_000
_COMMAND_PROMPT = "$ "
_HOW = "Change the command; Enter tries it in a copy, Esc goes back."
_PLAINLY = "Type the whole new command; Enter tries it in a copy, Esc goes back:"


def edit_command(keys: KeyReader, screen: Screen, command: str) -> str | None:
    """The command as it is to be tried; None when the person went back. In plain form, where nothing typed can be
    shown, it is typed anew: what was understood is shown with the question that follows."""
    line = _LineEditor("" if screen.plain else command)
    screen.status(_PLAINLY if screen.plain else _HOW)
    if not screen.plain:
        screen.write([""])
    while True:
        if not screen.plain:
            line.draw(screen)
        key = keys.next()
        if key is None:
            continue
        if key.name == "enter" or key.name in {"esc", "gone"}:
            screen.clear_status()
            typed = line.text.strip()
            return typed if key.name == "enter" and typed else None
        line.press(key)


class _LineEditor:
    """A text and the place in it where something is typed. A line break is one sign of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = len(text)

    def press(self, key: KeyPress) -> None:
        match key.name:
            case "left" | "right":
                self._at = max(0, min(len(self.text), self._at + (1 if key.name == "right" else -1)))
            case "home" | "end":
                self._at = 0 if key.name == "home" else len(self.text)
            case "backspace":
                self._cut(max(0, self._at - 1), self._at)
            case "delete":
                self._cut(self._at, self._at + 1)
            case "clear":
                self._cut(0, self._at)
            case "text" | "space" | "paste":
                self._put(key.text.replace("\r\n", "\n").replace("\r", "\n"))
            case _:
                pass

    def draw(self, screen: Screen) -> None:
        """The part of it around the place, where all of it does not fit."""
        room = screen.size()[0] - len(_COMMAND_PROMPT) - 2
        before, after = _shown(self.text[: self._at]), _shown(self.text[self._at :])
        while measure_width(before) > room:
            before = before[max(1, len(before) // 2) :] if measure_width(before) > 2 * room else before[1:]
        screen.status(f"{_COMMAND_PROMPT}{before}{after}", measure_width(_COMMAND_PROMPT + before))

    def _cut(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self._at = start

    def _put(self, more: str) -> None:
        more = more[: _MAX_TEXT_CHARS - len(self.text)]
        self.text = self.text[: self._at] + more + self.text[self._at :]
        self._at += len(more)


def _shown(text: str) -> str:
    return escape_control(text).replace("\n", "⏎").replace("\t", escape_char("\t"))


# § [terminal.reason] One line that a person types: why not.

_MAX_REASON_CHARS = 1_000
_REASON_PROMPT, _SHORT_REASON_PROMPT = "Why not? Enter denies, also without a reason; Esc goes back: ", "Why not? "
_MIN_ROOM_COLUMNS = 30


def ask_reason(keys: KeyReader, screen: Screen) -> str | None:
    """What was typed, perhaps nothing; None when the person went back, or the terminal is gone."""
    typed = ""
    _show(screen, typed)
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
        _show(screen, typed)


def _show(screen: Screen, typed: str) -> None:
    """The end of what was typed, where all of it does not fit. In plain form it is echoed when it is sent."""
    if screen.plain:
        if not typed:
            screen.write([_REASON_PROMPT.rstrip()])
        return
    columns = screen.size()[0] - 2
    asked = _REASON_PROMPT if columns - measure_width(_REASON_PROMPT) >= _MIN_ROOM_COLUMNS else _SHORT_REASON_PROMPT
    rows = list(wrap(to_one_line(typed), max(5, columns - measure_width(asked))))
    screen.status(asked + (rows[-1] if rows else ""))
