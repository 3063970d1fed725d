"""Reads the calls in a journal with what they were decided on. The journal may be in use; it is only looked at."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

import msgspec

from handrail.protocol.error import StoreError
from handrail.protocol.event import ToolCallStart, decode_event
from handrail.protocol.reading import from_json
from handrail.store.journal import Broken, Decided
from handrail.store.read_only import read_only

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
        with closing(read_only(path)) as connection:
            for seq, data, decided in _rows(connection):
                call = _read(seq, data, decided)
                if isinstance(call, Broken) or since is None or call.start.time >= since:
                    yield call
    except sqlite3.Error as error:
        raise StoreError(f"the journal {path} cannot be read: {error}") from error


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[int, bytes, bytes | None]]:
    after = 0
    while rows := connection.execute(_STARTS, (after,)).fetchall():
        yield from rows
        after = rows[-1][0]


def _read(seq: int, data: bytes, decided: bytes | None) -> PastCall | Broken:
    try:
        start = decode_event(data)
        if isinstance(start, ToolCallStart):
            return PastCall(start, from_json(decided or b"", Decided))
        problem = "it is no call"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    return Broken(seq, "tool_call.start", problem)
