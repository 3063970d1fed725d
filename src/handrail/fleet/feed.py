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
from handrail.store.postgres_schema import build_open_error

FeedListener = Callable[[AnyEvent | BrokenEvent], object]
_CHANNEL = "handrail_events"
_LOOK_SECONDS = 5.0
"""How often the feed looks for events without a notification."""
_END = 1 << 62
"""Greater than the number of any event."""


class EventNotices:
    """Calls a function with each session that has news, in a thread of its own: new events, or another state.

    With None the function looks at all sessions: some news may be lost, as the connection is new.
    """

    def __init__(self, url: str, tell: Callable[[str | None], None]) -> None:
        """StoreError if the database cannot be used."""
        self._url, self._tell = url, tell
        self._ended = threading.Event()
        try:
            self._listening = self._listen()
        except psycopg.Error as error:
            raise build_open_error(error) from error
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        with suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True, connect_timeout=10) as connection:
            connection.execute("SELECT pg_notify(%s, '')", (_CHANNEL,))
        self._thread.join()

    def _listen(self) -> psycopg.Connection:
        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        connection.execute(f"LISTEN {_CHANNEL}".encode())
        return connection

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._tell(None)
                for notification in self._listening.notifies(timeout=_LOOK_SECONDS):
                    if self._ended.is_set():
                        break
                    self._tell(notification.payload)
            except (psycopg.Error, StoreError):
                self._listen_again()
        self._listening.close()

    def _listen_again(self) -> None:
        while not self._ended.wait(0.2):
            with suppress(psycopg.Error):
                self._listening.close()
                self._listening = self._listen()
                return


class _Listener:
    """A listener with the number of its last event."""

    def __init__(self, listen: FeedListener, last: int) -> None:
        self._listen, self.last = listen, last

    def stop(self) -> None:
        self.last = _END

    def tell(self, event: AnyEvent | BrokenEvent) -> None:
        if event.seq > self.last:
            self.last = event.seq
            try:
                self._listen(event)
            except Exception:  # a faulty listener must not stop the others
                self.stop()


class EventFeed:
    """Follows sessions in a thread of its own. A listener is called in that thread, so it should be quick."""

    def __init__(self, url: str) -> None:
        """StoreError if the database cannot be used."""
        self._database = PostgresDatabase(SessionScope(url=url, session=""), "")
        self._lock = threading.Lock()
        self._sessions: dict[str, list[_Listener]] = {}
        self._notices = EventNotices(url, self._look)
        self._notices.start()

    def follow(self, session: str, listener: FeedListener, after: int = 0) -> Callable[[], None]:
        """Calls the listener with every event after a number, once and in order. Returns how to stop."""
        added = _Listener(listener, after)
        with self._lock:
            self._sessions.setdefault(session, []).append(added)
        self._database.rows("SELECT pg_notify(?, ?)::text", (_CHANNEL, session))
        return added.stop

    def close(self) -> None:
        self._notices.close()
        self._database.close()

    def _look(self, session: str | None) -> None:
        for name in list(self._sessions) if session is None else (session,):
            with self._lock:
                listeners = [one for one in self._sessions.pop(name, ()) if one.last < _END]
                if not listeners:
                    continue
                self._sessions[name] = listeners
                due = tuple(listeners)  # one that is added meanwhile may need earlier events
            self._database.switch(name)
            for event in SessionJournal(self._database, name, "").events(min(one.last for one in due)):
                for one in due:
                    one.tell(event)
