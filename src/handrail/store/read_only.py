"""Opens a journal that others may be at work on, to look at it and no more."""

import os
import sqlite3

from handrail.store.migrations import JOURNAL

_BUSY_SECONDS = 10


def read_only(path: str) -> sqlite3.Connection:
    """A connection that only looks.

    Where nothing may be written, SQLite cannot make the files that readers share. A journal that nobody has left
    unfinished can then be read as a file that does not change.
    """
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        return _checked(f"file:{name}?mode=ro")
    except sqlite3.OperationalError:
        if _has_content(f"{path}-wal"):
            raise
        return _checked(f"file:{name}?immutable=1")


def _checked(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, _BUSY_SECONDS, isolation_level=None, uri=True)
    try:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(JOURNAL):
            raise sqlite3.DatabaseError(f"it was written by a newer handrail (step {version})")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
