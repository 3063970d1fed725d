"""One thread for all that waits: whoever waits holds no thread of their own."""

import threading
from contextlib import suppress
from typing import Protocol

from handrail.mcp.permission.waiting import POLL_SECONDS


class PollTarget(Protocol):
    """Something that waits."""

    def look(self) -> bool:
        """Looks once, quickly; False where it waits no more."""
        ...


class AnswerPoller:
    """Looks at everything that waits, again and again. Its thread is there while something is."""

    def __init__(self) -> None:
        self._waiting: list[PollTarget] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, one: PollTarget) -> None:
        """Has it looked at from here on."""
        with self._lock:
            self._waiting.append(one)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="handrail-mcp-waiting", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                looked_at = tuple(self._waiting)
                if not looked_at:
                    self._thread = None
                    return
            over = {id(one) for one in looked_at if not _still_waits(one)}
            with self._lock:
                self._waiting = [one for one in self._waiting if id(one) not in over]
            pause.wait(POLL_SECONDS)


def _still_waits(one: PollTarget) -> bool:
    with suppress(Exception):  # the journal is closed, since the client is gone: others are still to be looked at
        return one.look()
    return False


ANSWER_POLLER = AnswerPoller()
"""The one of this process."""
