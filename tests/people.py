"""A person at a real terminal: reads what is shown, and presses keys."""

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handrail.protocol.permission import Answer, PermissionRequest
from handrail.terminal.keys import Timing
from handrail.terminal.prompt import Prompt
from handrail.terminal.source import Said

DEADLINE = 60.0
QUICK = Timing(quiet=0.02, deaf=0.02, settle=0.02, poll=0.05)
"""So that a test need not wait as long as a person does."""


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
        self.shown = ""
        self.gone = False
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end inside a character

    def press(self, keys: bytes) -> None:
        os.write(self.control, keys)

    def sees(self, text: str) -> None:
        """Waits until the text is on the terminal."""
        until = time.monotonic() + DEADLINE
        while text not in self.shown:
            assert time.monotonic() < until, f"{text!r} is not in {self.shown!r}"
            self._read(0.1)

    def sees_again(self, text: str) -> None:
        """Waits until the text is on the terminal once more."""
        before, until = self.shown.count(text), time.monotonic() + DEADLINE
        while self.shown.count(text) == before:
            assert time.monotonic() < until, f"{text!r} is not again in {self.shown!r}"
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
        while struct.unpack("i", fcntl.ioctl(self.device, termios.FIONREAD, b"\0" * 4))[0]:
            assert time.monotonic() < until
            self._read(0.01)

    def hang_up(self) -> None:
        """Goes away."""
        if not self.gone:
            self.gone = True
            os.close(self.control)

    def look(self, seconds: float) -> None:
        """Waits a moment for something new."""
        self._read(seconds)

    def _read(self, seconds: float) -> bool:
        if self.gone or not select.select([self.control], [], [], seconds)[0]:
            return False
        self.shown = (self.shown + self._decoder.decode(os.read(self.control, 65536))).replace("\r\n", "\n")
        return True


class Asked:
    """A question that is put on a terminal, in a thread of its own."""

    def __init__(self, terminal: Terminal, prompt: Prompt, request: PermissionRequest, **more: Any) -> None:
        self.terminal = terminal
        self._answers: list[Said] = []
        number, of = more.pop("number", 1), more.pop("of", 1)
        self._thread = threading.Thread(
            target=lambda: self._answers.append(prompt.ask(request, number, of, **more)), daemon=True
        )
        self._thread.start()

    def listens(self) -> "Asked":
        """Waits until the question takes keys: it says why it asks."""
        self.until(b"x", lambda: "It needs" in self.terminal.shown)
        self.terminal.is_read()
        return self

    def until(self, key: bytes, happened: Callable[[], bool]) -> None:
        """Presses a key until it has an effect, once the question is there."""
        self.terminal.sees("Permission")
        until = time.monotonic() + DEADLINE
        while not happened():
            assert time.monotonic() < until, self.terminal.shown
            if not self._is_over():
                self.terminal.press(key)
            self._thread.join(0.06)
            self.terminal.sees_whole()

    def answer(self, key: bytes = b"") -> Answer | None:
        """What came of it; presses a key for it, where one is given."""
        if key:
            self.until(key, self._is_over)
        self._thread.join(DEADLINE)
        assert self._is_over(), self.terminal.sees_whole()
        self.terminal.sees_whole()
        return self._answers[0].answer

    @property
    def request(self) -> PermissionRequest:
        """The request that was on the terminal in the end."""
        return self._answers[0].request

    def end(self) -> None:
        """Hangs up, and waits until nobody has the terminal any more."""
        self.terminal.hang_up()
        self._thread.join(DEADLINE)

    def _is_over(self) -> bool:
        return not self._thread.is_alive()


class Program:
    """A program that has a terminal of its own, as one that a person started."""

    def __init__(self, words: list[str], cwd: Path, environment: dict[str, str], *, piped: bool = False) -> None:
        self.terminal = Terminal(columns=100, rows=50)
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

    def press_until(self, key: bytes, text: str) -> None:
        """Presses a key until it has an effect: a question takes none in its first moments."""
        until = time.monotonic() + DEADLINE
        while text not in self.terminal.sees_whole():
            assert time.monotonic() < until, self.terminal.shown
            if self._process.poll() is None:
                self.terminal.press(key)
            self.terminal.look(0.5)

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
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self.terminal.hang_up()
        os.close(self.terminal.device)


Ask = Callable[..., Asked]
