"""The journal: every event in order, read again after any number, by everybody who has the session open."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import postgres
from handrail.protocol.decisions import Decision, Facts
from handrail.protocol.errors import StoreError
from handrail.protocol.events import BrokenEvent, Event, Notice, Text, ToolCallStart
from handrail.protocol.wire import encode
from handrail.store.approvals import CallToPark, DeferredCalls, save_parked
from handrail.store.database import Database
from handrail.store.journal import CallContext, DuplicateCallError, SessionJournal
from handrail.store.postgres import PostgresDatabase

DECIDED = CallContext("batch", Facts(), Decision(decision="allow", rule="test", reason="because"))

Open = Callable[..., SessionJournal]


@pytest.fixture(params=["sqlite", "postgres"])
def journal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens connections to one journal, in each kind of database."""
    databases: list[Database] = []
    scope = postgres.make_scope() if request.param == "postgres" else None

    def make(runner: str = "run_1") -> SessionJournal:
        path = str(tmp_path / "journal.db")
        databases.append(PostgresDatabase(scope, path) if scope else Database(path, "crash"))
        return SessionJournal(databases[-1], "session", runner)

    yield make
    for database in databases:
        database.close()


def notice(text: str) -> tuple[type[Event], dict[str, Any]]:
    return Notice, {"text": text}


def texts(journal: SessionJournal, after: int = 0) -> list[str]:
    return [event.text if isinstance(event, Notice) else "?" for event in journal.events(after)]


def started(call: str) -> tuple[type[Event], dict[str, Any]]:
    return ToolCallStart, {"tool_call_id": call, "tool_call_name": "write", "args": {}, "trace_id": call}


def test_events_come_back_in_order_after_any_number(journal: Open) -> None:
    one = journal()
    for number in range(1_201):  # more than two pages of the reader
        one.append(notice(str(number)))
    assert texts(one) == [str(number) for number in range(1_201)]
    assert texts(one, 1_199) == ["1199", "1200"]
    assert texts(one, 1_201) == []
    assert [event.seq for event in one.events(500)][:2] == [501, 502]


def test_an_event_has_its_header(journal: Open) -> None:
    journal().append((Text, {"message_id": "m", "text": "hello"}))
    [event] = journal().events()
    assert isinstance(event, Text)
    assert (event.event_id, event.seq, event.session_id, event.text) == ("session:1", 1, "session", "hello")
    assert event.time.tzinfo is not None


def test_a_row_of_an_older_version_has_all_fields_and_is_read_the_same(journal: Open) -> None:
    written = journal()
    written.append(notice("one"), notice("two"))
    whole = [encode(event) for event in written.events()]
    for seq, data in enumerate(whole, start=1):
        stored = written.database.rows("SELECT data FROM event WHERE seq = ?", (seq,))[0][0]
        assert stored.startswith(b'{"time":'), "a row leaves out what its columns know"
        written.database.run("UPDATE event SET data = ? WHERE seq = ?", (data, seq))
    assert [encode(event) for event in journal().events()] == whole


def test_a_stored_event_that_cannot_be_read_is_reported_and_the_rest_goes_on(journal: Open) -> None:
    one = journal()
    one.append(notice("before"), notice("damaged"), notice("unknown"), notice("after"))
    one.database.execute("UPDATE event SET data = ? WHERE seq = 2", (b'{"kind":"notice","te\xff',))
    one.database.execute("""UPDATE event SET data = '{"kind":"of the future"}' WHERE seq = 3""")
    first, second, third, last = one.events()
    assert isinstance(first, Notice)
    assert isinstance(last, Notice)
    assert isinstance(second, BrokenEvent)
    assert isinstance(third, BrokenEvent)
    assert (second.seq, second.kind, third.seq) == (2, "notice", 3)
    assert second.problem
    one.append(notice("later"))
    assert [event.seq for event in one.events()] == [1, 2, 3, 4, 5]


def test_a_call_is_written_down_once(journal: Open) -> None:
    one, other = journal(), journal("run_2")
    one.record("call", DECIDED, "started", (started("call"),), given=True)
    for again in (one, other):
        with pytest.raises(DuplicateCallError):
            again.record("call", DECIDED, "started", (started("call"),), given=True)
    assert len(list(one.events())) == 1
    other.append(notice("the next number is the next"))
    assert [event.seq for event in one.events()] == [1, 2]


def test_two_connections_continue_each_others_numbers(journal: Open) -> None:
    one, other = journal(), journal("run_2")
    for number in range(20):
        (one, other)[number % 3 == 0].append(notice(str(number)), notice("and"))
    assert [event.seq for event in one.events()] == list(range(1, 41))
    assert list(one.events()) == list(other.events())


def test_listeners_of_two_connections_hear_everything_once_and_in_order(journal: Open) -> None:
    one, other = journal(), journal("run_2")
    heard: list[list[int]] = [[], []]
    one.subscribe(lambda event: heard[0].append(event.seq))
    other.subscribe(lambda event: heard[1].append(event.seq))
    for number in range(50):
        (one, other)[number % 7 < 3].append(notice(str(number)))
    one.append(notice("one reads on"))
    other.append(notice("the other reads on"))
    one.append(notice("and one again"))
    assert heard[0] == list(range(1, 54))
    assert heard[1] == list(range(1, 53))


def test_a_listener_hears_nothing_from_before_it_listened(journal: Open) -> None:
    one, other = journal(), journal("run_2")
    other.append(notice("before"))
    heard: list[Event] = []
    one.subscribe(heard.append)
    one.append(notice("after"))
    assert [event.seq for event in heard] == [2]


def test_a_listener_that_stopped_hears_no_more(journal: Open) -> None:
    one = journal()
    heard: list[Event] = []
    stop = one.subscribe(heard.append)
    one.append(notice("heard"))
    stop()
    stop()
    one.append(notice("not heard"))
    assert [event.seq for event in heard] == [1]


def test_many_threads_leave_no_gap_and_listeners_hear_all_in_order(journal: Open) -> None:
    one, other = journal(), journal("run_2")
    heard: list[int] = []
    one.subscribe(lambda event: heard.append(event.seq))
    writers = [
        threading.Thread(target=lambda own=own: [own.append(notice("x")) for _ in range(200)])
        for own in (one, other, other, other, one)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    one.append(notice("last"))
    assert heard == [event.seq for event in one.events()] == list(range(1, 1_002))


def test_what_failed_is_not_told_and_takes_no_number(journal: Open) -> None:
    one = journal()
    heard: list[Event] = []
    one.subscribe(heard.append)
    with pytest.raises(StoreError):
        one.append(notice("fails"), also=(("INSERT INTO no_such_table VALUES (1)", ()),))
    with pytest.raises(TypeError):
        one.append((Notice, {"text": object()}))
    assert heard == []
    one.append(notice("works"))
    assert [(event.seq, event.text) for event in heard] == [(1, "works")]  # type: ignore[attr-defined]


def test_a_failing_listener_is_removed_and_breaks_nothing(journal: Open) -> None:
    one = journal()
    heard: list[Event] = []

    def fails(event: Event) -> None:
        raise ValueError("a secret that was in the event")

    one.subscribe(fails)
    one.subscribe(heard.append)
    one.append(notice("first"))
    one.append(notice("second"))
    assert texts(one)[0] == "first"
    assert texts(one)[2:] == ["second"]
    told = heard[1]
    assert isinstance(told, Notice)
    assert told.code == "LISTENER_REMOVED"
    assert "ValueError" in told.text
    assert "secret" not in told.text
    assert [event.seq for event in heard] == [1, 2, 3]


def test_a_listener_may_append_itself(journal: Open) -> None:
    one = journal()
    heard: list[str] = []

    def answers(event: Event) -> None:
        heard.append(event.text)  # type: ignore[attr-defined]
        if len(heard) < 3:
            one.append(notice(f"reply {len(heard)}"))

    one.subscribe(answers)
    one.append(notice("question"))
    assert heard == texts(one) == ["question", "reply 1", "reply 2"]


def test_marks_of_files_are_shared_by_all_who_have_the_session(journal: Open) -> None:
    one, other = journal(), journal("run_2")
    one.set_mark("a", b"1")
    assert one.get_mark("a") == b"1"
    one.append(notice("a result"))
    assert other.get_mark("a") == b"1"
    other.set_mark("a", b"2")
    other.append(notice("a result"))
    assert one.get_mark("a") == b"2"
    one.set_mark("a", b"1")  # the same bytes again, as far as this one knows
    one.append(notice("a result"))
    assert other.get_mark("a") == one.get_mark("a") == b"1"


def test_marks_are_not_lost_with_a_write_that_failed(journal: Open) -> None:
    one = journal()
    one.set_mark("a", b"1")
    with pytest.raises(StoreError):
        one.append(notice("fails"), also=(("INSERT INTO no_such_table VALUES (1)", ()),))
    assert one.get_mark("a") == b"1"
    one.append(notice("works"))
    assert journal("run_2").get_mark("a") == b"1"


def test_marks_are_not_lost_with_a_commit_that_failed(journal: Open) -> None:
    one, other = journal(), journal("run_2")
    one.set_mark("a", b"1")
    # A deferred constraint fails at the commit, after every statement went well.
    if not isinstance(one.database, PostgresDatabase):
        one.database.execute("PRAGMA foreign_keys = ON")
    one.database.execute("CREATE TEMP TABLE parent (id INTEGER PRIMARY KEY)")
    one.database.execute("CREATE TEMP TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(StoreError):
        one.append(notice("fails"), also=(("INSERT INTO child VALUES (1)", ()),))
    assert one.get_mark("a") == b"1"
    one.append(notice("works"))
    assert other.get_mark("a") == b"1"
    assert texts(one) == ["works"]


def test_a_call_whose_decision_cannot_be_read_is_still_known(journal: Open) -> None:
    one = journal()
    one.record("call", DECIDED, "started", (started("call"),), given=True)
    one.database.execute("UPDATE event SET decided = '{'")
    entry = one.entry("call")
    assert entry is not None
    assert (entry.state, entry.decision.rule, entry.facts) == ("started", "journal.broken", Facts())
    assert one.list_unfinished("run_1") == [entry]


def test_a_call_has_one_result(journal: Open) -> None:
    one = journal()
    one.record("call", DECIDED, "started", (started("call"),), given=True)
    one.set_state("call", "finished", (notice("its end"),))
    for state in ("finished", "started"):
        with pytest.raises(DuplicateCallError):
            one.set_state("call", state, (notice("another end"),))
    assert texts(one)[1:] == ["its end"]


def test_the_reason_of_a_failure_is_told_not_that_nothing_was_left_to_roll_back(journal: Open) -> None:
    one = journal()
    with pytest.raises(StoreError, match="no_such_table"):
        one.append(also=(("ROLLBACK", ()), ("INSERT INTO no_such_table VALUES (1)", ())))
    one.append(notice("the connection is usable"))


@pytest.mark.parametrize("journal", ["sqlite"], indirect=True)
def test_a_writer_that_waits_too_long_says_so(tmp_path: Path, journal: Open) -> None:
    one = journal()
    one.database.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        one.append(notice("fails"))
    other.execute("COMMIT")
    one.append(notice("works"))
    assert texts(one) == ["works"]
    other.close()


def test_a_call_left_by_one_is_found_by_others_that_found_none_before(
    journal: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = [journal(runner) for runner in ("run_1", "run_2")]
    one, other = (DeferredCalls(each, str(tmp_path)) for each in journals)
    asked: list[str] = []
    rows = journals[0].database.rows

    def count(statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        asked.append(statement)
        return rows(statement, values)

    monkeypatch.setattr(journals[0].database, "rows", count)
    assert [one.has_any(), one.has_any(), other.has_any()] == [False] * 3
    assert len(asked) == 1
    with other.expect("call", lambda: "digest"):
        save_parked(journals[1], "batch", (CallToPark("call", DECIDED, (started("call"),)),), ("call",), ())
    assert one.has_any()
    assert other.has_any()
    other.release("call")
    assert one.claim("digest") == "call"
    one.forget("call")
    assert [one.has_any(), other.has_any()] == [False] * 2
