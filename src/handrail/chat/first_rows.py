"""The empty composer that a session shows while its libraries load."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from handrail.terminal.keyboard import enter_raw_mode
from handrail.terminal.style import Paint

PROMPT = "› "
STARTS = " starting …"


@contextmanager
def show_first_rows(paint: Paint) -> Generator[None]:
    """Shows the rows in this block. Keys are not echoed: the composer reads them afterwards."""
    rows = f"{paint(PROMPT, 'heading')}\r\n{paint(STARTS, 'dim')}\x1b[A\r\x1b[{len(PROMPT)}C"
    with enter_raw_mode(sys.stdin.fileno(), lambda: _write(rows), lambda: _write("\r\x1b[K\x1b[C\x1b[J\r")):
        yield


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
