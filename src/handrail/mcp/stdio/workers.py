"""Threads for what the reading thread must not wait for."""

import threading
import time
from collections import deque
from collections.abc import Callable

MAX_WORKERS = 16
"""Threads at once. Calls with effects take turns in a session anyway, and the rest is waiting for programs."""

Job = Callable[[], None]


class Workers:
    """As many threads as there is work for, up to a bound, started when first needed; jobs wait in order."""

    def __init__(self, failed: Callable[[Exception], None], most: int = MAX_WORKERS) -> None:
        self._failed = failed
        self._most = most
        self._jobs: deque[Job] = deque()
        self._threads: list[threading.Thread] = []
        self._free = 0
        self._over = False
        self._changed = threading.Condition()

    def add(self, job: Job) -> None:
        """Has the job done by the next thread that is free; where there can be none at all, by whoever asks."""
        with self._changed:
            self._jobs.append(job)
            if self._free >= len(self._jobs):
                self._changed.notify()
                return
            if (len(self._threads) < self._most and not self._over and self._started()) or self._threads:
                return
            self._jobs.pop()
        self._do(job)

    def end(self, seconds: float) -> bool:
        """Does what is left and ends the threads; whether all of them ended within this time."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._do(job)

    def _do(self, job: Job) -> None:
        try:
            job()
        except Exception as error:  # a defect: the thread goes on, and whoever listens is told
            self._failed(error)

    def _started(self) -> bool:
        """Starts one more; False where there can be no more."""
        thread = threading.Thread(target=self._work, name="handrail-mcp-worker", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._threads.append(thread)
        return True

    def _next(self) -> Job | None:
        with self._changed:
            self._free += 1
            self._changed.wait_for(lambda: self._jobs or self._over)
            self._free -= 1
            return self._jobs.popleft() if self._jobs else None
