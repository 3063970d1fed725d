"""A bounded pool of daemon threads."""

import threading
import time
from collections import deque
from collections.abc import Callable

MAX_WORKERS = 16
"""Calls with effects take turns in a session anyway, and the others mostly wait for programs."""

Job = Callable[[], None]


class Workers:
    """Starts threads as jobs come, up to a bound. Further jobs wait in order."""

    def __init__(self, on_error: Callable[[Exception], None], max_threads: int = MAX_WORKERS) -> None:
        self._on_error = on_error
        self._max_threads = max_threads
        self._jobs: deque[Job] = deque()
        self._threads: list[threading.Thread] = []
        self._free = 0
        self._over = False
        self._changed = threading.Condition()

    def add(self, job: Job) -> None:
        """Has a thread run the job. If no thread can be started at all, the caller runs it."""
        with self._changed:
            self._jobs.append(job)
            if self._free >= len(self._jobs):
                self._changed.notify()
                return
            if (len(self._threads) < self._max_threads and not self._over and self._start()) or self._threads:
                return
            self._jobs.pop()
        self._run(job)

    def end(self, seconds: float) -> bool:
        """Runs the remaining jobs, then ends the threads. False if some still run after this time."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while (job := self._take()) is not None:
            self._run(job)

    def _run(self, job: Job) -> None:
        try:
            job()
        except Exception as error:  # a defect must not end the thread
            self._on_error(error)

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="handrail-mcp-worker", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads
            return False
        self._threads.append(thread)
        return True

    def _take(self) -> Job | None:
        with self._changed:
            self._free += 1
            self._changed.wait_for(lambda: self._jobs or self._over)
            self._free -= 1
            return self._jobs.popleft() if self._jobs else None


def end_all(pools: tuple[Workers, ...], seconds: float) -> bool:
    """Ends several pools together. False if some threads still run after this time."""
    until = time.monotonic() + seconds
    ended = [pool.end(max(0.0, until - time.monotonic())) for pool in pools]
    return all(ended)
