"""Follows a running command: takes what it prints, and sees why it is over."""

import select
import time
from collections.abc import Callable

from handrail.process.ran import Ending
from handrail.process.tap import Tap
from handrail.process.tree import ProcessTree
from handrail.process.watching import UsageMonitor

_POLL_SECONDS = 0.05
"""Seconds within which a cancellation is seen, and the end of a process where the kernel does not tell."""


class RunLoop:
    """One command from its start to the moment when it has ended or must end."""

    def __init__(
        self, tree: ProcessTree, taps: list[Tap], watch: UsageMonitor, until: float, cancelled: Callable[[], bool]
    ) -> None:
        self._tree = tree
        self._taps = {tap.descriptor: tap for tap in taps}
        self._watch = watch
        self._until = until
        self._cancelled = cancelled
        self._next_question = 0.0
        self._poller = select.poll()
        for descriptor in (tree.status.descriptor, tree.program_descriptor, *self._taps):
            if descriptor >= 0:
                self._poller.register(descriptor, select.POLLIN)

    def run(self) -> Ending:
        """Why it is over; what it started may still be there."""
        while True:
            now = time.monotonic()
            ending = self._look(now)
            if ending:
                return ending
            ready = [descriptor for descriptor, _ in self._poller.poll(self._pause(now) * 1000)]
            # The status first: it names the process to end, whatever happens in what follows.
            if self._tree.status.descriptor in ready:
                self._take_status()
            for tap in [self._taps[descriptor] for descriptor in ready if descriptor in self._taps]:
                self._take(tap)
            if self._tree.program_descriptor in ready or self._tree.command_is_over:
                return "exit"

    def _look(self, now: float) -> Ending | None:
        if now >= self._next_question:
            self._next_question = now + _POLL_SECONDS
            if self._tree.over:
                return "exit"
            if self._cancelled():
                return "cancelled"
        if now >= self._until:
            return "timeout"
        return self._watch.look(self._tree.status.child_pid) if now >= self._watch.next_look else None

    def _pause(self, now: float) -> float:
        return max(0.0, min(self._next_question, self._until, self._watch.next_look) - now)

    def _take_status(self) -> None:
        self._tree.read_status()
        if self._tree.status.over:
            self._poller.unregister(self._tree.status.descriptor)

    def _take(self, tap: Tap) -> None:
        if not tap.take():
            self._poller.unregister(tap.descriptor)
