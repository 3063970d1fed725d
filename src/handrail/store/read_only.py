"""Reads a database that others may be at work on: nothing in it changes, and nothing is left beside it."""

import os
import shutil
import sqlite3

from handrail.protocol.error import StoreError
from handrail.store.database import Database, Durability, Row
from handrail.store.locked_folder import make_temporary_folder
from handrail.store.migrations import JOURNAL, read_schema_version

_BUSY_SECONDS = 10

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
