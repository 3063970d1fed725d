"""What a person waits for in `handrail chat`: the first prompt, and a key while a command floods the terminal."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, Sample

STARTS = 11
KEYS = 40
FIRST_PROMPT, KEY = 250.0, 30.0
"""Milliseconds."""
RATE = 5
"""Megabytes a second."""
_FLOOD = f"for i in $(seq 400); do head -c {RATE * 50_000} /dev/zero | tr '\\0' x | fold -w 90 | nl; sleep 0.05; done"
_FRAME = b"\x1b[?25h"
"""Ends what the session draws at once."""
_SCRIPT = [{"calls": [["exec", {"command": _FLOOD, "timeoutMs": 60_000}]]}, {"text": "Done."}]


class Screen:
    """A session on a pseudo-terminal."""

    def __init__(self, folder: Path) -> None:
        control, device = pty.openpty()
        fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        command = [os.environ["HANDRAIL_BENCH_COMMAND"], "chat", "--model", f"scripted:{folder}/script.json"]
        variables = os.environ | {"HANDRAIL_STATE_DIR": f"{folder}/state", "TERM": "xterm-256color"}
        self._control = control
        self.begun = time.monotonic()
        self._process = subprocess.Popen(
            [*command, "--mode", "auto", "--workspace", f"{folder}/workspace"],
            env=variables,
            stdin=device,
            stdout=device,
            stderr=device,
            start_new_session=True,
        )
        os.close(device)
        self.came = b""

    def forget(self) -> None:
        """Forgets everything that came so far."""
        self.came = b""

    def press(self, keys: bytes) -> None:
        self.forget()
        os.write(self._control, keys)

    def wait_for(self, wanted: bytes, count: int = 1) -> float:
        """The time at which it was on the terminal."""
        until = time.monotonic() + 30
        while self.came.count(wanted) < count:
            if time.monotonic() > until:
                sys.exit(f"{wanted!r} did not come: {self.came[-2000:]!r}")
            if select.select([self._control], [], [], 0.5)[0]:
                self.came += os.read(self._control, 1 << 16)
        return time.monotonic()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._control)


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as name:
        folder = Path(name)
        (folder / "workspace").mkdir()
        (folder / "script.json").write_text(json.dumps(_SCRIPT))
        starts = [measure_start(folder) for _ in range(STARTS + 1)][1:]
        keys = measure_keys(folder)
    prompts, first_keys, opened = (Sample(times) for times in zip(*starts, strict=True))
    yield Row("first prompt after the start, median", prompts.median * 1e3, "ms", FIRST_PROMPT)
    yield Row("key pressed at the first prompt on the screen after the start, median", first_keys.median * 1e3, "ms")
    yield Row("session open after the start, median", opened.median * 1e3, "ms")
    yield Row(f"key to screen while {RATE} MB/s stream, median", keys.median * 1e3, "ms", KEY)
    yield Row(f"key to screen while {RATE} MB/s stream, p95", keys.p95 * 1e3, "ms")


def measure_start(folder: Path) -> tuple[float, float, float]:
    """The times until the first prompt, until a key pressed then is on the screen, until the session is open."""
    screen = Screen(folder)
    try:
        prompt = screen.wait_for("›".encode()) - screen.begun
        screen.press(b"Q")
        key = screen.wait_for(b"Q") - screen.begun
        return prompt, key, screen.wait_for(b"shift+tab mode") - screen.begun
    finally:
        screen.close()


def measure_keys(folder: Path) -> Sample:
    """The time from a key to its letter on the terminal, while a command prints."""
    screen, times = Screen(folder), list[float]()
    try:
        screen.wait_for(b"shift+tab mode")
        screen.press(b"go\r")
        screen.wait_for(b"xxxxxxxxxx")
        for number in range(KEYS):
            letter = bytes([ord("A") + number % 26])
            screen.press(letter)
            pressed = time.monotonic()
            times.append(screen.wait_for(letter) - pressed)
            screen.forget()
            screen.wait_for(_FRAME, 2)  # a frame without a key
    finally:
        screen.close()
    return Sample(tuple(times))
