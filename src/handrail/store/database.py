"""One SQLite connection, one lock, and one way to write: everything that belongs together in one transaction."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal

from handrail.protocol.error import StoreError
from handrail.store.migrations import JOURNAL, migrate

Durability = Literal["crash", "power"]
Row = tuple[Any, ...]

_BUSY_SECONDS = 10
_CHECKPOINT_PAGES = 1000


class Database:
    """A file of tables: a journal or a change log.

    WAL with NORMAL survives kill -9; FULL (durability "power") survives power loss too.
    """

    def __init__(self, path: str, durability: Durability, steps: tuple[str, ...] = JOURNAL) -> None:
        self.lock = threading.RLock()
        self.path = path
        try:
            is_new = _touch(path)
            self._connection = sqlite3.connect(path, _BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"the journal {path} cannot be opened: {error}") from error
        try:
            if is_new and durability != "power":
                # What makes it a database is one page of nothing: that does not wait for the disk four times. Whoever
                # is killed leaves it empty or whole.
                self._connection.execute("PRAGMA synchronous = OFF")
            self._prepare("FULL" if durability == "power" else "NORMAL", steps)
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreError(f"the journal {path} cannot be opened: {error}") from error
        self.execute = self._connection.cursor().execute
        self.transaction = Transaction(self)
        """All or nothing, and alone: from the first statement on no other writer is in the file."""

    def _prepare(self, synchronous: str, steps: tuple[str, ...]) -> None:
        execute = self._connection.execute
        self._use_wal(time.monotonic() + _BUSY_SECONDS)
        execute(f"PRAGMA synchronous = {synchronous}")
        execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        migrate(self._connection, steps)

    def _use_wal(self, until: float) -> None:
        """For this change SQLite does not wait while others open the same new file, so we do."""
        while self._connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() >= until:
                    raise
                time.sleep(0.002)

    def run(self, statement: str, values: Sequence[Any]) -> None:
        """One statement, which is a transaction of its own."""
        with self.lock:
            self.run_held(statement, values)

    def run_held(self, statement: str, values: Sequence[Any]) -> None:
        """The same, for who holds the lock."""
        try:
            if self._connection.in_transaction:
                self.drop_unfinished()
            self.execute(statement, values)
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def drop_unfinished(self) -> None:
        """Rolls back what is open. An interrupt can come before a transaction's end; SQLite often rolls back itself."""
        if self._connection.in_transaction:
            self.execute("ROLLBACK")

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        """All rows of a query."""
        try:
            with self.lock:
                return self.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def row(self, statement: str, values: Row = ()) -> Row | None:
        """The first row of a query."""
        try:
            with self.lock:
                return self.execute(statement, values).fetchone()
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def unusable(self, error: sqlite3.Error) -> StoreError:
        """What the caller sees of a failure of SQLite."""
        return StoreError(f"the journal {self.path} cannot be used: {error}")

    def close(self) -> None:
        """Closes the connection."""
        with self.lock:
            self._connection.close()


class Transaction:
    """`with database.lock, database.transaction:`; a class, because a generator costs more than the statements."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        database = self._database
        try:
            database.drop_unfinished()
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise database.unusable(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database = self._database
        try:
            if error is None:
                database.execute("COMMIT")
        except sqlite3.Error as failure:
            error = failure
        if error is not None:
            with contextlib.suppress(sqlite3.Error):
                database.drop_unfinished()
        if isinstance(error, sqlite3.Error):
            raise database.unusable(error) from error


def _touch(path: str) -> bool:
    """Makes the file before SQLite does, so that nobody else can read it at any moment; whether nothing is in it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        return os.fstat(descriptor).st_size == 0
    finally:
        os.close(descriptor)
