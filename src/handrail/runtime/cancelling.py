"""Which calls are on their way in this process, and which of them are to end before they are through."""

import threading
from collections.abc import Iterable


class CancelTokens:
    """Calls by their ids. One that is to end says so until nobody is at it any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here: dict[str, int] = {}
        """How many are at each: two may call with one id, and the second waits for what the first comes to."""
        self._ending: set[str] = set()

    def reserve(self, call_id: str) -> None:
        """The call will begin: it can be ended from here on. It is `end`ed whether or not it begins."""
        self._here.setdefault(call_id, 0)

    def is_reserved(self, call_id: str) -> bool:
        """Whether an id was made here for a call that nobody has begun."""
        return self._here.get(call_id) == 0

    def begin(self, call_ids: Iterable[str]) -> None:
        """These are on their way."""
        with self._lock:
            for call_id in call_ids:
                self._here[call_id] = self._here.get(call_id, 0) + 1

    def end(self, call_ids: Iterable[str]) -> None:
        """These are through, or wait for a person."""
        with self._lock:
            for call_id in call_ids:
                left = self._here.get(call_id, 0) - 1
                if left > 0:
                    self._here[call_id] = left
                else:
                    self._here.pop(call_id, None)
                    self._ending.discard(call_id)

    def cancel(self, call_id: str) -> bool:
        """Has one end; False where it is not on its way here."""
        with self._lock:
            found = call_id in self._here
            if found:
                self._ending.add(call_id)
            return found

    def is_requested(self, call_id: str) -> bool:
        """Whether a call is to end."""
        return call_id in self._ending
