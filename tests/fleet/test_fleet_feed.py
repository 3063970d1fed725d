"""The feed of a node: every listener gets every event once and in order, whatever happens to the connection."""

import threading
import time
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

import postgres
from handrail import StoreError
from handrail.fleet.feed import EventFeed
from handrail.protocol.events import AnyEvent, BrokenEvent, Notice
from handrail.store.journal import SessionJournal
from handrail.store.postgres import PostgresDatabase, SessionScope


def wait_until(look: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not look():
        assert time.monotonic() < until
        time.sleep(0.02)


def append(url: str, session: str, count: int) -> None:
    with closing(PostgresDatabase(SessionScope(url=url, session=session), "")) as database:
        journal = SessionJournal(database, session, f"writer-{threading.get_ident()}")
        for number in range(count):
            journal.append((Notice, {"text": str(number)}))


def test_five_hundred_listeners_get_every_event_of_their_session_once_and_in_order(
    count: Callable[[int], int],
) -> None:
    url, events = postgres.make_database(), count(1_000)
    heard: list[tuple[str, list[int]]] = []
    with closing(EventFeed(url)) as feed:
        for number in range(500):
            session, numbers = f"session-{number % 3}", list[int]()
            heard.append((session, numbers))
            feed.follow(session, lambda event, numbers=numbers: numbers.append(event.seq))  # type: ignore[misc]
        writers = [threading.Thread(target=append, args=(url, f"session-{one % 3}", events)) for one in range(6)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        wait_until(lambda: all(len(numbers) >= 2 * events for _, numbers in heard))
    assert all(numbers == list(range(1, 2 * events + 1)) for _, numbers in heard)


def test_a_listener_gets_what_it_missed_and_nothing_after_it_stopped() -> None:
    url = postgres.make_database()
    append(url, "one", 5)
    late: list[int] = []
    stopped: list[int] = []
    with closing(EventFeed(url)) as feed:
        stop = feed.follow("one", lambda event: stopped.append(event.seq))
        wait_until(lambda: len(stopped) == 5)
        stop()
        feed.follow("one", lambda event: late.append(event.seq), after=3)
        append(url, "one", 2)
        wait_until(lambda: len(late) == 4)
    assert (stopped, late) == ([1, 2, 3, 4, 5], [4, 5, 6, 7])


def test_a_listener_that_begins_while_events_come_gets_the_earlier_ones_too() -> None:
    url = postgres.make_database()
    append(url, "one", 5)
    late: list[int] = []
    with closing(EventFeed(url)) as feed:

        def begin(event: AnyEvent | BrokenEvent) -> None:
            if event.seq == 3:
                feed.follow("one", lambda other: late.append(other.seq))

        feed.follow("one", begin)
        wait_until(lambda: len(late) == 5)
    assert late == [1, 2, 3, 4, 5]


def test_lost_connections_lose_no_event() -> None:
    url = postgres.make_database()
    heard: list[int] = []
    with closing(EventFeed(url)) as feed:
        feed.follow("one", lambda event: heard.append(event.seq))
        for number in range(3):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            append(url, "one", 10)
            wait_until(lambda number=number: len(heard) == 10 * (number + 1))  # type: ignore[misc]
    assert heard == list(range(1, 31))


def test_a_listener_that_fails_does_not_stop_the_others() -> None:
    url = postgres.make_database()
    heard: list[int] = []

    def fail(_event: object) -> None:
        raise ValueError

    with closing(EventFeed(url)) as feed:
        feed.follow("one", fail)
        feed.follow("one", lambda event: heard.append(event.seq))
        append(url, "one", 3)
        wait_until(lambda: len(heard) == 3)


def test_a_feed_without_a_database_is_one_clear_error() -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        EventFeed("postgresql://localhost:1/none")
