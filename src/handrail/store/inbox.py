"""The inbox: permission requests or questions that wait for people, of one session or of all.

Journals are opened read-only, also while another process writes to them.
"""

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from typing import Literal

import msgspec

from handrail.protocol.decisions import Mode
from handrail.protocol.errors import StoreError
from handrail.protocol.events import ToolCallQuestionRequired, ToolCallStart, decode_event
from handrail.protocol.permissions import Answer, OpenedFolder, PermissionRequest, Question, StandingGrant
from handrail.protocol.wire import UNREADABLE, decode_json
from handrail.store.database import Database, ReadOnlyDatabase, Row, Stamp, read_stamp
from handrail.store.grants import GrantedFolders, GrantFiles
from handrail.store.journal import CallContext
from handrail.store.runner import is_dead
from handrail.store.state_dir import GRANTED, OPENED, StateFolder, read_workspace_path

_PENDING = "SELECT data FROM request WHERE answer IS NULL AND coalesce(?, batch_id) = batch_id ORDER BY id"
_LAST = "SELECT data FROM request WHERE call_id = ? ORDER BY id DESC LIMIT 1"
_LAST_ANSWERED = "SELECT data, answer FROM request WHERE call_id = ? AND answer IS NOT NULL ORDER BY id DESC LIMIT 1"
_OF_OPEN_CALLS = "SELECT data, answer FROM request WHERE answer IS NOT NULL AND call_id IN (SELECT id FROM call)"
# A question is a parked call. The event that asks it comes right after the start of the call.
_QUESTIONS = """
SELECT e.data FROM call c JOIN event e ON e.seq = c.start_seq + 1
WHERE c.state = 'parked' AND e.kind = 'tool_call.question-required'
"""
_WAITING = """
SELECT r.data, r.answer, c.state, c.runner, e.data, e.decided
FROM request r JOIN call c ON c.id = r.call_id JOIN event e ON e.seq = c.start_seq
WHERE r.answer IS NULL OR c.state IN ('ready', 'claimed') ORDER BY r.id
"""
_STARTS = "SELECT e.data FROM call c JOIN event e ON e.seq = c.start_seq WHERE c.batch_id = ? AND c.state <> 'started'"
_IDS = """
SELECT id FROM request WHERE answer IS NULL
UNION ALL SELECT id FROM call WHERE state = 'parked' AND id NOT IN (SELECT call_id FROM request)
"""
_FRESH_NANOSECONDS = 2 * 10**9


# One session


def list_pending_requests(database: Database, batch_id: str | None) -> tuple[PermissionRequest, ...]:
    """The requests without an answer, of one batch or of the session."""
    return tuple(database.decode(row[0], PermissionRequest) for row in database.rows(_PENDING, (batch_id,)))


def find_last_request(database: Database, call_id: str) -> PermissionRequest | None:
    row = database.row(_LAST, (call_id,))
    return database.decode(row[0], PermissionRequest) if row else None


def find_answer(database: Database, call_id: str) -> tuple[PermissionRequest, Answer] | None:
    """The last answered request about a call, with its answer."""
    row = database.row(_LAST_ANSWERED, (call_id,))
    return (database.decode(row[0], PermissionRequest), database.decode(row[1], Answer)) if row else None


def list_batch_requests(database: Database, batch_id: str) -> list[tuple[PermissionRequest, Answer | None]]:
    rows = database.rows("SELECT data, answer FROM request WHERE batch_id = ? ORDER BY id", (batch_id,))
    return [
        (database.decode(data, PermissionRequest), None if answer is None else database.decode(answer, Answer))
        for data, answer in rows
    ]


def list_open_answers(database: Database) -> list[tuple[PermissionRequest, Answer]]:
    """The answered requests about calls that have no result yet."""
    rows = database.rows(_OF_OPEN_CALLS)
    return [(database.decode(data, PermissionRequest), database.decode(answer, Answer)) for data, answer in rows]


def check_requests(database: Database) -> None:
    """Reads all requests and answers. StoreError if one cannot be read."""
    for data, answer in database.rows("SELECT data, answer FROM request"):
        database.decode(data, PermissionRequest)
        if answer is not None:
            database.decode(answer, Answer)


def list_pending_questions(database: Database, batch_id: str | None = None) -> tuple[Question, ...]:
    """The questions without a reply, of one batch or of the session."""
    query = f"{_QUESTIONS} AND coalesce(?, c.batch_id) = c.batch_id ORDER BY c.start_seq"
    return tuple(_read_question(row[0]) for row in database.rows(query, (batch_id,)))


def find_pending_question(database: Database, call_id: str) -> Question | None:
    row = database.row(f"{_QUESTIONS} AND c.id = ?", (call_id,))
    return _read_question(row[0]) if row else None


def _read_question(data: bytes) -> Question:
    event = decode_event(data)
    if not isinstance(event, ToolCallQuestionRequired):
        raise AssertionError("the row is not of a question")
    return Question(
        tool_call_id=event.tool_call_id,
        question=event.question,
        options=event.options,
        multiple=event.multiple,
        custom=event.custom,
    )


# All sessions


class InboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request without an answer, or one whose call was not run after the answer."""

    request: PermissionRequest
    folder: str
    """The folder of its session."""
    workspace: str | None
    """The path of its workspace, if it is known."""
    time: datetime
    """When the call came."""
    mode: Mode | None
    tools: tuple[str, ...]
    """The tools of all calls of its batch."""
    environment: str | None = None
    """The digest of the environment variables for the commands of its batch."""
    answer: Answer | None = None
    """The answer, if the call only waits to run, because its runner was killed."""

    @property
    def state(self) -> Literal["waiting", "ready"]:
        """Whether it waits for an answer, or only to run."""
        return "waiting" if self.answer is None else "ready"


class InboxQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the model without a reply."""

    question: Question
    folder: str
    """The folder of its session."""
    workspace: str | None
    """The path of its workspace, if it is known."""
    time: datetime

    @property
    def session_id(self) -> str:
        return os.path.basename(self.folder)


class StoredGrant(msgspec.Struct, frozen=True):
    """A grant or an opened folder, with the part of the state folder it is in."""

    granted: StandingGrant | OpenedFolder
    home: str
    workspace: str | None
    """The workspace it counts in, if it is known."""


class Inbox:
    """The requests of one workspace or of all. Journals that have not changed are not read again."""

    def __init__(self, state: StateFolder, workspace: str | None) -> None:
        self._state = state
        self._workspace = workspace
        self._cache: dict[str, tuple[Stamp, list[InboxRequest]]] = {}
        self.unreadable: dict[str, str] = {}
        """The session folders whose journals cannot be read, with the reasons."""

    def waiting(self) -> list[InboxRequest]:
        requests = [request for folder in self._folders() for request in self._read_session(folder)]
        return sorted(requests, key=lambda request: request.request.id)

    def ids(self) -> list[str]:
        """The ids of all requests and questions without an answer. Faster than reading them."""
        return [str(row[0]) for folder in self._folders() for row in self._rows(folder, _IDS)]

    def questions(self) -> list[InboxQuestion]:
        questions: list[InboxQuestion] = []
        for folder in self._folders():
            workspace = self._find_workspace(os.path.dirname(folder))
            for (data,) in self._rows(folder, _QUESTIONS):
                try:
                    question, time = _read_question(data), decode_event(data).time
                except UNREADABLE as error:
                    self.unreadable[folder] = f"a question in {folder} cannot be read: {error}"
                else:
                    questions.append(InboxQuestion(question=question, folder=folder, workspace=workspace, time=time))
        return sorted(questions, key=lambda question: question.time)

    def answered(self) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        for folder in self._folders():
            for request_id, answer in self._rows(folder, "SELECT id, answer FROM request WHERE answer IS NOT NULL"):
                with suppress(*UNREADABLE):
                    answers[str(request_id)] = decode_json(answer, Answer)
        return answers

    def granted(self) -> list[StoredGrant]:
        """All grants and opened folders of sessions and workspaces, the oldest first."""
        sessions = self._folders()
        homes = dict.fromkeys(map(os.path.dirname, sessions))
        prefixes = [(home, os.path.join(home, ".")) for home in homes]
        prefixes += [(os.path.dirname(folder), f"{folder}/") for folder in sessions]
        grants = [
            StoredGrant(grant, home, self._find_workspace(home))
            for home, prefix in prefixes
            for grant in (*GrantFiles(f"{prefix}{GRANTED}").listed(), *GrantedFolders(f"{prefix}{OPENED}").listed())
        ]
        return sorted(grants, key=lambda stored: stored.granted.time)

    def _folders(self) -> list[str]:
        return self._state.sessions(self._workspace)

    def _find_workspace(self, home: str) -> str | None:
        return self._workspace or read_workspace_path(home)

    def _read_session(self, folder: str) -> list[InboxRequest]:
        stamp = read_stamp(os.path.join(folder, "journal.db"))
        cached = self._cache.get(folder)
        if cached is None or cached[0] != stamp or _is_fresh(stamp) or any(request.answer for request in cached[1]):
            cached = self._cache[folder] = (stamp, self._read_requests(folder))
        return cached[1]

    def _read_requests(self, folder: str) -> list[InboxRequest]:
        self.unreadable.pop(folder, None)
        try:
            with closing(ReadOnlyDatabase(os.path.join(folder, "journal.db"))) as database:
                return list(_list_waiting(database, folder, self._find_workspace(os.path.dirname(folder))))
        except (StoreError, TypeError) as error:  # TypeError: a damaged row holds another type
            self.unreadable[folder] = str(error)
            return []

    def _rows(self, folder: str, query: str) -> list[Row]:
        try:
            with closing(ReadOnlyDatabase(os.path.join(folder, "journal.db"))) as database:
                return database.rows(query)
        except StoreError as error:
            self.unreadable[folder] = str(error)
            return []


def _list_waiting(database: Database, folder: str, workspace: str | None) -> Iterator[InboxRequest]:
    """The open requests of a session. Requests that cannot be read cannot be answered either and are left out."""
    for data, answer, state, runner, start, decided in database.rows(_WAITING):
        if state == "claimed" and not is_dead(folder, runner):
            continue  # a live runner runs it
        with suppress(*UNREADABLE):
            request = decode_json(data, PermissionRequest)
            yield InboxRequest(
                request=request,
                folder=folder,
                workspace=workspace,
                time=decode_event(start).time,
                mode=decode_json(decided or b"", CallContext).mode,
                tools=tuple(_read_tool(row[0]) for row in database.rows(_STARTS, (request.batch_id,))),
                environment=_find_environment(database, request.batch_id),
                answer=None if answer is None else decode_json(answer, Answer),
            )


def _read_tool(data: bytes) -> str:
    event = decode_event(data)
    return event.tool_call_name if isinstance(event, ToolCallStart) else ""


def _find_environment(database: Database, batch_id: str) -> str | None:
    """One process asked for the whole batch, so its requests name the same variables."""
    rows = database.rows("SELECT data FROM request WHERE batch_id = ? ORDER BY id", (batch_id,))
    requests = (decode_json(row[0], PermissionRequest) for row in rows)
    return next((request.environment for request in requests if request.environment is not None), None)


def _is_fresh(stamp: Stamp) -> bool:
    """Whether the journal was written just now. Then it may be written again with the same stamp."""
    return time.time_ns() - max(changed for _, changed in stamp) < _FRESH_NANOSECONDS
