"""Who is told of events, in order and only of what is stored."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from threading import Lock

from handrail.protocol.event import Event

Listener = Callable[[Event], None]
Kinds = Collection[type[Event]]
_One = tuple[Listener, int, Kinds | None]
"""Who listens, after which number, and what for; None: for all."""


class Listeners:
    """Listeners, each with the number after which it listens and what for, and the events that are still to be told.
    What nobody listens for costs a look, not a turn."""

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        self._on_failure = on_failure
        """Gets the kind of error a listener failed with; its text may quote the event."""
        self.everyone: tuple[_One, ...] = ()
        self._wanted: Kinds | None = ()
        self._changing = Lock()
        self._outbox: deque[Event] = deque()
        self._delivering = Lock()

    def add(self, listener: Listener, after: int, kinds: Kinds | None = None) -> Callable[[], None]:
        """Tells the listener of every event after a number, or of those of some kinds; returns how to stop that."""
        with self._changing:
            self._set((*self.everyone, (listener, after, kinds)))
        return lambda: self._remove(listener)

    def put(self, events: Iterable[Event]) -> None:
        """Events that are stored, to be told when the writer holds nothing any more."""
        wanted = self._wanted
        for event in events:
            if wanted is None or type(event) in wanted:
                self._outbox.append(event)

    def deliver(self) -> None:
        """Tells what is waiting, in order, by whichever thread comes first."""
        while self._outbox and self._delivering.acquire(blocking=False):
            try:
                while self._outbox:
                    self._tell(self._outbox.popleft())
            finally:
                self._delivering.release()

    def _tell(self, event: Event) -> None:
        """A listener that fails is not called again: what it watches is done, whether it can follow or not."""
        for listener, after, kinds in self.everyone:
            if event.seq > after and (kinds is None or type(event) in kinds):
                try:
                    listener(event)
                except Exception as error:  # whatever a stranger's listener does wrong, the call is done
                    self._remove(listener)
                    self._on_failure(type(error).__name__)

    def _remove(self, listener: Listener) -> None:
        with self._changing:
            self._set(tuple(other for other in self.everyone if other[0] is not listener))

    def _set(self, everyone: tuple[_One, ...]) -> None:
        kinds = [kinds for _, _, kinds in everyone]
        self._wanted = None if None in kinds else frozenset(kind for some in kinds if some is not None for kind in some)
        self.everyone = everyone
