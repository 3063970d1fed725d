"""The database of a session in PostgreSQL, which takes the statements of the one in SQLite."""

import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any, ClassVar, NoReturn

import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from handrail.protocol.errors import StoreError
from handrail.store.database import JOURNAL, Database, Row, Schema, Transaction
from handrail.store.postgres_schema import (
    EPOCH,
    JOBS,
    SCHEMAS,
    SCOPE,
    SESSION,
    STALE,
    VIEWS,
    build_open_error,
    check_schema,
    translate,
)

_PATIENCE_SECONDS = 60.0
"""How long a statement waits for a database that restarts."""
_IDLE_SECONDS = 5
"""A stopped worker holds a transaction open for so long at most."""
_OPEN = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)
_DISK_FULL = "53100"
_SHUTDOWN = ("57P", "25P03")
"""The states of errors after which the database ends the connection."""
_LIVENESS = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}


class StaleWorkerError(StoreError):
    """Another worker has taken over the session. Nothing was written."""


class ConnectionPool:
    """Idle connections of one process to one database. A new connection takes the database 8 ms of processor time, more
    than all statements of a short run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[float, psycopg.Connection]] = []
        """Each with the time of its last use, the last used at the end."""

    def take(self) -> psycopg.Connection | None:
        with self._lock:
            return self._idle.pop()[1] if self._idle else None

    def give(self, connection: psycopg.Connection) -> None:
        """Keeps a connection, unless it is lost or in the middle of something."""
        if connection.info.transaction_status is TransactionStatus.IDLE:
            with self._lock:
                self._idle.append((time.monotonic(), connection))
        else:
            connection.close()

    def close_unused(self, seconds: float) -> None:
        """Closes the connections that were not used for so long."""
        before = time.monotonic() - seconds
        with self._lock:
            unused = [connection for since, connection in self._idle if since <= before]
            self._idle = [one for one in self._idle if one[0] > before]
        for connection in unused:
            connection.close()


class SessionScope(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a database that a connection sees, and who writes there."""

    url: str
    session: str
    epoch: int | None = None
    """Of the worker that runs the session. None for others, such as who answers a request."""
    pool: ConnectionPool | None = None
    """Where the connection comes from and goes to."""


class PostgresDatabase(Database):
    """One connection with a lock for threads. It connects again after a restart of the database."""

    error: ClassVar[type[Exception]] = psycopg.Error

    def __init__(self, scope: SessionScope, path: str, schema: Schema = JOURNAL, *, owner: str | None = None) -> None:
        """`path` is that of the SQLite file that it replaces. `owner`: whose rows, if not the session's."""
        self.lock = threading.RLock()
        self.path = path
        self._schema = schema
        self._scope = scope
        self._owner = owner or scope.session
        try:
            self._postgres = self._open()
        except psycopg.Error as error:
            raise build_open_error(error) from error
        self.execute: Any = self._execute
        self.transaction = Transaction(self)

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        with self.lock:
            try:
                return super().run(statement, values)
            except StoreError as error:  # statements that run alone may run twice
                if not self.reconnect(error):
                    raise
                return super().run(statement, values)

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        return self.execute(f"{statement} RETURNING number", values).fetchone()[0]

    @property
    def in_transaction(self) -> bool:
        return self._postgres.info.transaction_status in _OPEN

    def switch(self, session: str) -> None:
        """Shows the rows of another session from now on. For connections that only read."""
        with self.lock:
            self._owner = session
            self.rows("SELECT set_config(?, ?, false)", (SCOPE, session))

    def drop_unfinished(self) -> None:
        if self.in_transaction:
            self._postgres.rollback()

    def read_version(self) -> int:
        return self.rows("SELECT txid_snapshot_xmax(txid_current_snapshot())")[0][0]

    def check(self) -> None:
        """Reads a row. The database checks its own pages."""
        self.rows("SELECT 1")

    def reconnect(self, error: Exception) -> bool:
        cause = error.__cause__ or error
        if isinstance(cause, psycopg.errors.DeadlockDetected):
            return True  # the database dropped the transaction
        if not isinstance(cause, psycopg.Error):
            return False
        if (cause.sqlstate or "").startswith(_SHUTDOWN):
            self._postgres.close()  # its end may not have come yet
        if not self._postgres.closed:
            return False
        until, pause = time.monotonic() + _PATIENCE_SECONDS, 0.05
        while True:
            try:
                self._postgres = self._open()
            except psycopg.OperationalError as lost:
                if time.monotonic() >= until:
                    raise build_open_error(lost) from lost
                time.sleep(pause)
                pause = min(pause * 2, 1.0)
            else:
                return True

    def fail(self, error: Exception) -> NoReturn:
        if isinstance(error, StoreError):
            raise error
        state = getattr(error, "sqlstate", None)
        reason = str(error).partition("\n")[0]
        if state == STALE:
            raise StaleWorkerError(reason, advice="The other worker continues the run.") from error
        advice = "The disk of the database is full." if state == _DISK_FULL else "Check whether the database runs."
        brief = f"handrail's {self._schema.name} cannot be used"
        raise StoreError(f"the {self._schema.name} in PostgreSQL cannot be used: {reason}", brief, advice) from error

    @property
    def _name(self) -> str:
        return f"{self._schema.name} of session {self._scope.session}"

    def close(self) -> None:
        with self.lock, suppress(psycopg.Error):
            if self._scope.pool is not None:
                self._scope.pool.give(self._postgres)
            else:
                self._postgres.close()

    def _open(self) -> psycopg.Connection:
        settings = {
            "search_path": f"{VIEWS}, {JOBS}",
            "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
            SCOPE: self._owner,
            SESSION: self._scope.session,
            EPOCH: "" if self._scope.epoch is None else str(self._scope.epoch),
        }
        query = f"SELECT {', '.join(['set_config(%s, %s, false)'] * len(settings))}"
        values = [text for pair in settings.items() for text in pair]
        while (connection := self._scope.pool and self._scope.pool.take()) is not None:
            try:
                connection.execute(query, values)  # pyright: ignore[reportArgumentType]
            except psycopg.OperationalError:  # the database has restarted
                connection.close()
            else:
                return connection
        connection = psycopg.connect(self._scope.url, autocommit=True, connect_timeout=10, **_LIVENESS)  # pyright: ignore[reportArgumentType]
        try:
            for schema in (self._schema,) if self._scope.pool is None else SCHEMAS:
                check_schema(connection, schema)
            connection.execute(query, values)  # pyright: ignore[reportArgumentType]
        except BaseException:
            connection.close()
            raise
        return connection

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Runs a statement. Reads and the begin of a transaction are tried again after a lost connection."""
        is_safe = statement.startswith(("SELECT", "BEGIN")) and not self.in_transaction
        try:
            return self._postgres.execute(translate(statement), values)  # pyright: ignore[reportArgumentType]
        except psycopg.Error as error:
            if not is_safe or not self.reconnect(error):
                raise
        return self._postgres.execute(translate(statement), values)  # pyright: ignore[reportArgumentType]


class SessionReader(Database):
    """Reads a session over a new connection for each query, or one of the pool. So it holds none between them."""

    error: ClassVar[type[Exception]] = psycopg.Error

    def __init__(self, scope: SessionScope, schema: Schema = JOURNAL, *, owner: str | None = None) -> None:
        self.path = ""
        self._scope, self._schema, self._owner = scope, schema, owner

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        with closing(PostgresDatabase(self._scope, "", self._schema, owner=self._owner)) as database:
            return database.rows(statement, values)

    def close(self) -> None:
        """Nothing is open."""
