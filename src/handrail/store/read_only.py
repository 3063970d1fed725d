"""Opens a journal that others may be at work on, to look at it and no more."""

import os
import shutil
import sqlite3
import tempfile

_BUSY_SECONDS = 10


def read_only(path: str) -> sqlite3.Connection:
    """A connection that only looks.

    Where nothing may be written, SQLite cannot make the files that readers share. A journal that nobody has left
    unfinished can then be read as a file that does not change; of an unfinished one a copy is read.
    """
    try:
        return _checked(path, "mode=ro")
    except sqlite3.OperationalError:
        if os.access(os.path.dirname(path), os.W_OK) or not os.access(path, os.R_OK):
            raise
        if not _has_content(f"{path}-wal"):
            return _checked(path, "immutable=1")
    with tempfile.TemporaryDirectory(prefix="handrail-journal-") as folder:
        copy = os.path.join(folder, "journal.db")
        for ending in ("", "-wal"):
            shutil.copyfile(path + ending, copy + ending)
        return _checked(copy, "mode=rw")


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


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
