"""The listeners of a journal."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from threading import Lock

from handrail.protocol.events import Event

Listener = Callable[[Event], None]
Kinds = Collection[type[Event]]


class Listeners:
    """The listeners of a journal with the stored events that they have not got yet."""

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        self._on_failure = on_failure
        """Gets the type of the error a listener failed with. Its text may quote the event."""
        self.everyone: tuple[tuple[Listener, int, Kinds | None], ...] = ()
        """Each with the number after which it listens and the kinds it listens for. None means all."""
        self._changing = Lock()
        self.outbox: deque[Event] = deque()
        self._delivering = Lock()

    def add(self, listener: Listener, after: int, kinds: Kinds | None = None) -> Callable[[], None]:
        """Adds a listener for events after a number, or those of some kinds. Returns the function that removes it."""
        with self._changing:
            self.everyone = (*self.everyone, (listener, after, kinds))
        return lambda: self._remove(listener)

    def put(self, events: Iterable[Event]) -> None:
        for event in events:
            for _, _, kinds in self.everyone:
                if kinds is None or type(event) in kinds:
                    self.outbox.append(event)
                    break

    def deliver(self) -> None:
        """Delivers the queued events in order, in the first thread that gets the lock."""
        while self.outbox and self._delivering.acquire(blocking=False):
            try:
                while self.outbox:
                    self._notify(self.outbox.popleft())
            finally:
                self._delivering.release()

    def _notify(self, event: Event) -> None:
        """Calls the listeners. One that fails is removed."""
        for listener, after, kinds in self.everyone:
            if event.seq > after and (kinds is None or type(event) in kinds):
                try:
                    listener(event)
                except Exception as error:  # a faulty listener must not fail the call
                    self._remove(listener)
                    self._on_failure(type(error).__name__)

    def _remove(self, listener: Listener) -> None:
        with self._changing:
            self.everyone = tuple(other for other in self.everyone if other[0] is not listener)
