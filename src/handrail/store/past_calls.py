"""Reads the calls in a journal with what they were decided on. The journal may be in use; it is only looked at."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.event import ToolCallStart, decode_event
from handrail.store.journal import Broken, Decided
from handrail.store.migrations import JOURNAL

_BUSY_SECONDS = 10
_STARTS = """
SELECT seq, data, decided FROM event WHERE seq > ? AND kind = 'tool_call.start' ORDER BY seq LIMIT 500
"""


class PastCall(msgspec.Struct, frozen=True):
    """A call as it came in, and what it was decided on."""

    start: ToolCallStart
    decided: Decided


def past_calls(folder: str, since: datetime | None = None) -> Iterator[PastCall | Broken]:
    """The calls of a session, oldest first; of a broken one nobody knows when it was, so it always comes."""
    path = os.path.join(folder, "journal.db")
    try:
        with closing(_opened(path)) as connection:
            for seq, data, decided in _rows(connection):
                call = _read(seq, data, decided)
                if isinstance(call, Broken) or since is None or call.start.time >= since:
                    yield call
    except sqlite3.Error as error:
        raise StoreError(f"the journal {path} cannot be read: {error}") from error


def _opened(path: str) -> sqlite3.Connection:
    """Where nothing may be written, SQLite cannot make the files that readers share. A journal that nobody has left
    unfinished can then be read as a file that does not change."""
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


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[int, bytes, bytes | None]]:
    after = 0
    while rows := connection.execute(_STARTS, (after,)).fetchall():
        yield from rows
        after = rows[-1][0]


def _read(seq: int, data: bytes, decided: bytes | None) -> PastCall | Broken:
    try:
        start = decode_event(data)
        if isinstance(start, ToolCallStart):
            return PastCall(start, msgspec.json.decode(decided or b"", type=Decided))
        problem = "it is no call"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    return Broken(seq, "tool_call.start", problem)
