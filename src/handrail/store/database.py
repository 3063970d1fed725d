"""SQLite databases: connections, schemas, migrations."""

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, ClassVar, Literal, NoReturn, TypeVar

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.wire import UNREADABLE, decode_json
from handrail.store.state_dir import make_temporary_folder, open_private

Durability = Literal["none", "crash", "power"]
"""The failure that committed data survives. "none" is for files that are not in use yet."""
Row = tuple[Any, ...]
Stamp = tuple[tuple[int, int], ...]
_Kind = TypeVar("_Kind")


class Schema(msgspec.Struct, frozen=True):
    name: str
    others: str
    """Data that is safe if a database of this kind is damaged."""
    steps: tuple[str, ...]
    """Migrations. A file of any age gets the ones it lacks when it is opened."""
    checkpoint_pages: int = 1_000
    """Pages in the write-ahead log that make a commit wait for the disk."""


JOURNAL = Schema(
    "journal",
    "other sessions",
    (
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
        "CREATE TABLE prompt (number INTEGER PRIMARY KEY, text BLOB NOT NULL)",
    ),
)

CHANGES = Schema(
    "change log",
    "other workspaces",
    (
        """
        CREATE TABLE change_set (
            number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, call_id TEXT NOT NULL,
            turn TEXT NOT NULL, runner TEXT NOT NULL, state TEXT NOT NULL, time TEXT NOT NULL, undone_by INTEGER,
            data BLOB NOT NULL, diff BLOB
        );
        CREATE INDEX change_set_state ON change_set (state);
        CREATE TABLE touched (path BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (path, number)) WITHOUT ROWID;
        """,
    ),
)

CONTENTS = Schema(
    "store of small contents",
    "other workspaces",
    (
        """
        CREATE TABLE content (
            hash BLOB PRIMARY KEY, size INTEGER NOT NULL, pack INTEGER NOT NULL, start INTEGER NOT NULL,
            used INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE pack (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB NOT NULL);
        """,
    ),
    checkpoint_pages=16_000,
)

_SYNCHRONOUS: dict[Durability, str] = {"none": "OFF", "crash": "NORMAL", "power": "FULL"}
_BUSY_SECONDS = 10
_SCRATCH_BYTES = 1 << 16
_FRESH_NANOSECONDS = 2 * 10**9
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_VAGUE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


class Database:
    """One connection to a database, with a lock for threads. It uses write-ahead logging."""

    error: ClassVar[type[Exception]] = sqlite3.Error
    """The error of a failed statement."""
    _verb = "opened"

    def __init__(self, path: str, durability: Durability, schema: Schema = JOURNAL) -> None:
        self.lock = threading.RLock()
        self.path = path
        self._schema = schema
        try:
            self.connection = self._connect(durability)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            self._fail(self._verb, error)
        self.execute = self.connection.cursor().execute
        self.transaction = Transaction(self)
        """All or nothing. No other process writes from its first statement on."""

    def _connect(self, durability: Durability) -> sqlite3.Connection:
        is_new = _create_private_file(self.path)
        connection = sqlite3.connect(self.path, _BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            if is_new and durability != "power":
                connection.execute("PRAGMA synchronous = OFF")  # the first, empty page need not reach the disk
            _use_wal(connection, time.monotonic() + _BUSY_SECONDS)
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {self._schema.checkpoint_pages}")
            _migrate(connection, self._schema)
        except sqlite3.Error as error:
            refusal = _find_refusal(self.path, error)  # before other files can get its descriptors
            connection.close()
            raise refusal or error from error
        return connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Returns the number of changed rows."""
        try:
            with self.lock:
                self.drop_unfinished()
                return self.execute(statement, values).rowcount
        except self.error as error:
            self.fail(error)

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        """Inserts a row within a transaction. Returns its number."""
        return self.execute(statement, values).lastrowid or 0

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    def reconnect(self, error: Exception) -> bool:  # noqa: ARG002  a file loses no connection
        """Connects again after a lost connection. Returns whether the statements may be tried again."""
        return False

    def read_version(self) -> int:
        """A number that changes when another process writes."""
        return self.rows("PRAGMA data_version")[0][0]

    def drop_unfinished(self) -> None:
        """Rolls back an open transaction. An interrupt can leave one open. SQLite often rolls back itself."""
        if self.connection.in_transaction:
            self.execute("ROLLBACK")

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        try:
            with self.lock:
                return self.execute(statement, values).fetchall()
        except self.error as error:
            self.fail(error)

    def row(self, statement: str, values: Row = ()) -> Row | None:
        rows = self.rows(statement, values)
        return rows[0] if rows else None

    def copy_rows(self, source: "Database", insert: str, query: str, *values: int) -> bool:
        """Inserts the rows of another database, within a transaction. Returns whether there were any."""
        rows = source.rows(query, values)
        for row in rows:
            self.execute(insert, row)
        return bool(rows)

    def pages(self, statement: str, key: int) -> Iterator[Row]:
        """The rows of a query with a limit, page after page. A page starts after the key, the first column of the last
        row. Keys without an order are damage and would be read for ever."""
        direction = 0
        while rows := self.rows(statement, (key,)):
            yield from rows
            direction = direction or rows[-1][0] - key
            if (rows[-1][0] - key) * direction <= 0:
                raise StoreError(f"the {self._name} is damaged: its rows are out of order")
            key = rows[-1][0]

    def check(self) -> None:
        """Reads every page. StoreError if one is damaged."""
        found = self.rows("PRAGMA integrity_check(1)")
        if found != [("ok",)]:
            damage = found[0][0].splitlines()[-1] if found else "it has no pages"
            raise StoreError(f"the {self._name} is damaged: {damage}")
        [(size,), (count,)] = self.rows("PRAGMA page_size") + self.rows("PRAGMA page_count")
        if count == 0 or os.stat(self.path).st_size % size:
            raise StoreError(f"the {self._name} is damaged: {'its last page is cut' if count else 'it is empty'}")

    def decode(self, data: bytes, kind: type[_Kind]) -> _Kind:
        """Decodes the JSON of a row. StoreError if it does not fit the type."""
        try:
            return decode_json(data, kind)
        except UNREADABLE as error:
            raise StoreError(f"the {self._name} has a row that cannot be read: {error}") from None

    def fail(self, error: Exception) -> NoReturn:
        if isinstance(error, StoreError):
            raise error
        self._fail("used", error)

    @property
    def _name(self) -> str:
        return f"{self._schema.name} {self.path}"

    def _fail(self, verb: str, error: Exception) -> NoReturn:
        cause = _find_refusal(self.path, error) or error
        reason = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
        brief, advice = f"handrail's {self._schema.name} cannot be used", None
        if _get_code(error) in _DAMAGED:
            brief = f"handrail's {self._schema.name} is damaged"
            advice = f"It is damaged; your files and {self._schema.others} are safe."
        elif _get_code(error) == sqlite3.SQLITE_BUSY:
            advice = "Another process is using it: try again."
        raise StoreError(f"the {self._name} cannot be {verb}: {reason}", brief, advice) from cause

    def close(self) -> None:
        with self.lock:
            self.connection.close()


class Transaction:
    """`with database.lock, database.transaction:`. A class, because a generator costs more than the statements."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        database = self._database
        try:
            database.drop_unfinished()
            database.execute("BEGIN IMMEDIATE")
        except database.error as error:
            database.fail(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database = self._database
        try:
            if error is None:
                database.execute("COMMIT")
        except database.error as failure:
            error = failure
        if error is not None:
            with contextlib.suppress(database.error):
                database.drop_unfinished()
        if isinstance(error, database.error):
            database.fail(error)


class RowMarker:
    """An empty file beside a database. It says that a table has or had rows, where a query takes four times as long."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.last_query_found_none = False
        """Rows from before the marker are found by a query."""

    def is_missing(self) -> bool:
        """Whether the table is empty. False if a query has to tell."""
        return self.last_query_found_none and not os.access(self._path, os.F_OK)

    def set(self) -> None:
        """Call this before the first row is stored. StoreError if the file cannot be made."""
        try:
            os.close(open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))
        except OSError as error:
            raise StoreError(f"the file {self._path} cannot be written: {error.strerror}") from error


class ReadOnlyDatabase(Database):
    """A database that is only read. One of an older version is not migrated. Tables that it lacks are empty.

    SQLite makes files for readers to share, and would leave them. A database without a write-ahead log is read without
    these files, as long as its stamp stays the same.
    """

    _verb = "read"

    def __init__(self, path: str, schema: Schema = JOURNAL) -> None:
        self._is_older = False
        self._stamp: Stamp | None = None
        super().__init__(path, "crash", schema)

    def _connect(self, durability: Durability) -> sqlite3.Connection:  # noqa: ARG002
        stamp = read_stamp(self.path)
        is_unshared = not stamp[1][0]
        connection = _connect_uri(self.path, "immutable=1") if is_unshared else open_read_only(self.path)
        self._stamp = stamp if is_unshared else None
        try:
            self._is_older = _read_version(connection, self._schema) < len(self._schema.steps)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def rows(self, statement: str, values: Row = ()) -> list[Row]:
        with self.lock:
            try:
                found = super().rows(statement, values)
            except StoreError as error:
                # Each step of a schema adds whole tables, so it is a table that the statement lacks.
                if self._is_older and _get_code(error.__cause__) == sqlite3.SQLITE_ERROR:
                    return []
                if self._is_current():
                    raise
            else:
                if self._is_current():
                    return found
            return self.rows(statement, values)  # a writer came in between: the rows may mix two states

    def _is_current(self) -> bool:
        """Whether the rows that were read are valid. If not, the connection shares with writers from now on."""
        if self._stamp is None or self._stamp == read_stamp(self.path):
            return True
        self._stamp = None
        self.connection.close()
        try:
            self.connection = open_read_only(self.path)
        except (sqlite3.Error, OSError) as error:
            self._fail(self._verb, error)
        self.execute = self.connection.cursor().execute
        return False


def open_read_only(path: str) -> sqlite3.Connection:
    """A connection for reading. In a read-only folder SQLite cannot make its shared files, so a copy is read."""
    try:
        return _connect_uri(path, "mode=ro")
    except sqlite3.OperationalError:
        if os.access(os.path.dirname(path), os.W_OK) or not os.access(path, os.R_OK):
            raise
    import shutil  # noqa: PLC0415  slow to load, and few folders are read-only

    with make_temporary_folder("handrail-journal-") as folder:
        copy = os.path.join(folder, "journal.db")
        for ending in ("", "-wal"):
            shutil.copyfile(path + ending, copy + ending)
        return _connect_uri(copy, "mode=rw")


def copy_database(source: str, target: str) -> None:
    try:
        with (
            contextlib.closing(open_read_only(source)) as original,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy)
    except sqlite3.Error as error:
        raise StoreError(f"the database {source} cannot be copied: {error}") from error


def read_stamp(path: str) -> Stamp:
    """Size and time of a database and of its write-ahead log: one of them changes with every write."""
    return tuple(_read_size_and_time(path + ending) for ending in ("", "-wal"))


def is_fresh(stamp: Stamp) -> bool:
    """Whether the database was written just now. Then it may be written again with the same stamp."""
    return time.time_ns() - max(changed for _, changed in stamp) < _FRESH_NANOSECONDS


def _read_size_and_time(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _connect_uri(path: str, options: str) -> sqlite3.Connection:
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    uri = f"file:{name}?{options}"
    connection = sqlite3.connect(uri, _BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _create_private_file(path: str) -> bool:
    """Makes the file before SQLite does, so that others can never read it. Returns whether it is empty."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        return os.fstat(descriptor).st_size == 0
    finally:
        os.close(descriptor)


def _use_wal(connection: sqlite3.Connection, until: float) -> None:
    """Turns the write-ahead log on. SQLite does not wait here while others open the same new file, so we do."""
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _get_code(error) in _VAGUE or time.monotonic() >= until:
                raise
            time.sleep(0.002)


def _migrate(connection: sqlite3.Connection, schema: Schema) -> None:
    """Applies the steps that the file lacks, all in one transaction."""
    if _read_version(connection, schema) == len(schema.steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    for step in schema.steps[_read_version(connection, schema) :]:  # another process may have applied some meanwhile
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(schema.steps)}")
    connection.execute("COMMIT")


def _read_version(connection: sqlite3.Connection, schema: Schema) -> int:
    """The number of steps that the file has. DatabaseError if it has more than we know."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(schema.steps):
        raise sqlite3.DatabaseError(f"it was written by a newer handrail (step {version})")
    return version


def _get_code(error: BaseException | None) -> int:
    """SQLite's primary error code. An error that quotes bytes outside UTF-8 means a damaged schema."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _find_refusal(path: str, error: Exception) -> OSError | None:
    """The system's reason, if SQLite does not tell it: a scratch file beside the database fails for the same reason."""
    if _get_code(error) not in _VAGUE:
        return None
    scratch = f"{path}.{os.urandom(6).hex()}.scratch"
    try:
        with open(scratch, "xb", buffering=0) as file, contextlib.ExitStack() as left:
            left.callback(os.unlink, scratch)
            if file.write(bytes(_SCRATCH_BYTES)) < _SCRATCH_BYTES or _get_code(error) == sqlite3.SQLITE_FULL:
                return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    except OSError as reason:
        return OSError(reason.errno, reason.strerror, path)
    return None
