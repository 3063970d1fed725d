"""The feed of a node: events of any sessions for any number of listeners, over two connections.

The database notifies the node of new events. That is a hint: the journal has the events, and they are read from there
after the last number that a listener got. So a lost notification or connection loses no event.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg

from handrail.protocol.errors import StoreError
from handrail.protocol.events import AnyEvent, BrokenEvent
from handrail.store.journal import SessionJournal
from handrail.store.postgres import PostgresDatabase, SessionScope

FeedListener = Callable[[AnyEvent | BrokenEvent], object]
_CHANNEL = "handrail_events"
_LOOK_SECONDS = 5.0
"""How often the feed looks for events without a notification."""


class _Followed:
    """A session with its listeners, each with the number of its last event."""

    def __init__(self) -> None:
        self.listeners: dict[object, tuple[FeedListener, int]] = {}


class EventFeed:
    """Follows sessions in a thread of its own. A listener is called in that thread, so it should be quick."""

    def __init__(self, url: str) -> None:
        """StoreError if the database cannot be used."""
        self._url = url
        self._database = PostgresDatabase(SessionScope(url=url, session=""), "")
        self._lock = threading.Lock()
        self._sessions: dict[str, _Followed] = {}
        self._ended = threading.Event()
        self._listening = self._listen()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def follow(self, session: str, listener: FeedListener, after: int = 0) -> Callable[[], None]:
        """Calls the listener with every event after a number, once and in order. Returns how to stop."""
        token = object()
        with self._lock:
            self._sessions.setdefault(session, _Followed()).listeners[token] = (listener, after)
        self._wake(session)

        def stop() -> None:
            with self._lock:
                followed = self._sessions.get(session)
                if followed is not None:
                    followed.listeners.pop(token, None)
                    if not followed.listeners:
                        del self._sessions[session]

        return stop

    def close(self) -> None:
        self._ended.set()
        self._wake("")
        self._thread.join()
        self._database.close()

    def _wake(self, session: str) -> None:
        """Notifies this feed, and all others, to look at a session."""
        self._database.rows("SELECT pg_notify(?, ?)::text", (_CHANNEL, session))

    def _listen(self) -> psycopg.Connection:
        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        connection.execute(f"LISTEN {_CHANNEL}".encode())
        return connection

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._deliver(self._list_sessions())  # what came before the connection listened
                for notification in self._listening.notifies(timeout=_LOOK_SECONDS):
                    self._deliver({notification.payload})
                    if self._ended.is_set():
                        break
            except (psycopg.Error, StoreError):
                self._listen_again()
        self._listening.close()

    def _listen_again(self) -> None:
        while not self._ended.wait(0.2):
            with suppress(psycopg.Error):
                self._listening.close()
                self._listening = self._listen()
                return

    def _list_sessions(self) -> set[str]:
        with self._lock:
            return set(self._sessions)

    def _deliver(self, sessions: set[str]) -> None:
        for session in sessions & self._list_sessions():
            with self._lock:
                followed = self._sessions.get(session, _Followed())
                after = min((last for _, last in followed.listeners.values()), default=1 << 62)
            self._database.switch(session)
            for event in SessionJournal(self._database, session, "").events(after):
                self._tell(session, event)

    def _tell(self, session: str, event: AnyEvent | BrokenEvent) -> None:
        with self._lock:
            followed = self._sessions.get(session)
            due = [
                (token, listener)
                for token, (listener, last) in (followed.listeners.items() if followed is not None else ())
                if event.seq > last
            ]
            for token, listener in due:
                if followed is not None:
                    followed.listeners[token] = (listener, event.seq)
        for token, listener in due:
            try:
                listener(event)
            except Exception:  # a faulty listener must not stop the others
                with self._lock:
                    if followed is not None:
                        followed.listeners.pop(token, None)
