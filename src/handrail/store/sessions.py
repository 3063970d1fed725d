"""Reads the sessions of a state folder, and removes old ones."""

import fcntl
import os
import shutil
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from typing import Literal

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.events import Event, ToolCallPermissionGranted, ToolCallStart, User, decode_event
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.protocol.wire import UNREADABLE, decode_json
from handrail.store.audit import AuditChain, AuditRecord, decode_record, read_audit_lines
from handrail.store.blobs import Blobs
from handrail.store.database import Database, Durability, ReadOnlyDatabase, read_stamp
from handrail.store.journal import BrokenEvent, CallContext, SessionJournal
from handrail.store.runner import is_in_use
from handrail.store.state_dir import StateFolder, is_locked, open_private, resolve_state_folder

# § [store.archive] Reads the journals of sessions, and the last records of the audit, without being at work on any
# § session.


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session that has a journal."""

    id: str
    events: int
    last: datetime | None
    problem: str | None = None
    """Why its journal cannot be read."""


@contextmanager
def open_journal(folder: str, durability: Durability | None = None) -> Generator[SessionJournal]:
    """The journal in the folder of a session, which must have one: to look at it, or with a durability to append."""
    path = os.path.join(folder, "journal.db")
    database = ReadOnlyDatabase(path) if durability is None else Database(path, durability)
    try:
        yield SessionJournal(database, os.path.basename(folder), "")
    finally:
        database.close()


def list_stored_sessions(state: StateFolder, workspace: str) -> list[SessionInfo]:
    """The sessions of a workspace, the one with the latest event first; last those that cannot be read."""
    found = [_kept(folder) for folder in state.sessions(workspace)]
    return sorted(found, key=lambda kept: kept.last.timestamp() if kept.last else 0, reverse=True)


def read_last_records(state: StateFolder, limit: int) -> list[AuditRecord | None]:
    """The last records of the audit, oldest first; None for a line that is not what was sealed."""
    whole = [line for line in deque(read_audit_lines(state.audit), maxlen=limit) if line.endswith(b"\n")]
    return [found[0] if (found := decode_record(line)) else None for line in whole]


def _kept(folder: str) -> SessionInfo:
    session = os.path.basename(folder)
    try:
        with open_journal(folder) as journal:
            count = journal.last_seq()
            event = journal.event(count) if count else None
    except StoreError as error:
        return SessionInfo(session, 0, None, str(error))
    return SessionInfo(session, count, event.time if isinstance(event, Event) else None)


# § [store.past_calls] Reads the calls in a journal with what they were decided on. The journal may be in use; it is
# § only looked at.

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


# § [store.call_story] What led to a call, and what was decided about it, as its session's journal tells. It is only
# § looked at.

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


# § [store.retention] How long the state folder keeps sessions, and what is removed or archived with them.

Use = Literal["running", "background", "waiting", "unreadable", "idle"]
_DAY = 86_400
_YOUNG_SECONDS = 60
"""Seconds in which a stored output may be of a call that is not written down yet."""
_AWAY = ".removed-"
_WAITS = "SELECT 1 FROM call WHERE state IN ('parked', 'ready', 'claimed') LIMIT 1"
_FINISHED = "SELECT count(*) FROM event WHERE kind IN ('tool_call.end', 'tool_call.error')"


def read_session_use(folder: str) -> Use:
    """What keeps a session from being removed."""
    processes = os.path.join(folder, "processes")
    if is_in_use(folder):
        return "running"
    if os.path.isdir(processes) and any(is_locked(os.path.join(processes, name)) for name in os.listdir(processes)):
        return "background"
    try:
        with open_journal(folder) as journal:
            return "waiting" if journal.database.row(_WAITS) else "idle"
    except StoreError:
        return "unreadable"


def read_last_use(folder: str) -> float:
    """When something was last written down in a session, in seconds; 0 where nothing ever was."""
    stamp = read_stamp(os.path.join(folder, "journal.db"))
    return max((changed for size, changed in stamp if size), default=0) / 1e9


def count_bytes(path: str) -> int:
    """How much a file takes, or all that is in a folder."""
    total = os.path.getsize(path) if os.path.isfile(path) else 0
    for folder, _, names in os.walk(path):
        with suppress(OSError):  # it is gone meanwhile
            total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return total


def remove_session(folder: str, uses: tuple[Use, ...]) -> Use:
    """Removes a session if its use is one of these; its use.

    The folder is renamed first: if this process is killed, the next sweep removes the rest, and a process that opened
    the session just before is detected. The audit still names its calls, so their number is recorded.
    """
    if (use := read_session_use(folder)) in uses:
        calls = 1 << 62
        with suppress(StoreError), open_journal(folder) as journal:
            calls = journal.database.rows(_FINISHED)[0][0]
        with open(_notes(resolve_state_folder(folder)), "a", encoding="ascii", opener=open_private) as notes:
            notes.write(f"{os.path.basename(folder)} {calls}\n")
        away = os.path.join(os.path.dirname(folder), f"{_AWAY}{os.urandom(8).hex()}")
        os.rename(folder, away)
        if is_in_use(away):
            os.rename(away, folder)
            return "running"
        shutil.rmtree(away, ignore_errors=True)
    return use


def count_removed_calls(state: StateFolder) -> Counter[str]:
    """How many calls of removed sessions the audit may have, by the ids of the sessions."""
    found: Counter[str] = Counter()
    with suppress(FileNotFoundError), open(_notes(state), encoding="ascii", errors="replace") as notes:
        for session, _, calls in (line.rstrip().partition(" ") for line in notes):
            found[session] += int(calls) if calls.isdigit() else 0
    return found


def remove_outputs(state: StateFolder) -> None:
    """Removes stored outputs that no session names. A session that cannot be read may name any."""
    used: set[str] = set()
    with suppress(StoreError):
        for folder in state.sessions():
            with open_journal(folder) as journal:
                rows = journal.database.rows("SELECT blob FROM output")
                used |= {str(row[0]).rpartition(":")[2].partition(".")[0] for row in rows}
        Blobs(state.blobs()).sweep(used, _YOUNG_SECONDS)


def sweep(state: StateFolder, days: int) -> None:
    """Removes sessions that were not used for so long, and archives older audit records. A sweep counts at most two
    days since the last one, so a clock that jumps ahead removes nothing. What fails is left to the next sweep."""
    with suppress(OSError, StoreError), open(state.sweep_marker, "rb") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of two who come at once, one sweeps
        swept = os.fstat(marker.fileno()).st_mtime
        if not state.is_swept():
            os.utime(state.sweep_marker)
            _sweep(state, min(time.time(), swept + 2 * _DAY) - days * _DAY)


def _sweep(state: StateFolder, before: float) -> None:
    old = [folder for folder in state.sessions() if read_last_use(folder) < before]
    removed = [folder for folder in old if remove_session(folder, ("idle",)) == "idle"]
    left = [os.path.join(home, name) for home in state.homes() for name in os.listdir(home) if name.startswith(_AWAY)]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    if removed or left:
        remove_outputs(state)
    with closing(AuditChain(state.audit)) as chain:
        chain.archive(datetime.fromtimestamp(before, UTC))


def _notes(state: StateFolder) -> str:
    return os.path.join(state.path, "removed-sessions")
