"""A person at a real terminal: reads what is shown, and presses keys."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Reply
from handrail.terminal.keyboard import KeyTiming
from handrail.terminal.permission_prompt import PermissionPrompt

DEADLINE = 60.0
QUICK = KeyTiming(quiet=0.02, deaf=0.02, settle=0.02, poll=0.2)
"""So that a test need not wait as long as a person does."""
_LINE_END = re.compile("\r+\n")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_LINES_AND_ECHO = termios.ECHO | termios.ICANON


def a_request(**fields: Any) -> PermissionRequest:
    """A request about a command."""
    given: dict[str, Any] = {
        "id": "ask_1",
        "tool_call_id": "call-1",
        "tool_name": "exec",
        "server_name": "handrail",
        "permission_type": "command",
        "description": "Exec make",
        "rule": "exec.unproven",
        "reason": "it may change files",
        "permissions": ("proc.exec",),
        "answers": ("once", "deny"),
        "session_id": "cli",
        "batch_id": "call-1",
        "command": "make",
        "cwd": ".",
        "tier": 2,
    }
    return PermissionRequest(**(given | fields))


class Terminal:
    """A pseudo-terminal, seen from outside."""

    def __init__(self, columns: int = 80, rows: int = 50) -> None:
        self.control, self.device = pty.openpty()
        fcntl.ioctl(self.device, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(self.device)
        self.gone = False
        self._came = ""
        self._pressed_at = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end inside a character

    def press(self, keys: bytes) -> None:
        self.sees_whole()
        self._pressed_at = len(self._came)
        os.write(self.control, keys)

    @property
    def shown(self) -> str:
        """What came so far, without its colours."""
        return _STYLE.sub("", self.painted)

    @property
    def painted(self) -> str:
        """What came so far, with its colours."""
        return _LINE_END.sub("\n", self._came)

    @property
    def shown_since(self) -> str:
        """What came since the last key."""
        return _STYLE.sub("", _LINE_END.sub("\n", self._came[self._pressed_at :]))

    def sees(self, text: str, times: int = 1) -> None:
        """Waits until the text is on the terminal, so often since the beginning."""
        until = time.monotonic() + DEADLINE
        while self.shown.count(text) < times:
            assert time.monotonic() < until, f"{text!r} is not in {self.shown!r}"
            self._read(0.1)

    def sees_again(self, text: str) -> None:
        """Waits until the text is on the terminal once more, after the last key."""
        until = time.monotonic() + DEADLINE
        while text not in self.shown_since:
            assert time.monotonic() < until, f"{text!r} is not in {self.shown_since!r}, after {self.shown!r}"
            self._read(0.1)

    def ends_with(self, text: str) -> None:
        """Waits until the text is the last on the terminal."""
        until = time.monotonic() + DEADLINE
        while not self.shown.endswith(text):
            assert time.monotonic() < until, f"{self.shown!r} does not end with {text!r}"
            self._read(0.1)

    def sees_whole(self) -> str:
        """All that is there by now."""
        while self._read(0):
            pass
        return self.shown

    def is_read(self) -> None:
        """Waits until whoever has the terminal has taken every key."""
        until = time.monotonic() + DEADLINE
        while self.has_keys:
            assert time.monotonic() < until
            self._read(0.01)

    @property
    def has_keys(self) -> bool:
        """Whether there are keys that nobody has taken. What was pressed has come then: the kernel hands it over later,
        unless somebody waits for it."""
        return bool(select.select([self.device], [], [], 0)[0])

    @property
    def takes_single_keys(self) -> bool:
        """Whether a question has the terminal: keys come at once, and are not echoed."""
        return not termios.tcgetattr(self.device)[3] & _LINES_AND_ECHO

    def hang_up(self) -> None:
        """Goes away."""
        if not self.gone:
            self.gone = True
            os.close(self.control)

    def look(self, seconds: float) -> bool:
        """Waits a moment for something new; whether it came."""
        return self._read(seconds)

    def _read(self, seconds: float) -> bool:
        if self.gone or not select.select([self.control], [], [], seconds)[0]:
            return False
        self._came += self._decoder.decode(os.read(self.control, 65536))
        return True


class Listening:
    """Whether a question waits for the next key, so that one that is pressed now counts.

    A question that has just appeared takes no key, nor one right after a paste, and nothing on the terminal shows when
    that is over. It shows in the thread that asks: while it sleeps longer than it does at those moments, in one sleep,
    with no key left to take and nothing new to read, it has done all it had to do and waits for a key.
    """

    def __init__(self, terminal: Terminal, deaf: float) -> None:
        self._terminal = terminal
        self._longer = deaf + 0.04
        self._sleep: tuple[str, ...] | None = None
        self._since = 0.0

    def looks(self, status: Path) -> bool:
        """Looks once, for a moment; `status` is the kernel's file about the thread."""
        came = self._terminal.look(0.01)
        busy = came or self._terminal.has_keys or not self._terminal.takes_single_keys
        sleep = None if busy else _sleep_of(status)  # after the keys: to take one, it has to wake up
        if sleep is None or sleep != self._sleep:
            self._sleep, self._since = sleep, time.monotonic()
            return False
        return time.monotonic() - self._since > self._longer


def _sleep_of(status: Path) -> tuple[str, ...] | None:
    """Which of its sleeps a thread is in: whose it is, and how often it slept. None where it is awake or over."""
    try:
        lines = status.read_text().splitlines()
    except OSError:  # it is over
        return None
    found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return (found["Pid"], found["voluntary_ctxt_switches"]) if found["State"].startswith("S") else None


class Asked:
    """A question that is put on a terminal, in a thread of its own."""

    def __init__(self, terminal: Terminal, prompt: PermissionPrompt, request: PermissionRequest, **more: Any) -> None:
        self.terminal = terminal
        self._answers: list[ApproverReply] = []
        number, of = more.pop("number", 1), more.pop("of", 1)
        self._thread = threading.Thread(
            target=lambda: self._answers.append(prompt.ask(request, number, of, **more)), daemon=True
        )
        self._thread.start()
        self._status = Path(f"/proc/self/task/{self._thread.native_id}/status")
        self._listening = Listening(terminal, QUICK.deaf)

    def listens(self) -> "Asked":
        """Waits until the question takes keys: it says why it asks."""
        self.until(b"x", lambda: "Permissions: " in self.terminal.shown)
        return self

    def until(self, key: bytes, happened: Callable[[], bool]) -> None:
        """Presses a key when the question listens, once each time, until it has an effect."""
        self.terminal.sees("Permission")
        until = time.monotonic() + DEADLINE
        self.rests()
        while not happened():
            assert time.monotonic() < until, self.terminal.shown
            assert not self._is_over(), self.terminal.shown
            self.terminal.press(key)
            self.rests()

    def rests(self) -> None:
        """Waits until it has taken every key and done what came of them, or is over."""
        until = time.monotonic() + DEADLINE
        while not (self._is_over() or self._listening.looks(self._status)):
            assert time.monotonic() < until, self.terminal.shown
        self.terminal.sees_whole()

    def answer(self, key: bytes = b"") -> Answer | None:
        """What came of it; presses a key for it, where one is given."""
        if key:
            self.until(key, self._is_over)
        self._thread.join(DEADLINE)
        assert self._is_over(), self.terminal.sees_whole()
        self.terminal.sees_whole()
        answer = self._answers[0].answer
        assert not isinstance(answer, Reply)
        return answer

    @property
    def request(self) -> PermissionRequest:
        """The request that was on the terminal in the end."""
        subject = self._answers[0].subject
        assert isinstance(subject, PermissionRequest)
        return subject

    def end(self) -> None:
        """Hangs up, and waits until nobody has the terminal any more."""
        self.terminal.hang_up()
        self._thread.join(DEADLINE)

    def _is_over(self) -> bool:
        return not self._thread.is_alive()


class Program:
    """A program that has a terminal of its own, as one that a person started."""

    def __init__(
        self,
        words: list[str],
        cwd: Path,
        environment: dict[str, str],
        *,
        piped: bool = False,
        columns: int = 100,
        rows: int = 50,
    ) -> None:
        self.terminal = Terminal(columns, rows)
        device = self.terminal.device
        self._process = subprocess.Popen(
            words,
            cwd=cwd,
            env=environment,
            stdin=device,
            stdout=subprocess.PIPE if piped else device,
            stderr=device,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  so that Ctrl-C means it
        )
        self.pid = self._process.pid
        self._listening = Listening(self.terminal, KeyTiming().deaf)

    def press_until(self, key: bytes, text: str) -> None:
        """Presses a key when a question listens, once each time, until the text comes after it."""
        until, pressed = time.monotonic() + DEADLINE, False
        while not (pressed and text in self.terminal.shown_since):
            assert time.monotonic() < until, self.terminal.shown
            if self._listening.looks(self._in_front):
                self.terminal.press(key)
                pressed = True

    @property
    def _in_front(self) -> Path:
        """About the main thread of the program that has the terminal: where a shell started it, not the shell."""
        number = os.tcgetpgrp(self.terminal.control)
        return Path(f"/proc/{number}/task/{number}/status")

    def ends(self) -> int:
        """Waits for its end; the exit code."""
        until = time.monotonic() + DEADLINE
        while self._process.poll() is None:
            assert time.monotonic() < until, self.terminal.shown
            self.terminal.look(0.05)
        self.terminal.sees_whole()
        return self._process.returncode

    def piped(self) -> bytes:
        """What it wrote into the pipe."""
        return self._process.communicate(timeout=DEADLINE)[0]

    def close(self) -> None:
        if self.terminal.gone:
            return
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self.terminal.hang_up()
        os.close(self.terminal.device)


Ask = Callable[..., Asked]
