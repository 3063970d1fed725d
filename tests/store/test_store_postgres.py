"""Sessions in PostgreSQL: each has its rows, a stale worker writes nothing, a restart loses nothing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postgres
from handrail import Done, Handrail, StoreError
from handrail.protocol.changes import State
from handrail.protocol.decisions import Decision, Facts
from handrail.protocol.events import Notice, ToolCallStart
from handrail.protocol.messages import UserMessage
from handrail.settings import Settings
from handrail.store.change_log import ChangeLog, ChangeSetRecord, Step
from handrail.store.database import CHANGES, JOURNAL, Database
from handrail.store.journal import CallContext, SessionJournal
from handrail.store.postgres import PostgresDatabase, SessionScope, StaleWorkerError
from handrail.store.postgres_schema import AUDIT, list_tables, migrate
from handrail.store.shared_store import SharedStore
from handrail.store.transcript import Messages

DECIDED = CallContext("batch", Facts(), Decision(decision="allow", rule="test", reason="because"))


@pytest.fixture
def opened() -> Iterator[Callable[..., SessionJournal]]:
    databases: list[Database] = []

    def make(scope: SessionScope, runner: str = "run") -> SessionJournal:
        databases.append(PostgresDatabase(scope, ""))
        return SessionJournal(databases[-1], scope.session, runner)

    yield make
    for database in databases:
        database.close()


def execute(url: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def add_session(scope: SessionScope, epoch: int) -> None:
    insert = "INSERT INTO handrail.session (id, state, epoch, lock, options) VALUES (%s, 'idle', %s, '', '')"
    execute(scope.url, insert, scope.session, epoch)


def notice(text: str) -> Any:
    return Notice, {"text": text}


def at(scope: SessionScope, epoch: int | None) -> SessionScope:
    return SessionScope(url=scope.url, session=scope.session, epoch=epoch)


# Rows


def test_sessions_see_only_their_own_rows(opened: Callable[..., SessionJournal]) -> None:
    one, other = opened(postgres.make_scope()), opened(postgres.make_scope())
    one.append(notice("of one"))
    other.append(notice("of the other"), notice("too"))
    one.record("call", DECIDED, "started", ((ToolCallStart, _start("call")),), given=True)
    other.record("call", DECIDED, "started", ((ToolCallStart, _start("call")),), given=True)
    other.set_state("call", "finished", (notice("its end"),))
    assert [event.seq for event in one.events()] == [1, 2]
    assert [event.seq for event in other.events()] == [1, 2, 3, 4]
    assert [entry.id for entry in one.list_unfinished("run")] == ["call"]
    assert other.list_unfinished("run") == []


def test_messages_are_numbered_in_each_session(opened: Callable[..., SessionJournal]) -> None:
    for _ in range(2):
        messages = Messages(opened(postgres.make_scope()))
        messages.add([UserMessage(message_id=name, text=name) for name in ("a", "b")])
        messages.add([UserMessage(message_id="c", text="c")], notice("c"))
        assert [one.number for one in messages.list_after()] == [1, 2, 3]
        assert messages.first_prompt() == "a"


def test_every_table_has_the_columns_of_sqlite(tmp_path: Path) -> None:
    url = postgres.make_scope().url
    query = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'handrail' AND table_name = %s"
    for schema in (JOURNAL, CHANGES):
        with closing(Database(str(tmp_path / f"{schema.name}.db"), "none", schema)) as database:
            names = [row[0] for row in database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for name in set(names) - {"sqlite_sequence"}:
                columns = {row[0] for row in database.rows(f"SELECT name FROM pragma_table_info('{name}')")}
                assert {row[0] for row in execute(url, query, name)} == columns | {"scope"}
    assert {*names} - {"sqlite_sequence"} <= set(list_tables())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_change_log_numbers_its_sets_and_finds_them_by_path(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "changes.db")
    scope = postgres.make_scope()
    database = Database(path, "none", CHANGES) if kind == "sqlite" else PostgresDatabase(scope, path, CHANGES)
    state = State(kind="file", hash="00" * 32, size=1)
    body = ChangeSetRecord("write", "write a", (Step(b"a\xff", None, state), Step(b"d/b", state, None)), ())
    with closing(ChangeLog(database)) as log:
        fields = {"session": "s", "call_id": "c", "turn": "t", "runner": "r"}
        first = log.begin(**fields, body=body, diffs=("+a\n", "-b\n"))
        log.finish(first, body)
        dropped = log.begin(**fields, body=body, diffs=())
        log.drop(dropped)
        second = log.begin(**fields, body=body, diffs=("", ""))
        assert [entry.number for entry in log.list_begun()] == [second]
        undone = ChangeSetRecord("undo", "undo", body.steps, (), undoes=(first,))
        log.finish(second, undone)
        assert (first, second > first) == (1, True)
        assert [(entry.number, entry.undone_by) for entry in log.latest()] == [(second, None), (first, second)]
        assert log.list_numbers(b"a\xff", 0) == [first, second]
        assert (log.has_touched(b"d/"), log.has_touched(b"c/")) == (True, False)
        assert (log.count_last(1), log.count_last(9), log.has_deletion(9)) == (1, 2, False)
        assert log.diffs(first) == ("+a\n", "-b\n")


# A worker that lost its session


def test_a_worker_of_an_older_epoch_writes_nothing(opened: Callable[..., SessionJournal]) -> None:
    scope = postgres.make_scope()
    add_session(scope, 1)
    stale = opened(at(scope, 1))
    stale.append(notice("mine"))
    stale.record("call", DECIDED, "started", ((ToolCallStart, _start("call")),), given=True)
    execute(scope.url, "UPDATE handrail.session SET epoch = 2 WHERE id = %s", scope.session)
    current = opened(at(scope, 2), "run_2")
    for write in (
        lambda: stale.append(notice("late")),
        lambda: stale.set_state("call", "finished", (notice("its end"),)),
        lambda: stale.database.run("DELETE FROM call"),
        lambda: Messages(stale).add([UserMessage(message_id="m", text="late")]),
    ):
        with pytest.raises(StaleWorkerError, match="taken over"):
            write()
    current.append(notice("goes on"))
    assert [event.seq for event in stale.events()] == [1, 2, 3]
    assert [entry.id for entry in current.list_unfinished("run")] == ["call"]


def test_an_answer_from_another_machine_needs_no_epoch(opened: Callable[..., SessionJournal]) -> None:
    scope = postgres.make_scope()
    add_session(scope, 4)
    worker, other = opened(at(scope, 4)), opened(scope, "answer")
    worker.append(notice("one"))
    other.append(notice("two"))
    worker.append(notice("three"))
    assert [event.seq for event in other.events()] == [1, 2, 3]


def test_a_stopped_worker_does_not_hold_a_session_for_ever(opened: Callable[..., SessionJournal]) -> None:
    scope = postgres.make_scope()
    add_session(scope, 1)
    stopped = opened(at(scope, 1))
    stopped.append(notice("one"))
    with stopped.database.lock:
        stopped.database.execute("SET idle_in_transaction_session_timeout = '50ms'")
        stopped.database.execute("BEGIN IMMEDIATE")
        stopped.database.execute("INSERT INTO output VALUES (?, ?)", ("call", "blob"))
        execute(scope.url, "UPDATE handrail.session SET epoch = 2 WHERE id = %s", scope.session)
    with pytest.raises(StoreError):
        stopped.append(notice("late"))
    assert opened(scope).database.rows("SELECT blob FROM output") == []


# A database that fails


def test_writes_and_reads_go_on_after_the_connection_was_lost(opened: Callable[..., SessionJournal]) -> None:
    scope = postgres.make_scope()
    journal = opened(scope)
    journal.append(notice("one"))
    _end_connections(scope.url)
    journal.append(notice("two"))
    _end_connections(scope.url)
    assert len(list(journal.events())) == 2
    _end_connections(scope.url)
    journal.record("call", DECIDED, "started", ((ToolCallStart, _start("call")),), given=True)
    _end_connections(scope.url)
    journal.database.run("INSERT OR REPLACE INTO output VALUES (?, ?)", ("call", "blob"))
    assert [event.seq for event in journal.events()] == [1, 2, 3]


def test_nothing_is_lost_or_doubled_while_connections_end_at_any_moment(
    opened: Callable[..., SessionJournal], count: Callable[[int], int]
) -> None:
    scope = SessionScope(url=postgres.make_database(), session="session")
    journal, times = opened(scope), count(600)
    done = threading.Event()

    def end_connections() -> None:
        while not done.wait(0.01):
            _end_connections(scope.url)

    killer = threading.Thread(target=end_connections)
    killer.start()
    try:
        for number in range(times):
            journal.append(notice(f"{number}"), also=(("INSERT INTO given VALUES (?, ?)", (f"{number}", number)),))
    finally:
        done.set()
        killer.join()
    assert [event.text for event in journal.events() if isinstance(event, Notice)] == [str(n) for n in range(times)]
    assert journal.database.row("SELECT count(*) FROM given") == (times,)


def test_a_database_that_is_not_there_is_one_clear_error() -> None:
    with pytest.raises(StoreError, match="cannot be opened") as failed:
        PostgresDatabase(SessionScope(url="postgresql://nobody@localhost:1/none", session="s"), "")
    assert failed.value.advice is not None
    assert "URL" in failed.value.advice


def test_a_database_without_tables_names_the_command() -> None:
    with pytest.raises(StoreError, match="step 0 of the audit") as failed:
        PostgresDatabase(SessionScope(url=postgres.server().make_database(), session="s"), "", AUDIT)
    assert failed.value.then.startswith("handrail fleet migrate")


def test_a_database_gets_the_steps_that_it_lacks_and_refuses_an_older_handrail() -> None:
    url = postgres.make_database()
    execute(url, "UPDATE handrail.migration SET step = 3 WHERE name = 'journal'")
    for table in ("left_call", "prompt"):
        execute(url, f"DROP VIEW handrail_session.{table}; DROP TABLE handrail.{table}")
    execute(url, "DROP FUNCTION handrail.count_prompt")
    with pytest.raises(StoreError, match="step 3 of the journal"):
        PostgresDatabase(SessionScope(url=url, session="s"), "")
    migrate(url)
    migrate(url)
    with closing(PostgresDatabase(SessionScope(url=url, session="s"), "")) as database:
        assert database.rows("SELECT call_id FROM left_call") == []
    execute(url, "UPDATE handrail.migration SET step = 99 WHERE name = 'journal'")
    for use in (lambda: PostgresDatabase(SessionScope(url=url, session="s"), ""), lambda: migrate(url)):
        with pytest.raises(StoreError, match="newer handrail"):
            use()


def test_a_full_disk_of_the_database_is_named_and_loses_nothing(opened: Callable[..., SessionJournal]) -> None:
    scope = SessionScope(url=postgres.make_database(), session="s")
    journal = opened(scope)
    journal.append(notice("one"))
    execute(
        scope.url,
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$;"
        "CREATE TRIGGER fill BEFORE INSERT ON handrail.event EXECUTE FUNCTION fill()",
    )
    with pytest.raises(StoreError, match="full") as failed:
        journal.append(notice("two"))
    assert failed.value.advice == "The disk of the database is full."
    execute(scope.url, "DROP TRIGGER fill ON handrail.event")
    journal.append(notice("three"))
    assert [event.seq for event in journal.events()] == [1, 2]


# A session on several machines


def test_another_machine_commits_a_preview_and_a_third_takes_it_back(tmp_path: Path, workspace: Path) -> None:
    scope = SessionScope(url=postgres.make_database(), session="s")

    @contextmanager
    def machine(number: int) -> Iterator[Handrail]:
        options: dict[str, Any] = {"settings": Settings(), "mode": "ask", "on_permission": "park"}
        state = tmp_path / f"machine-{number}"
        with (
            closing(SharedStore(scope)) as store,
            Handrail(workspace, session="s", state_dir=state, store=store, **options) as rail,
        ):
            yield rail

    with machine(1) as rail:
        rail.call("write", {"path": "a.txt", "content": "one\n"}, tool_call_id="write")
        rail.call("exec", {"command": "echo two > b.txt; seq 30000"}, tool_call_id="command")
        assert list(workspace.iterdir()) == []
    with machine(2) as rail:
        for request in rail.waiting():
            outcome = rail.answer(request, "once")
            assert isinstance(outcome, Done)
            assert outcome.results[0].ok
        assert (workspace / "b.txt").read_text() == "two\n"
        assert rail.call("read", {"path": "@output/command"}).ok
    with machine(3) as rail:
        assert rail.undo().ok
        assert rail.undo(1).ok
        assert list(workspace.iterdir()) == []
        assert [record.session_id for record in rail.changes()] == ["s"] * 4
    with closing(SharedStore(scope)) as store:
        verification = store.verify()
    assert (verification.problems, verification.records) == ((), 5)


def test_a_changed_audit_line_or_a_missing_one_is_found(tmp_path: Path, workspace: Path) -> None:
    scope = SessionScope(url=postgres.make_database(), session="s")
    with closing(SharedStore(scope)) as store:
        options: dict[str, Any] = {"settings": Settings(), "mode": "auto", "store": store}
        with Handrail(workspace, session="s", state_dir=tmp_path / "state", **options) as rail:
            for number in range(3):
                rail.write(f"{number}.txt", "text\n")
        assert store.verify().intact
        execute(scope.url, "DELETE FROM handrail.audit_line WHERE seq = 3")
        assert "The end was cut" in store.verify().problems[0]
        changed = "convert_to(replace(convert_from(line, 'UTF8'), 'true', 'false'), 'UTF8')"
        execute(scope.url, f"UPDATE handrail.audit_line SET line = {changed} WHERE seq = 2")
        assert "Record 2 was changed" in store.verify().problems[0]


def _start(call: str) -> dict[str, Any]:
    return {"tool_call_id": call, "tool_call_name": "write", "args": {}, "trace_id": call}


def _end_connections(url: str) -> None:
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    execute(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
