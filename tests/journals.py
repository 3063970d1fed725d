"""Looks into the journals that a test left behind: every event of every session is as the exported schema says.

Everyday runs look at some of each journal, chosen by the test's name, and at the first of each kind; deep runs at all.
"""

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from handrail.protocol.events import decode_event
from handrail.store.database import open_read_only
from schemas import validate

_A_DAY = 10
_MOST_JOURNALS = 5
_MOST_ENTRIES = 100
"""Of a folder, in which state folders are looked for: a workspace with more is none."""


def check_journals(folder: Path, name: str, *, all_of_it: bool) -> int:
    """Validates what sessions in a test's folder wrote; how many events. ValidationError where one is not right."""
    journals = sorted(_journals(folder))
    chosen = journals if all_of_it else journals[:_MOST_JOURNALS]
    events = [event for path in chosen for event in _events(path, name, all_of_it)]
    for event in events:
        validate(event)
    return len(events)


def _journals(folder: Path) -> Iterator[Path]:
    """Those in the state folders that tests make: in their own folder, or one below."""
    for place in (folder, *_folders(folder), *(inner for one in _folders(folder) for inner in _folders(one))):
        with suppress(OSError):  # a folder that a test, or the kernel, closed to this user
            yield from (place / "workspaces").glob("*/*/journal.db")


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
            return [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _events(path: Path, name: str, all_of_it: bool) -> list[Any]:
    """Those that are looked at and can be read: what a test broke on purpose is not the runtime's."""
    try:
        with closing(open_read_only(str(path))) as connection:
            kinds = connection.execute("SELECT seq, kind FROM event ORDER BY seq").fetchall()
            chosen = [seq for seq, _ in kinds] if all_of_it or len(kinds) <= _A_DAY else _share(kinds, name)
            query = "SELECT seq, kind, data FROM event WHERE seq = ?"
            rows = [connection.execute(query, (seq,)).fetchone() for seq in chosen]
    except (sqlite3.Error, OSError):
        return []
    whole = [_complete(path.parent.name, *row) for row in rows]
    return [json.loads(data) for data in whole if _can_be_read(data)]


def _complete(session: str, seq: int, kind: str, data: Any) -> Any:
    """A row has the fields from the time on. Its columns know the others."""
    if not isinstance(data, bytes) or not data.startswith(b'{"time":'):
        return data
    head = {"kind": kind, "eventId": f"{session}:{seq}", "seq": seq, "sessionId": session}
    return json.dumps(head).encode()[:-1] + b"," + data[1:]


def _share(kinds: list[tuple[int, str]], name: str) -> list[int]:
    first = {kind: seq for seq, kind in reversed(kinds)}
    more = random.Random(name).sample([seq for seq, _ in kinds], _A_DAY)
    return sorted({*first.values(), *more})


def _can_be_read(data: Any) -> bool:
    try:
        decode_event(data)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return False
    return True
