"""A fleet for tests: a database of its own, workers as processes, and a person who approves everything."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Self

import psycopg

import postgres
from handrail.fleet.options import GitWorkspace, RunOptions, SharedFolder
from handrail.fleet.sessions import (
    FleetRequest,
    FleetSessions,
    Outcome,
    prepare_database,
)
from handrail.fleet.status import open_status_database, read_status
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import StoreError, UsageError
from handrail.protocol.events import AnyEvent, BrokenEvent
from handrail.protocol.permissions import Answer
from handrail.store.journal import SessionJournal
from handrail.store.postgres import PostgresDatabase, SessionScope
from handrail.store.postgres_schema import list_tables
from handrail.store.shared_store import SharedStore

WORKER = Path(__file__).with_name("fleet_worker.py")
PATIENCE = 120


def run_git(*words: object, folder: Path) -> str:
    return subprocess.run(["git", *map(str, words)], cwd=folder, check=True, capture_output=True, text=True).stdout


@cache
def _template() -> str:
    url = postgres.server().make_database()
    prepare_database(url)
    return postgres.read_name(url)


class Fleet:
    def __init__(self, folder: Path, *, dead_seconds: float = 2.0, server: postgres.Server | None = None) -> None:
        self.folder = folder
        if server is None:
            self.url = postgres.server().make_database(_template())
        else:
            self.url = server.make_database()
            prepare_database(self.url)
        self.sessions = FleetSessions(self.url)
        self.workers: list[subprocess.Popen[bytes]] = []
        self._dead_seconds = dead_seconds
        self._ended = threading.Event()
        self._people: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for person in self._people:
            person.join()
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        self.sessions.close()
        if "_reader" in vars(self):
            self._reader.close()

    @cached_property
    def _reader(self) -> PostgresDatabase:
        return PostgresDatabase(SessionScope(url=self.url, session=""), "")

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(WORKER), self.url, str(self.folder / "workers"), str(self._dead_seconds)]
        with (self.folder / "workers.log").open("ab") as log:
            self.workers.append(subprocess.Popen(command, stdout=log, stderr=log, env=os.environ.copy()))
        return self.workers[-1]

    def submit(self, model: str, name: str, *, mode: Mode = "auto", tenant: str = "") -> str:
        """A session in a shared folder of its own."""
        workspace = self.folder / "workspaces" / name
        workspace.mkdir(parents=True, exist_ok=True)
        options = RunOptions(model=model, workspace=SharedFolder(str(workspace)), mode=mode)
        return self.sessions.submit("Go on.", options, session=name, tenant=tenant)

    def submit_with_repository(self, model: str, name: str, *, mode: Mode = "auto") -> Path:
        """A session in a clone of a new repository, which has two files. Returns the repository."""
        source, repository = self.folder / f"{name}-source", self.folder / f"{name}.git"
        source.mkdir()
        (source / "kept.txt").write_text("kept\n")
        (source / "log.txt").write_text("")
        run_git("init", "--quiet", folder=source)
        run_git("add", ".", folder=source)
        run_git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "first", folder=source)
        run_git("clone", "--quiet", "--bare", source, repository, folder=source)
        options = RunOptions(model=model, workspace=GitWorkspace(str(repository)), mode=mode)
        self.sessions.submit("Go on.", options, session=name)
        return repository

    def read(self, name: str, file: str) -> str:
        path = self.folder / "workspaces" / name / file
        return path.read_text() if path.exists() else ""

    def approve_everything(self) -> None:
        def work() -> None:
            while not self._ended.wait(0.05):
                with suppress(StoreError):
                    for waiting in self.sessions.list_waiting():
                        with suppress(UsageError):
                            self.sessions.answer(waiting.request.id, Answer(kind="once"))

        self._people.append(threading.Thread(target=work))
        self._people[-1].start()

    def wait_for(self, name: str, *states: str) -> str:
        """Waits until a session is in one of these states, or has ended."""

        def is_there() -> str | None:
            found = self.sessions.find(name)
            return found.state if found is not None and found.state in (states or ("idle", "failed")) else None

        return self.wait(is_there)

    def outcome(self, name: str) -> Outcome:
        found = self.sessions.find(name)
        assert found is not None
        assert found.outcome is not None
        return found.outcome

    def copy_session(self, name: str, request: str, count: int) -> None:
        """Copies a session that waits, as rows. Each copy has a request of its own."""
        number = "lpad(n::text, 6, '0')"
        renamed = f"replace(convert_from(data, 'UTF8'), %(request)s, %(request)s || {number})"
        changed = {("request", "id"): f"id || {number}", ("request", "data"): f"convert_to({renamed}, 'UTF8')"}
        with psycopg.connect(self.url, autocommit=True) as connection:
            for table in ("event", "given", "call", "request", "batch", "message"):
                columns = list(list_tables()[table].columns)
                values = [changed.get((table, column), column) for column in columns]
                statement = f"""
                    INSERT INTO handrail.{table} ({", ".join(columns)}, scope)
                    SELECT {", ".join(values)}, %(name)s || '-' || n
                    FROM handrail.{table}, generate_series(1, %(count)s) AS n WHERE scope = %(name)s
                """
                connection.execute(statement.encode(), {"name": name, "request": request, "count": count})
            connection.execute(
                "INSERT INTO handrail.session (id, state, epoch, lock, options) SELECT id || '-' || n, state, epoch, "
                "id || '-' || n, options FROM handrail.session, generate_series(1, %s) AS n WHERE id = %s",
                (count, name),
            )

    def list_previews(self) -> list[str]:
        with psycopg.connect(self.url) as connection:
            rows = connection.execute("SELECT name FROM handrail.folder WHERE name <> 'home'").fetchall()
        return [row[0] for row in rows]

    def count_workers(self) -> int:
        with closing(open_status_database(self.url)) as database:
            return len(read_status(database).workers)

    def list_heartbeats(self) -> Sequence[object]:
        with psycopg.connect(self.url) as connection:
            return connection.execute("SELECT last_heartbeat FROM handrail_jobs.procrastinate_workers").fetchall()

    def measure_silence(self) -> float:
        """The seconds since the last heartbeat of any worker."""
        query = (
            "SELECT extract(epoch FROM now() - max(last_heartbeat))::float8 FROM handrail_jobs.procrastinate_workers"
        )
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()[0][0] or 0.0

    def sessions_ended(self, names: list[str]) -> set[str]:
        with suppress(StoreError):
            return {one.id for one in self.sessions.list_sessions("idle", "failed") if one.id in names}
        return set()

    def wait_for_request(self, name: str) -> FleetRequest:
        found: list[FleetRequest] = []

        def is_there() -> str | None:
            found[:] = [one for one in self.sessions.list_waiting() if one.session == name]
            return "asked" if found else None

        self.wait(is_there)
        return found[0]

    def wait(self, look: Callable[[], str | None]) -> str:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with suppress(StoreError):
                if (found := look()) is not None:
                    return found
            time.sleep(0.05)
        raise AssertionError(f"it did not happen: {self._describe()}")

    def _describe(self) -> str:
        """What a failed test has to tell: the sessions, their jobs, the workers, the last events, and the log."""
        with psycopg.connect(self.url) as connection:
            jobs = connection.execute("SELECT * FROM handrail_jobs.procrastinate_jobs").fetchall()
        sessions = self.sessions.list_sessions()
        log = self.folder / "workers.log"
        parts = [sessions, jobs, [worker.poll() for worker in self.workers]]
        parts += [self.events(session.id)[-3:] for session in sessions[:3]]
        return "\n".join([*map(str, parts), log.read_text()[-5000:] if log.exists() else ""])

    def events(self, name: str) -> list[AnyEvent | BrokenEvent]:
        self._reader.switch(name)
        return list(SessionJournal(self._reader, name, "").events())

    def verify(self, name: str) -> tuple[str, ...]:
        with closing(SharedStore(SessionScope(url=self.url, session=name))) as store:
            return store.verify().problems
