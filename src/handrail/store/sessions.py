"""The stored sessions of a state folder, for programs that do not open them.

Journals are opened read-only, also while another process writes to them.
"""

import fcntl
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from typing import Literal

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.events import Event, ToolCallPermissionGranted, ToolCallStart, User
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.store.approvals import has_parked_calls
from handrail.store.audit import AuditChain
from handrail.store.blobs import Blobs
from handrail.store.database import Database, Durability, ReadOnlyDatabase, read_stamp
from handrail.store.journal import BrokenEvent, CallContext, PastCall, SessionJournal
from handrail.store.runner import is_in_use
from handrail.store.state_dir import StateFolder, find_state_folder, is_locked, open_private, remove_folder
from handrail.store.transcript import Messages, list_outputs

Use = Literal["running", "background", "waiting", "unreadable", "idle"]
"""Why a session must not be removed. An idle one may be."""
_DAY = 86_400
_YOUNG_SECONDS = 60
"""Seconds in which a stored output may belong to a call that is not stored yet."""
_REMOVED = ".removed-"


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    events: int
    last: datetime | None
    problem: str | None = None
    """Why its journal cannot be read."""


class CallStory(msgspec.Struct, frozen=True, kw_only=True):
    """A call, the prompt before it, and the approval it got. None for parts that the journal does not have."""

    start: ToolCallStart
    decided: CallContext | None = None
    asked: PermissionRequest | None = None
    answer: Answer | None = None
    answered: datetime | None = None
    prompt: User | None = None


@contextmanager
def open_journal(folder: str, durability: Durability | None = None) -> Generator[SessionJournal]:
    """Opens the journal of a session folder for reading. With a durability, for appending too."""
    path = os.path.join(folder, "journal.db")
    database = ReadOnlyDatabase(path) if durability is None else Database(path, durability)
    try:
        yield SessionJournal(database, os.path.basename(folder), "")
    finally:
        database.close()


def build_export_path(session_id: str, event: Event, kind: str = "events") -> str:
    """The file that an event is exported to: one per session and day."""
    return f"{session_id}/{kind}-{event.time:%Y%m%d}.jsonl"


@contextmanager
def open_messages(folder: str) -> Generator[Messages]:
    with open_journal(folder) as journal:
        yield Messages(journal)


def list_stored_sessions(state: StateFolder, workspace: str) -> list[SessionInfo]:
    """The sessions of a workspace, the one with the latest event first. Unreadable ones come last."""
    infos = [_read_info(folder) for folder in state.sessions(workspace)]
    return sorted(infos, key=lambda info: info.last.timestamp() if info.last else 0, reverse=True)


def _read_info(folder: str) -> SessionInfo:
    session = os.path.basename(folder)
    try:
        with open_journal(folder) as journal:
            count = journal.last_seq()
            event = journal.event(count) if count else None
    except StoreError as error:
        return SessionInfo(session, 0, None, str(error))
    return SessionInfo(session, count, event.time if isinstance(event, Event) else None)


def list_past_calls(folder: str, since: datetime | None = None) -> Iterator[PastCall | BrokenEvent]:
    """The calls of a session, oldest first. A broken one has no time and is always listed."""
    with open_journal(folder) as journal:
        for call in journal.past_calls():
            if isinstance(call, BrokenEvent) or since is None or call.start.time >= since:
                yield call


def read_call_story(folder: str, call_id: str) -> CallStory | None:
    """The story of a call of a session folder. None if its journal has no such call."""
    if not os.path.exists(os.path.join(folder, "journal.db")):
        return None
    with open_journal(folder) as journal:
        events = journal.events_of(call_id, "tool_call.start", "tool_call.permission-granted")
        start = next((event for event in events if isinstance(event, ToolCallStart)), None)
        if start is None:
            return None
        prompt = journal.last_of("user", before=events[0].seq)
        decided = journal.context(events[0].seq)
    granted = next((event for event in events if isinstance(event, ToolCallPermissionGranted)), None)
    return CallStory(
        start=start,
        decided=decided,
        asked=granted.permission_request if granted else None,
        answer=granted.answer if granted else None,
        answered=granted.time if granted else None,
        prompt=prompt if isinstance(prompt, User) else None,
    )


def read_session_use(folder: str) -> Use:
    processes = os.path.join(folder, "processes")
    if is_in_use(folder):
        return "running"
    if os.path.isdir(processes) and any(is_locked(os.path.join(processes, name)) for name in os.listdir(processes)):
        return "background"
    try:
        with open_journal(folder) as journal:
            return "waiting" if has_parked_calls(journal.database) else "idle"
    except StoreError:
        return "unreadable"


def read_last_use(folder: str) -> float:
    """The time of the last write to a session in seconds. 0 if there was none."""
    stamp = read_stamp(os.path.join(folder, "journal.db"))
    return max((changed for size, changed in stamp if size), default=0) / 1e9


def count_bytes(path: str) -> int:
    total = os.path.getsize(path) if os.path.isfile(path) else 0
    for folder, _, names in os.walk(path):
        with suppress(OSError):  # it was removed meanwhile
            total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return total


# Retention


def sweep(state: StateFolder, days: int) -> None:
    """Removes sessions that were not used for some days, and archives audit records of before.

    A sweep counts at most two days since the last one, so a clock that jumps ahead removes nothing. Errors are left to
    the next sweep.
    """
    with suppress(OSError, StoreError), open(state.sweep_marker, "rb") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of two processes, one sweeps
        swept = os.fstat(marker.fileno()).st_mtime
        if not state.is_swept():
            os.utime(state.sweep_marker)
            _sweep_before(state, min(time.time(), swept + 2 * _DAY) - days * _DAY)


def _sweep_before(state: StateFolder, before: float) -> None:
    old = [folder for folder in state.sessions() if read_last_use(folder) < before]
    removed = [folder for folder in old if remove_session(folder, ("idle",)) == "idle"]
    homes = [(home, name) for home in state.homes() for name in os.listdir(home)]
    left = [os.path.join(home, name) for home, name in homes if name.startswith(_REMOVED)]
    for folder in left:
        remove_folder(folder)
    if removed or left:
        remove_outputs(state)
    with closing(AuditChain(state.audit)) as chain:
        chain.archive(datetime.fromtimestamp(before, UTC))


def remove_session(folder: str, uses: tuple[Use, ...]) -> Use:
    """Removes a session if its use is one of these. Returns its use.

    The folder is renamed first. If this process is killed, the next sweep removes the rest. A process that opened the
    session just before is detected. The audit still names its calls, so their number is recorded.
    """
    if (use := read_session_use(folder)) in uses:
        calls = 1 << 62
        with suppress(StoreError), open_journal(folder) as journal:
            calls = journal.count_finished()
        with open(
            _build_removals_path(find_state_folder(folder)), "a", encoding="ascii", opener=open_private
        ) as removals:
            removals.write(f"{os.path.basename(folder)} {calls}\n")
        away = os.path.join(os.path.dirname(folder), f"{_REMOVED}{os.urandom(8).hex()}")
        os.rename(folder, away)
        if is_in_use(away):
            os.rename(away, folder)
            return "running"
        remove_folder(away)
    return use


def count_removed_calls(state: StateFolder) -> Counter[str]:
    """The number of calls of removed sessions that the audit may have, by session id."""
    counts: Counter[str] = Counter()
    with suppress(FileNotFoundError), open(_build_removals_path(state), encoding="ascii", errors="replace") as removals:
        for session, _, calls in (line.rstrip().partition(" ") for line in removals):
            counts[session] += int(calls) if calls.isdigit() else 0
    return counts


def remove_outputs(state: StateFolder) -> None:
    """Removes stored outputs that no session names. Does nothing if a journal cannot be read: it may name any."""
    used: set[str] = set()
    with suppress(StoreError):
        for folder in state.sessions():
            with open_journal(folder) as journal:
                used |= {blob.rpartition(":")[2].partition(".")[0] for blob in list_outputs(journal.database)}
        Blobs(state.blobs()).sweep(used, _YOUNG_SECONDS)


def _build_removals_path(state: StateFolder) -> str:
    return os.path.join(state.path, "removed-sessions")
