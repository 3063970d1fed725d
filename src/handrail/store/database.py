"""A SQLite database with its schema and migrations."""

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, NoReturn, TypeVar

from handrail.protocol.errors import StoreError
from handrail.protocol.wire import UNREADABLE, decode_json
from handrail.store.state_dir import make_temporary_folder

# § [store.migrations] Tables, as numbered steps: a file of any age is brought up to date when it is opened.

JOURNAL = (
    """
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, call_id TEXT, runner TEXT NOT NULL, data BLOB NOT NULL,
        decided BLOB
    );
    CREATE TABLE given (id TEXT PRIMARY KEY, start_seq INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE call (
        id TEXT PRIMARY KEY, batch_id TEXT NOT NULL, runner TEXT NOT NULL, state TEXT NOT NULL,
        start_seq INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE runner (id TEXT PRIMARY KEY, audited INTEGER NOT NULL, audit_size INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE seen (path TEXT PRIMARY KEY, mark BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE output (call_id TEXT PRIMARY KEY, blob TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE request (
        id TEXT PRIMARY KEY, batch_id TEXT NOT NULL, call_id TEXT NOT NULL, data BLOB NOT NULL, answer BLOB
    ) WITHOUT ROWID;
    CREATE TABLE batch (id TEXT PRIMARY KEY, state TEXT NOT NULL, calls TEXT NOT NULL) WITHOUT ROWID;
    """,
    "CREATE TABLE message (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE skill (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE left_call (call_id TEXT PRIMARY KEY, digest TEXT NOT NULL, holder TEXT) WITHOUT ROWID;
    CREATE INDEX left_call_digest ON left_call (digest);
    """,
)

CHANGES = (
    """
    CREATE TABLE change_set (
        number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, call_id TEXT NOT NULL, turn TEXT NOT NULL,
        runner TEXT NOT NULL, state TEXT NOT NULL, time TEXT NOT NULL, undone_by INTEGER, data BLOB NOT NULL, diff BLOB
    );
    CREATE INDEX change_set_state ON change_set (state);
    CREATE TABLE touched (path BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (path, number)) WITHOUT ROWID;
    """,
)


def migrate(connection: sqlite3.Connection, steps: tuple[str, ...]) -> None:
    """Applies the steps the file does not have yet, all in one transaction: most files are new, and get all of them."""
    if read_schema_version(connection, steps) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    for step in steps[read_schema_version(connection, steps) :]:  # somebody else may have applied some a moment ago
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(steps)}")
    connection.execute("COMMIT")


def read_schema_version(connection: sqlite3.Connection, steps: tuple[str, ...]) -> int:
    """How many of the steps the file has; DatabaseError where it has more."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(steps):
        raise sqlite3.DatabaseError(f"it was written by a newer handrail (step {version})")
    return version


# § [store.database] One SQLite connection, one lock, and one way to write: everything that belongs together in one
# § transaction.

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


# § [store.read_only] Reads a database that others may be at work on: nothing in it changes, and nothing is left
# § beside it.

Stamp = tuple[tuple[int, int], ...]


class ReadOnlyDatabase(Database):
    """A journal or a change log, to look at. One of an older handrail stays as it is; tables that it lacks are empty.

    SQLite makes files for readers to share, and would leave them. A database of which nothing is unfinished is read
    without, as long as its stamp stays the same.
    """

    _verb = "read"

    def __init__(self, path: str, steps: tuple[str, ...] = JOURNAL) -> None:
        self._is_older = False
        self._stamp: Stamp | None = None
        super().__init__(path, "crash", steps)

    def _connect(self, durability: Durability, steps: tuple[str, ...]) -> sqlite3.Connection:  # noqa: ARG002
        stamp = read_stamp(self.path)
        unshared = not stamp[1][0]
        connection = _checked(self.path, "immutable=1") if unshared else open_read_only(self.path)
        self._stamp = stamp if unshared else None
        try:
            self._is_older = read_schema_version(connection, steps) < len(steps)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        """All rows of a query."""
        with self.lock:
            try:
                found = super().rows(statement, values)
            except StoreError as error:
                if self._is_older and "no such table" in str(error):
                    return []
                if self._is_current():
                    raise
            else:
                if self._is_current():
                    return found
            return self.rows(statement, values)  # somebody wrote meanwhile: what was read may be of two times

    def row(self, statement: str, values: Row = ()) -> Row | None:
        """The first row of a query."""
        return next(iter(self.rows(statement, values)), None)

    def _is_current(self) -> bool:
        """Whether what was read counts. If not, the connection is one that shares with writers from here on."""
        if self._stamp is None or self._stamp == read_stamp(self.path):
            return True
        self._stamp = None
        self._connection.close()
        try:
            self._connection = open_read_only(self.path)
        except (sqlite3.Error, OSError) as error:
            self._fail(self._verb, error)
        self.execute = self._connection.cursor().execute
        return False


def open_read_only(path: str) -> sqlite3.Connection:
    """A connection that only looks. Where nothing may be written, SQLite cannot make the files that readers share: then
    a copy is read."""
    try:
        return _checked(path, "mode=ro")
    except sqlite3.OperationalError:
        if os.access(os.path.dirname(path), os.W_OK) or not os.access(path, os.R_OK):
            raise
    import shutil  # noqa: PLC0415  slow to load, and few folders are read-only

    with make_temporary_folder("handrail-journal-") as folder:
        copy = os.path.join(folder, "journal.db")
        for ending in ("", "-wal"):
            shutil.copyfile(path + ending, copy + ending)
        return _checked(copy, "mode=rw")


def read_stamp(path: str) -> Stamp:
    """Size and time of a database and of what is not in it yet: one of them changes whenever it does."""
    return tuple(_size_and_time(path + ending) for ending in ("", "-wal"))


def _checked(path: str, how: str) -> sqlite3.Connection:
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{name}?{how}", _BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
