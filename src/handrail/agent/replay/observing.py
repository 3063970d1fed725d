"""What a session knew of files: how each was when it first met it, and which became others without it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from handrail.protocol.changes import Change as Changed
from handrail.protocol.events import ChangeEvent, Event, ToolCallEnd
from handrail.store.journal import BrokenEvent


class FileObservations(msgspec.Struct, frozen=True):
    """By the hashes in its reads and its change sets."""

    first: dict[str, str | None]
    """Each file, and its hash before the session changed it; None where it was not there."""
    meanwhile: tuple[str, ...]
    """Files that somebody else changed while the session was at work."""
    begun: datetime
    """When it first met one."""


def collect_observations(events: Iterable[Event | BrokenEvent]) -> FileObservations:
    """Goes through the events of a session. Files outside the workspace are not among them."""
    first: dict[str, str | None] = {}
    now: dict[str, str | None] = {}
    meanwhile: set[str] = set()
    begun = datetime.max.replace(tzinfo=UTC)
    for time, path, before, after in _met(events):
        begun = min(begun, time)
        if path not in first:
            first[path] = before
        elif now[path] != before:
            meanwhile.add(path)
        now[path] = after
    return FileObservations(first, tuple(sorted(meanwhile)), begun)


def _met(events: Iterable[Event | BrokenEvent]) -> Iterable[tuple[datetime, str, str | None, str | None]]:
    for event in events:
        if isinstance(event, ChangeEvent):
            changes = (one for one in event.change.changes if _is_file(one))
            yield from ((event.time, one.path, one.before, one.after) for one in changes)
        elif isinstance(event, ToolCallEnd) and event.tool_call_name == "read":
            data: dict[str, Any] = event.result.data or {}
            if _is_inside(path := str(data.get("path", "/"))) and isinstance(found := data.get("hash"), str):
                yield event.time, path, found, found


def _is_file(one: Changed) -> bool:
    return one.kind == "file" and one.replaces is None and _is_inside(one.path)


def _is_inside(path: str) -> bool:
    """Whether it is a path in the workspace: neither one in another root nor kept output."""
    return not path.startswith(("/", "@"))
