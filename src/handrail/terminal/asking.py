"""Whether there is a person at a terminal to ask, and asking them."""

import os
import sys
import threading
from collections.abc import Callable
from typing import TextIO

from handrail.protocol.permission import Answer, PermissionRequest
from handrail.terminal.keys import Timing
from handrail.terminal.prompt import Prompt
from handrail.terminal.screen import Screen


def somebody_is_there() -> bool:
    """Whether a question can be put here: keys come from a terminal, stderr goes to one, and nothing says that nobody
    looks (CI). Only the main thread asks: in any other one, two would ask at once."""
    if os.environ.get("CI") or threading.current_thread() is not threading.main_thread():
        return False
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)


def ask_on_terminal(
    request: PermissionRequest,
    number: int = 1,
    of: int = 1,
    *,
    still_open: Callable[[], bool] = lambda: True,
    plain: bool = False,
    timing: Timing | None = None,
) -> Answer | None:
    """Asks on stdin and stderr, which must be a terminal; None when there is no answer now."""
    screen = Screen(sys.stderr, os.environ, plain=plain)
    return Prompt(sys.stdin.fileno(), screen, timing).ask(request, number, of, still_open)


def say(text: str) -> None:
    """A line for the person who was asked."""
    Screen(sys.stderr, os.environ).write([text])


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty() and os.isatty(stream.fileno())
    except (OSError, ValueError):  # closed, or no stream of the system
        return False
