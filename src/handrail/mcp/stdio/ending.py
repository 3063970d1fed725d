"""How the server is told to end: by a signal, by a client that does not read any more, or by one that is gone."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ServerShutdown:
    """Something that can be waited for beside the input: `waker` can be read once it has come."""

    def __init__(self, at_once: int) -> None:
        """`at_once`: what the process exits with where a second signal comes while the first is being obeyed."""
        self.waker, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._at_once = at_once
        self._parent = os.getppid()
        self.signalled = False
        """Whether it was a signal."""
        self.lost = False
        """Whether nobody reads what is sent."""

    def mark_lost(self) -> None:
        """Nobody reads what is sent."""
        self.lost = True
        self._say()

    def is_alone(self) -> bool:
        """Whether whoever started this is gone: something else may hold the other end of the input open."""
        return os.getppid() != self._parent

    @contextmanager
    def handle_signals(self) -> Generator[None]:
        """While it lasts, signals end the server in an orderly way; a second one leaves at once."""
        before = {number: signal.signal(number, self._signal) for number in _SIGNALS}
        waked = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(waked)
            for number, handler in before.items():
                signal.signal(number, handler)

    def close(self) -> None:
        """Gives the descriptors back."""
        os.close(self.waker)
        os.close(self._wake)

    def _signal(self, *_: Any) -> None:
        if self.signalled:
            os._exit(self._at_once)  # whatever still hangs: the journal has what was done
        self.signalled = True
        self._say()

    def _say(self) -> None:
        with suppress(OSError):  # full: it was said often enough
            os.write(self._wake, b"\0")
