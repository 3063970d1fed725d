"""Reads the calls in a journal with what they were decided on. The journal may be in use; it is only looked at."""

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

import msgspec

from handrail.protocol.event import ToolCallStart, decode_event
from handrail.protocol.reading import UNREADABLE, decode_json
from handrail.store.journal import BrokenEvent, CallContext
from handrail.store.read_only import ReadOnlyDatabase

_STARTS = """
SELECT seq, data, decided FROM event WHERE seq > ? AND kind = 'tool_call.start' ORDER BY seq LIMIT 500
"""


class PastCall(msgspec.Struct, frozen=True):
    """A call as it came in, and what it was decided on."""

    start: ToolCallStart
    decided: CallContext


def list_past_calls(folder: str, since: datetime | None = None) -> Iterator[PastCall | BrokenEvent]:
    """The calls of a session, oldest first; of a broken one nobody knows when it was, so it always comes."""
    with closing(ReadOnlyDatabase(os.path.join(folder, "journal.db"))) as database:
        for row in database.pages(_STARTS, 0):
            call = _read(*row)
            if isinstance(call, BrokenEvent) or since is None or call.start.time >= since:
                yield call


def _read(seq: int, data: bytes, decided: bytes | None) -> PastCall | BrokenEvent:
    try:
        start = decode_event(data)
        if isinstance(start, ToolCallStart):
            return PastCall(start, decode_json(decided or b"", CallContext))
        problem = "it is no call"
    except UNREADABLE as error:
        problem = str(error)
    return BrokenEvent(seq, "tool_call.start", problem)
