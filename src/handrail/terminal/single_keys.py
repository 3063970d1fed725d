"""Takes keys from a terminal one by one, and gives the terminal back as it was, whatever happens meanwhile."""

import os
import signal
import termios
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

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
