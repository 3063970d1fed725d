"""A state folder for programs that open no session: its sessions, inbox, audit, damage.

Journals are opened read-only, also while another process writes to them.
"""

import fcntl
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from handrail.kernel.files import is_locked
from handrail.protocol.errors import HandrailError, StoreError, UsageError, list_frames
from handrail.protocol.events import BrokenEvent, Event, Notice, ToolCallPermissionGranted, ToolCallStart, User
from handrail.protocol.permissions import InboxRequest
from handrail.protocol.receipt import ChainedRecord
from handrail.protocol.records import (
    CallStory,
    Memory,
    SessionInfo,
    SessionState,
    SessionUsage,
)
from handrail.settings import resolve_state_folder
from handrail.settings.trust import Trust, TrustFile, build_trust_path, read_trust
from handrail.store.access_tokens import OWNER, AccessTokens
from handrail.store.audit import (
    AuditChain,
    FinishedCalls,
    Verification,
    build_outcome,
    list_archives,
    read_last_records,
    verify_chain,
)
from handrail.store.blobs import Blobs
from handrail.store.change_log import ChangeLog
from handrail.store.conversation_state import list_outputs
from handrail.store.database import CHANGES, Database, Durability, ReadOnlyDatabase, read_stamp
from handrail.store.grants import load_variables
from handrail.store.inbox import Inbox, check_requests
from handrail.store.journal import PastCall, SessionJournal, list_calls
from handrail.store.memories import Memories
from handrail.store.runner import Lease, has_lease, is_in_use
from handrail.store.session_summary import SessionSummaries, SessionSummary, update_summary
from handrail.store.state_dir import (
    StateFolder,
    make_id,
    open_folder,
    open_private,
    read_workspace_path,
    remove_folder,
    save_workspace_path,
    write_private,
    write_report,
)
from handrail.store.transcript import Messages

# What programs that list sessions take from here.
__all__ = ["OWNER", "Inbox", "SessionJournal", "SessionSummaries", "SessionSummary", "has_lease", "update_summary"]

_DAY = 86_400
_YOUNG_SECONDS = 60
"""Seconds in which a stored output may belong to a call that is not stored yet."""
_REMOVED, _DAMAGED = ".removed-", ".damaged"
_MAX_NAMESAKES = 100


class StoredConversation(msgspec.Struct, frozen=True):
    """A session that has messages."""

    id: str
    prompt: str
    last: datetime | None


def report_defect(error: BaseException) -> str:
    """Writes a report to the user's state folder. Returns the kind and place of the defect, and the report's path."""
    where = (list_frames(error) or ["an unknown place"])[-1]
    try:
        written = f"Report: {write_report(error, StateFolder(resolve_state_folder(os.environ)).crashes())}"
    except (HandrailError, OSError) as reason:
        written = f"No report could be written: {reason}"
    return f"({type(error).__name__} at {where}). {written}"


class Damage(msgspec.Struct, frozen=True):
    """A database that cannot be read, or not completely."""

    kind: Literal["journal", "change log"]
    path: str
    problem: str

    @property
    def folder(self) -> str:
        """Of the session, or of the change log."""
        return os.path.dirname(self.path)

    @property
    def new_path(self) -> str:
        """The path to move it to. A session then starts again under its name."""
        return f"{self.path}{_DAMAGED}"


class StateSizes(NamedTuple):
    """The bytes of a state folder by their use."""

    sessions: int
    undo: int
    outputs: int
    audit: int


@contextmanager
def open_journal(folder: str, durability: Durability | None = None) -> Generator[SessionJournal]:
    """Opens the journal of a session folder for reading. With a durability, for appending too."""
    path = os.path.join(folder, "journal.db")
    database = ReadOnlyDatabase(path) if durability is None else Database(path, durability)
    try:
        yield SessionJournal(database, os.path.basename(folder), "")
    finally:
        database.close()


def list_past_calls(folder: str, since: datetime | None = None) -> Iterator[PastCall | BrokenEvent]:
    """The calls of a session, oldest first. A broken one has no time and is always listed."""
    with open_journal(folder) as journal:
        for call in journal.list_past_calls():
            if isinstance(call, BrokenEvent) or since is None or call.start.time >= since:
                yield call


def find_workspace(folder: str) -> str | None:
    """The path of the workspace of a session folder, if it is recorded."""
    return read_workspace_path(os.path.dirname(folder))


def add_notice(folder: str, text: str) -> None:
    """Records in the journal of a session folder what a person did."""
    with open_journal(folder, "crash") as journal:
        journal.append((Notice, {"text": text}))


def build_export_path(session_id: str, event: Event, kind: str = "handrail") -> str:
    """The file that an event is exported to: one per session and day."""
    return f"{session_id}/{kind}-{event.time:%Y%m%d}.jsonl"


def get_export_kind(dialect: str | None) -> str:
    """The start of the name of exported files. DevMinds reads `events-…`, and no file has lines of two forms."""
    return "handrail" if dialect is None else "events" if dialect == "devminds" else dialect


def make_session_id() -> str:
    return make_id("s")


class StoredState(StateFolder):
    __slots__ = ()

    # Sessions

    def list_sessions(self, workspace: str) -> list[SessionInfo]:
        """The sessions of a workspace, the one with the latest event first. Unreadable ones come last."""
        infos = [_read_info(folder) for folder in self.sessions(workspace)]
        return sorted(infos, key=lambda info: info.last.timestamp() if info.last else 0, reverse=True)

    def list_conversations(self, workspace: str) -> Iterator[StoredConversation]:
        """The sessions of a workspace that have messages, the latest first. Unreadable ones are left out."""
        for info in self.list_sessions(workspace):
            with suppress(StoreError), open_journal(os.path.join(self.home(workspace), info.id)) as journal:
                messages = Messages(journal)
                if messages.has_any():
                    yield StoredConversation(info.id, messages.first_prompt() or "", info.last)

    def find_session(self, workspace: str, session_id: str) -> str | None:
        """The folder of a session. None if it has no journal."""
        folder = os.path.join(self.home(workspace), session_id)
        return folder if folder in self.sessions(workspace) else None

    def find_last_model(self, workspace: str, session_id: str) -> str | None:
        with self._open_session(workspace, session_id) as journal:
            return Messages(journal).last_model() if journal is not None else None

    def count_events(self, workspace: str, session_id: str) -> int:
        """The number of the last event of a session. 0 for a new one."""
        with self._open_session(workspace, session_id) as journal:
            return journal.last_seq() if journal is not None else 0

    def find_call_story(self, workspace: str, session_id: str, call_id: str) -> CallStory | None:
        """The story of a call. None if no journal has it any more."""
        with self._open_session(workspace, session_id) as journal:
            return _read_story(journal, call_id) if journal is not None else None

    def _open_session(self, workspace: str, session_id: str) -> AbstractContextManager[SessionJournal | None]:
        folder = self.find_session(workspace, session_id)
        return nullcontext() if folder is None else open_journal(folder)

    def list_workspaces(self) -> list[str]:
        """The recorded paths of the workspaces that have sessions."""
        homes = {os.path.dirname(folder) for folder in self.sessions()}
        return sorted(path for home in homes if (path := read_workspace_path(home)) is not None)

    def save_workspace(self, workspace: str) -> None:
        """Records the path of a workspace, so that its sessions are listed with it."""
        save_workspace_path(self.home(workspace), workspace)

    def claim_session(self, workspace: str, name: str) -> tuple[str, Lease]:
        """Claims a session that no process works in: `name`, or else `name-2` and so on. Returns its id and lease.

        A client finds its grants and parked calls again when it restarts, and two of its windows do not share them.
        """
        for number in range(1, _MAX_NAMESAKES + 1):
            session_id = name if number == 1 else f"{name}-{number}"
            with suppress(UsageError):
                return session_id, Lease(self.session(workspace, session_id), session_id).__enter__()
        raise UsageError(
            f"{_MAX_NAMESAKES} sessions named {name} are running in {workspace}; name another one with --session"
        )

    # Inbox

    def open_inbox(self, workspace: str | None) -> Inbox:
        """The requests and questions of a workspace, or of all."""
        return Inbox(self, workspace)

    def load_variables(self, waiting: InboxRequest) -> dict[str, str] | None:
        """The environment variables of the commands of a request, if they were saved and not changed."""
        return None if waiting.environment is None else load_variables(waiting.folder, waiting.environment)

    # Audit

    def list_audit_records(self, limit: int) -> list[ChainedRecord | None]:
        """The last records of the audit, oldest first. None for a changed line."""
        return read_last_records(self.audit, limit)

    def verify(self) -> Verification:
        """Compares the audit chain with the journals. Every finished call must be in it with the same result."""
        calls, unread = self._list_finished()
        return verify_chain(self.audit, calls, unread)

    def verify_twice(self) -> Verification:
        """Does the same while sessions run. A call that just ended has its result before its record, so a problem
        counts if it is found twice."""
        first = self.verify()
        if first.intact:
            return first
        again = self.verify()
        problems = tuple(problem for problem in again.problems if problem in first.problems)
        return msgspec.structs.replace(again, problems=problems)

    def _list_finished(self) -> tuple[FinishedCalls, tuple[str, ...]]:
        """The finished calls of all journals, and why some journals cannot be read."""
        calls = FinishedCalls({}, set(), self._count_removed_calls())
        unread: dict[str, str] = {}
        for folder in self.sessions():
            session = os.path.basename(folder)
            try:
                with open_journal(folder) as journal:
                    for call, result in journal.list_finished():
                        calls.outcomes.setdefault((session, call), []).append(build_outcome(result))
            except StoreError as error:
                unread[session] = f"The calls of session {session} could not be checked: {error}"
        restarted = {os.path.basename(folder) for folder in self.sessions() if _has_restarted(folder)}
        calls.sessions.update({session for session, _ in calls.outcomes} - unread.keys() - restarted)
        return calls, tuple(unread.values())

    def find_damage(self) -> Iterator[Damage]:
        """Reads every page and row. Yields the damaged journals and change logs."""
        for folder in self.sessions():
            if (problem := _check_journal(folder)) is not None:
                yield Damage("journal", os.path.join(folder, "journal.db"), problem)
        for folder in self.change_logs():
            path = os.path.join(folder, "changes.db")
            try:
                with closing(ChangeLog(ReadOnlyDatabase(path, CHANGES))) as log:
                    log.check()
            except StoreError as error:
                yield Damage("change log", path, error.problem)

    # Notes of models, and trust in projects

    def list_memories(self, workspace: str) -> tuple[Memory, ...]:
        """The notes about a workspace, the last changed at the end."""
        return Memories(self.memories(workspace)).list_notes()

    def remove_memory(self, workspace: str, note_id: str) -> None:
        memories = Memories(self.memories(workspace))
        with memories.lock():
            memories.remove(note_id)

    def open_tokens(self) -> AccessTokens:
        """The named tokens of `handrail serve`."""
        return AccessTokens(os.path.join(self.path, "tokens"))

    def list_trusted_projects(self) -> dict[str, Trust]:
        return read_trust(self.path)

    def give_trust(self, workspace: str, digest: str, servers: str = "", tools: str = "") -> Trust:
        """Trusts a project as long as its settings file, `.mcp.json` and tool files have these SHA-256 digests."""
        trust = Trust(digest, datetime.now(UTC), servers, tools)
        with self._update_trust() as projects:
            projects[workspace] = trust
        return trust

    def revoke_trust(self, workspace: str) -> bool:
        """Ends the trust in a project. Returns whether it was trusted."""
        with self._update_trust() as projects:
            return projects.pop(workspace, None) is not None

    @contextmanager
    def _update_trust(self) -> Generator[dict[str, Trust]]:
        """Locks all trust, and writes what the caller changed."""
        self.make()
        with open_folder(self.path) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            projects, path = read_trust(self.path), build_trust_path(self.path)
            before = dict(projects)
            yield projects
            if projects == before:
                return
            data = msgspec.json.format(msgspec.json.encode(TrustFile(projects=projects)), indent=1)
            try:
                write_private(path, data, ".new")
            except OSError as error:
                raise StoreError(f"the record of trust {path} cannot be written: {error.strerror}") from error

    # Size and retention

    def measure(self) -> StateSizes:
        return StateSizes(
            sessions=sum(map(_count_bytes, self.sessions())),
            undo=sum(_count_bytes(os.path.join(home, ".changes")) for home in self.homes()),
            outputs=_count_bytes(os.path.join(self.path, "blobs")),
            audit=sum(map(_count_bytes, (self.audit, *list_archives(self.audit)))),
        )

    def find_oldest_use(self) -> datetime:
        """The last use of the session that was not used for the longest time."""
        return datetime.fromtimestamp(min(map(_read_last_use, self.sessions()), default=0), UTC)

    def list_usage(self, folders: list[str]) -> list[SessionUsage]:
        return [
            SessionUsage(
                folder=folder,
                workspace=find_workspace(folder),
                state=_read_state(folder),
                bytes=_count_bytes(folder),
                last=datetime.fromtimestamp(_read_last_use(folder), UTC),
            )
            for folder in folders
        ]

    def sweep(self, days: int) -> None:
        """Removes sessions that were not used for some days, and archives audit records of before.

        A sweep counts at most two days since the last one, so a clock that jumps ahead removes nothing. Errors are left
        to the next sweep.
        """
        with suppress(OSError, StoreError), open(self.sweep_marker, "rb") as marker:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of two processes, one sweeps
            swept = os.fstat(marker.fileno()).st_mtime
            if not self.is_swept():
                os.utime(self.sweep_marker)
                self._sweep_before(min(time.time(), swept + 2 * _DAY) - days * _DAY)

    def _sweep_before(self, before: float) -> None:
        old = [folder for folder in self.sessions() if _read_last_use(folder) < before]
        removed = [folder for folder in old if self.remove_session(folder, ("idle",)) == "idle"]
        homes = [(home, name) for home in self.homes() for name in os.listdir(home)]
        left = [os.path.join(home, name) for home, name in homes if name.startswith(_REMOVED)]
        for folder in left:
            remove_folder(folder)
        if removed or left:
            self.remove_outputs()
        with closing(AuditChain(self.audit)) as chain:
            chain.archive(datetime.fromtimestamp(before, UTC))

    def remove_session(self, folder: str, states: tuple[SessionState, ...]) -> SessionState:
        """Removes a session if its state is one of these. Returns its state.

        The folder is renamed first. If this process is killed, the next sweep removes the rest. A process that opened
        the session just before is detected. The audit still names its calls, so their number is recorded.
        """
        if (state := _read_state(folder)) in states:
            calls = 1 << 62
            with suppress(StoreError), open_journal(folder) as journal:
                calls = journal.count_finished()
            with open(self._removals, "a", encoding="ascii", opener=open_private) as removals:
                removals.write(f"{os.path.basename(folder)} {calls}\n")
            away = os.path.join(os.path.dirname(folder), f"{_REMOVED}{os.urandom(8).hex()}")
            os.rename(folder, away)
            if is_in_use(away):
                os.rename(away, folder)
                return "running"
            remove_folder(away)
        return state

    def remove_outputs(self) -> None:
        """Removes stored outputs that no session names. Does nothing if a journal cannot be read: it may name any."""
        used: set[str] = set()
        with suppress(StoreError):
            for folder in self.sessions():
                with open_journal(folder) as journal:
                    used |= {blob.rpartition(":")[2].partition(".")[0] for blob in list_outputs(journal.database)}
            Blobs(self.blobs()).sweep(used, _YOUNG_SECONDS)

    @property
    def _removals(self) -> str:
        return os.path.join(self.path, "removed-sessions")

    def _count_removed_calls(self) -> Counter[str]:
        """The number of calls of removed sessions that the audit may have, by session id."""
        counts: Counter[str] = Counter()
        with suppress(FileNotFoundError), open(self._removals, encoding="ascii", errors="replace") as removals:
            for session, _, calls in (line.rstrip().partition(" ") for line in removals):
                counts[session] += int(calls) if calls.isdigit() else 0
        return counts


def _read_info(folder: str) -> SessionInfo:
    session = os.path.basename(folder)
    try:
        with open_journal(folder) as journal:
            count = journal.last_seq()
            event = journal.event(count) if count else None
    except StoreError as error:
        return SessionInfo(session, 0, None, str(error))
    return SessionInfo(session, count, event.time if isinstance(event, Event) else None)


def _read_story(journal: SessionJournal, call_id: str) -> CallStory | None:
    events = journal.list_events_of(call_id, "tool_call.start", "tool_call.permission-granted")
    start = next((event for event in events if isinstance(event, ToolCallStart)), None)
    if start is None:
        return None
    prompt = journal.find_last("user", before=events[0].seq)
    decided = journal.context(events[0].seq)
    granted = next((event for event in events if isinstance(event, ToolCallPermissionGranted)), None)
    return CallStory(
        start=start,
        decision=decided.decision if decided else None,
        mode=decided.mode if decided else None,
        asked=granted.permission_request if granted else None,
        answer=granted.answer if granted else None,
        answered=granted.time if granted else None,
        prompt=prompt if isinstance(prompt, User) else None,
    )


def _read_state(folder: str) -> SessionState:
    processes = os.path.join(folder, "processes")
    if is_in_use(folder):
        return "running"
    if os.path.isdir(processes) and any(is_locked(os.path.join(processes, name)) for name in os.listdir(processes)):
        return "background"
    try:
        with open_journal(folder) as journal:
            return "waiting" if list_calls(journal.database, "parked", "ready", "claimed") else "idle"
    except StoreError:
        return "unreadable"


def _read_last_use(folder: str) -> float:
    """The time of the last write to a session in seconds. 0 if there was none."""
    stamp = read_stamp(os.path.join(folder, "journal.db"))
    return max((changed for size, changed in stamp if size), default=0) / 1e9


def _count_bytes(path: str) -> int:
    total = os.path.getsize(path) if os.path.isfile(path) else 0
    for folder, _, names in os.walk(path):
        with suppress(OSError):  # it was removed meanwhile
            total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return total


def _check_journal(folder: str) -> str | None:
    try:
        with open_journal(folder) as journal:
            journal.database.check()
            check_requests(journal.database)
            broken = [event.seq for event in journal.events() if isinstance(event, BrokenEvent)]
    except StoreError as error:
        return error.problem
    more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
    return f"event {broken[0]}{more} cannot be read" if broken else None


def _has_restarted(folder: str) -> bool:
    """Whether the journal of a session was damaged and moved away."""
    return os.path.lexists(os.path.join(folder, f"journal.db{_DAMAGED}"))
