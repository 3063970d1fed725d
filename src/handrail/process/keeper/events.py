"""Waits for many descriptors at once, and calls whoever each of them is for."""

import select
from collections.abc import Callable

READ, WRITE, ENDED = select.POLLIN, select.POLLOUT, select.POLLHUP

Handler = Callable[[int], None]
"""Gets what is ready: READ, WRITE; where the other side has ended, these and ENDED."""


class EventPoller:
    """What a keeper waits for."""

    def __init__(self) -> None:
        self._poller = select.poll()
        self._handlers: dict[int, Handler] = {}

    def on(self, descriptor: int, mask: int, handler: Handler) -> None:
        """From now on the handler is called when the descriptor is ready."""
        self._handlers[descriptor] = handler
        self._poller.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Waits for something else of it; for nothing but its end with 0."""
        if descriptor in self._handlers:
            self._poller.modify(descriptor, mask)

    def off(self, descriptor: int) -> None:
        """Forgets it; can be repeated."""
        if self._handlers.pop(descriptor, None) is not None:
            self._poller.unregister(descriptor)

    def wait(self, seconds: float) -> None:
        """Waits for the first that is ready, and calls the handlers of all that are."""
        for descriptor, ready in self._poller.poll(max(0.0, seconds) * 1000):
            handler = self._handlers.get(descriptor)
            if handler is not None:
                ended = ready & (select.POLLHUP | select.POLLERR | select.POLLNVAL)
                handler(READ | WRITE | ENDED if ended else ready)
