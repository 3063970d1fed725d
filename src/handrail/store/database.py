"""One SQLite connection, one lock, and one way to write: everything that belongs together in one transaction."""

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, NoReturn, TypeVar

from handrail.protocol.error import StoreError
from handrail.protocol.reading import UNREADABLE, decode_json
from handrail.store.migrations import JOURNAL, migrate

Durability = Literal["crash", "power"]
Row = tuple[Any, ...]
Kind = TypeVar("Kind")

_BUSY_SECONDS = 10
_CHECKPOINT_PAGES = 1000
_SCRATCH_BYTES = 1 << 16
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_VAGUE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


class Database:
    """A file of tables: a journal or a change log.

    WAL with NORMAL survives kill -9; FULL (durability "power") survives power loss too.
    """

    _verb = "opened"

    def __init__(self, path: str, durability: Durability, steps: tuple[str, ...] = JOURNAL) -> None:
        self.lock = threading.RLock()
        self.path = path
        self._kind = "journal" if steps is JOURNAL else "change log"
        try:
            self._connection = self._connect(durability, steps)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            self._fail(self._verb, error)
        self.execute = self._connection.cursor().execute
        self.transaction = Transaction(self)
        """All or nothing, and alone: from the first statement on no other writer is in the file."""

    def _connect(self, durability: Durability, steps: tuple[str, ...]) -> sqlite3.Connection:
        is_new = _touch(self.path)
        connection = sqlite3.connect(self.path, _BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            if is_new and durability != "power":
                # What makes it a database is one page of nothing: that does not wait for the disk four times. Whoever
                # is killed leaves it empty or whole.
                connection.execute("PRAGMA synchronous = OFF")
            _prepare(connection, "FULL" if durability == "power" else "NORMAL", steps)
        except sqlite3.Error as error:
            refusal = _refusal(self.path, error)  # before its descriptors are free for others
            connection.close()
            raise refusal or error from error
        return connection

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
            self.fail(error)

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
            self.fail(error)

    def row(self, statement: str, values: Row = ()) -> Row | None:
        """The first row of a query."""
        try:
            with self.lock:
                return self.execute(statement, values).fetchone()
        except sqlite3.Error as error:
            self.fail(error)

    def pages(self, statement: str, key: int) -> Iterator[Row]:
        """The rows of a query that has a limit, page after page: each begins behind the key, which is the first column
        of the last row. Keys without an order are damage, and would be read for ever."""
        direction = 0
        while rows := self.rows(statement, (key,)):
            yield from rows
            direction = direction or rows[-1][0] - key
            if (rows[-1][0] - key) * direction <= 0:
                raise StoreError(f"the {self._name} is damaged: its rows have lost their order")
            key = rows[-1][0]

    def check(self) -> None:
        """Looks at every page; StoreError where one is not what SQLite wrote."""
        found = self.rows("PRAGMA integrity_check(1)")
        if found != [("ok",)]:
            raise StoreError(
                f"the {self._name} is damaged: {found[0][0].splitlines()[-1] if found else 'it has no pages'}"
            )
        [(size,), (count,)] = self.rows("PRAGMA page_size") + self.rows("PRAGMA page_count")
        if count == 0 or os.stat(self.path).st_size % size:
            raise StoreError(f"the {self._name} is damaged: {'its last page is cut' if count else 'it is empty'}")

    def decoded(self, data: bytes, kind: type[Kind]) -> Kind:
        """A row's JSON as a type of ours; StoreError where it is none."""
        try:
            return decode_json(data, kind)
        except UNREADABLE as error:
            raise StoreError(f"the {self._name} has a row that cannot be read: {error}") from None

    def fail(self, error: sqlite3.Error) -> NoReturn:
        """Raises what the caller sees of a failure of SQLite."""
        self._fail("used", error)

    @property
    def _name(self) -> str:
        return f"{self._kind} {self.path}"

    def _fail(self, done: str, error: sqlite3.Error | OSError | UnicodeDecodeError) -> NoReturn:
        """What failed, why, and what is safe all the same."""
        cause = _refusal(self.path, error) or error
        reason = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
        text, brief = f"the {self._name} cannot be {done}: {reason}", f"handrail's {self._kind} cannot be used"
        if _code(error) in _DAMAGED:
            brief = f"handrail's {self._kind} is damaged"
            others = "other sessions" if self._kind == "journal" else "other workspaces"
            text = f"{text}. It is damaged; your files and {others} are safe. Next: handrail doctor"
        elif _code(error) == sqlite3.SQLITE_BUSY:
            text = f"{text}. Another process is at work on it: try again."
        raise StoreError(text, brief) from cause

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
            database.fail(error)

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
            database.fail(error)


def _prepare(connection: sqlite3.Connection, synchronous: str, steps: tuple[str, ...]) -> None:
    _use_wal(connection, time.monotonic() + _BUSY_SECONDS)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    migrate(connection, steps)


def _use_wal(connection: sqlite3.Connection, until: float) -> None:
    """For this change SQLite does not wait while others open the same new file, so we do."""
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) in _VAGUE or time.monotonic() >= until:
                raise
            time.sleep(0.002)


def _code(error: Exception) -> int:
    """SQLite's own primary code. An error that quotes what is no UTF-8 is about a damaged schema."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _refusal(path: str, error: Exception) -> OSError | None:
    """Why the system refuses, where SQLite does not say: a scratch file beside it is refused for the same reason."""
    if _code(error) not in _VAGUE:
        return None
    scratch = f"{path}.{os.urandom(6).hex()}.scratch"
    try:
        with open(scratch, "xb", buffering=0) as file, contextlib.ExitStack() as left:
            left.callback(os.unlink, scratch)
            if file.write(bytes(_SCRATCH_BYTES)) < _SCRATCH_BYTES or _code(error) == sqlite3.SQLITE_FULL:
                return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    except OSError as reason:
        return OSError(reason.errno, reason.strerror, path)
    return None


def _touch(path: str) -> bool:
    """Makes the file before SQLite does, so that nobody else can read it at any moment; whether nothing is in it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        return os.fstat(descriptor).st_size == 0
    finally:
        os.close(descriptor)
