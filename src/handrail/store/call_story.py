"""What led to a call, and what was decided about it, as its session's journal tells. It is only looked at."""

import os
from contextlib import closing
from datetime import datetime

import msgspec

from handrail.protocol.event import Event, ToolCallPermissionGranted, ToolCallStart, User, decode_event
from handrail.protocol.permission import Answer, PermissionRequest
from handrail.protocol.reading import UNREADABLE, decode_json
from handrail.store.journal import CallContext
from handrail.store.read_only import ReadOnlyDatabase

_OF_CALL = "SELECT seq, data, decided FROM event WHERE call_id = ? AND kind IN (?, ?) ORDER BY seq"
_SAID_BEFORE = "SELECT data FROM event WHERE kind = 'user' AND seq < ? ORDER BY seq DESC LIMIT 1"


class CallStory(msgspec.Struct, frozen=True, kw_only=True):
    """A call from what led to it up to the yes it got; None where the journal does not tell."""

    start: ToolCallStart
    decided: CallContext | None = None
    asked: PermissionRequest | None = None
    answer: Answer | None = None
    answered: datetime | None = None
    prompt: User | None = None
    """What the person said last before it."""


def read_call_story(folder: str, call_id: str) -> CallStory | None:
    """The story of a call of the session in a folder; None where its journal has no such call."""
    path = os.path.join(folder, "journal.db")
    if not os.path.exists(path):
        return None
    with closing(ReadOnlyDatabase(path)) as database:
        rows = database.rows(_OF_CALL, (call_id, "tool_call.start", "tool_call.permission-granted"))
        said = database.row(_SAID_BEFORE, (rows[0][0],)) if rows else None
    events = [_event(data) for _, data, _ in rows]
    start = next((one for one in events if isinstance(one, ToolCallStart)), None)
    if start is None:
        return None
    granted = next((one for one in events if isinstance(one, ToolCallPermissionGranted)), None)
    prompt = _event(said[0]) if said else None
    return CallStory(
        start=start,
        decided=_decided(rows[0][2]),
        asked=granted.permission_request if granted else None,
        answer=granted.answer if granted else None,
        answered=granted.time if granted else None,
        prompt=prompt if isinstance(prompt, User) else None,
    )


def _event(data: bytes) -> Event | None:
    try:
        return decode_event(data)
    except UNREADABLE:
        return None


def _decided(data: bytes | None) -> CallContext | None:
    try:
        return decode_json(data or b"", CallContext)
    except UNREADABLE:
        return None
