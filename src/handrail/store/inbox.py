"""The inbox: permission requests or questions that wait for people, of one session or of all."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import lru_cache
from typing import NamedTuple, TypeVar

from msgspec import Struct

from handrail.protocol.errors import StoreError
from handrail.protocol.events import KIND_NAMES, BrokenEvent, ToolCallQuestionRequired, ToolCallStart
from handrail.protocol.permissions import Answer, InboxQuestion, InboxRequest, PermissionRequest, Question
from handrail.protocol.records import StoredGrant
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.store.database import Database, ReadOnlyDatabase, Row, Stamp, is_fresh, read_stamp
from handrail.store.grants import GrantedFolders, GrantFiles
from handrail.store.journal import OpenCall, SessionJournal, list_calls
from handrail.store.runner import is_dead
from handrail.store.state_dir import GRANTED, OPENED, StateFolder, read_workspace_path

_PENDING = "SELECT data FROM request WHERE answer IS NULL AND coalesce(?, batch_id) = batch_id ORDER BY id"
_LAST = "SELECT data FROM request WHERE call_id = ? ORDER BY id DESC LIMIT 1"
_LAST_ANSWERED = "SELECT data, answer FROM request WHERE call_id = ? AND answer IS NOT NULL ORDER BY id DESC LIMIT 1"
_ROWS = "SELECT call_id, data, answer FROM request"
_OF_BATCH = f"{_ROWS} WHERE batch_id = ? ORDER BY id"
_ANSWERED = "SELECT data, answer FROM request WHERE answer IS NOT NULL ORDER BY id DESC LIMIT ?"
_REPLACE = "UPDATE request SET id = ?, data = ? WHERE id = ? AND data = ? AND answer IS NULL"
_ANSWER = "UPDATE request SET answer = ? WHERE id = ? AND data = ? AND answer IS NULL"
_QUESTION = KIND_NAMES[ToolCallQuestionRequired]
_Content = TypeVar("_Content")


# One session: table `request` of its journal


class StoredRequest(NamedTuple):
    request: PermissionRequest
    data: bytes
    """Differs if the request was replaced."""
    answered: bool


def insert_request(database: Database, request: PermissionRequest, answer: Answer | None = None) -> None:
    row = (request.id, request.batch_id, request.tool_call_id, encode(request), encode(answer) if answer else None)
    database.execute("INSERT INTO request VALUES (?, ?, ?, ?, ?)", row)


def swap_request(database: Database, stored: StoredRequest, new: PermissionRequest) -> bool:
    """Replaces a request within a transaction. False if it was answered or replaced meanwhile."""
    row = (new.id, encode(new), stored.request.id, stored.data)
    return database.execute(_REPLACE, row).rowcount == 1


def answer_request(database: Database, stored: StoredRequest, answer: Answer) -> bool:
    """Stores an answer within a transaction. False if the request was answered or replaced meanwhile."""
    return database.execute(_ANSWER, (encode(answer), stored.request.id, stored.data)).rowcount == 1


def find_stored_request(database: Database, request_id: str) -> StoredRequest | None:
    row = database.row("SELECT data, answer FROM request WHERE id = ?", (request_id,))
    return StoredRequest(database.decode(row[0], PermissionRequest), row[0], row[1] is not None) if row else None


def has_pending_requests(database: Database, batch_id: str) -> bool:
    return database.row(_PENDING, (batch_id,)) is not None


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
    return [
        (database.decode(data, PermissionRequest), None if answer is None else database.decode(answer, Answer))
        for _, data, answer in database.rows(_OF_BATCH, (batch_id,))
    ]


def list_open_answers(database: Database) -> list[tuple[PermissionRequest, Answer]]:
    """The answered requests about calls that have no result yet."""
    rows = [row for _, row in _list_open_rows(database) if row[2] is not None]
    return [(database.decode(data, PermissionRequest), database.decode(answer, Answer)) for _, data, answer in rows]


def _list_open_rows(database: Database) -> list[tuple[OpenCall, Row]]:
    """The rows of requests about open calls, each with its call. Rows are call, request and answer."""
    calls = {call.id: call for call in list_calls(database)}
    query = f"{_ROWS} WHERE call_id IN ({', '.join('?' * len(calls))}) ORDER BY id"
    return [(calls[row[0]], row) for row in database.rows(query, tuple(calls))]


def check_requests(database: Database) -> None:
    """Reads all requests and answers. StoreError if one cannot be read."""
    for data, answer in database.rows("SELECT data, answer FROM request"):
        database.decode(data, PermissionRequest)
        if answer is not None:
            database.decode(answer, Answer)


def list_pending_questions(journal: SessionJournal, batch_id: str | None = None) -> tuple[Question, ...]:
    """The questions without a reply, of one batch or of the session."""
    events = _list_question_events(journal, batch_id)
    return tuple(_build_question(event) for event in events if not isinstance(event, BrokenEvent))


def find_pending_question(journal: SessionJournal, call_id: str) -> Question | None:
    questions = list_pending_questions(journal)
    return next((question for question in questions if question.tool_call_id == call_id), None)


def _list_question_events(
    journal: SessionJournal, batch_id: str | None = None
) -> list[ToolCallQuestionRequired | BrokenEvent]:
    """A question is a parked call. The event that asks it comes right after the start of the call."""
    parked = sorted(list_calls(journal.database, "parked"), key=lambda call: call.start_seq)
    events = [journal.event(call.start_seq + 1) for call in parked if batch_id in {None, call.batch_id}]
    return [
        event
        for event in events
        if isinstance(event, ToolCallQuestionRequired) or (isinstance(event, BrokenEvent) and event.kind == _QUESTION)
    ]


def _build_question(event: ToolCallQuestionRequired) -> Question:
    return Question(
        tool_call_id=event.tool_call_id,
        question=event.question,
        options=event.options,
        multiple=event.multiple,
        custom=event.custom,
    )


# All sessions


class _SessionInbox(NamedTuple):
    """What waits in one session."""

    stamp: Stamp
    is_complete: bool
    """Whether a journal with the same stamp has exactly this."""
    requests: list[InboxRequest]
    questions: list[InboxQuestion]


class Inbox:
    """The requests of one workspace or of all. Journals that have not changed are not read again."""

    def __init__(self, state: StateFolder, workspace: str | None) -> None:
        self._state = state
        self._workspace = workspace
        self._cache: dict[str, _SessionInbox] = {}
        self.unreadable: dict[str, str] = {}
        """The session folders whose journals cannot be read, with the reasons."""

    def list_requests(self) -> list[InboxRequest]:
        requests = [request for folder in self._folders() for request in self._read_session(folder).requests]
        return sorted(requests, key=lambda request: request.request.id)

    def list_pending_ids(self) -> list[str]:
        """The ids of all requests and questions without an answer. Faster than reading them."""
        return [name for folder in self._folders() for name in self._read(folder, _list_pending_ids, [])]

    def list_questions(self) -> list[InboxQuestion]:
        questions = [question for folder in self._folders() for question in self._read_session(folder).questions]
        return sorted(questions, key=lambda question: question.time)

    def list_answers(self) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        for folder in self._folders():
            answers |= self._read(folder, _list_answers, {})
        return answers

    def list_approved_commands(self, most: int, sessions: int) -> list[tuple[str, tuple[str, ...]]]:
        """The last approved commands of the sessions that were open last, each with the hosts that it opened."""
        found: list[tuple[str, tuple[str, ...]]] = []
        folders = sorted(self._folders(), key=os.path.getmtime, reverse=True)
        for folder in folders[:sessions]:
            if len(found) < most:
                path = os.path.join(folder, "journal.db")
                found += _load_approved(path, read_stamp(path), most)
        return found[:most]

    def list_grants(self) -> list[StoredGrant]:
        """All grants and opened folders of sessions and workspaces, the oldest first."""
        sessions = self._folders()
        homes = dict.fromkeys(map(os.path.dirname, sessions))
        prefixes = [(home, os.path.join(home, ".")) for home in homes]
        prefixes += [(os.path.dirname(folder), f"{folder}/") for folder in sessions]
        grants = [
            StoredGrant(grant, home, self._find_workspace(home))
            for home, prefix in prefixes
            for grant in (
                *GrantFiles(f"{prefix}{GRANTED}").list_grants(),
                *GrantedFolders(f"{prefix}{OPENED}").list_folders(),
            )
        ]
        return sorted(grants, key=lambda stored: stored.granted.time)

    def _folders(self) -> list[str]:
        return self._state.sessions(self._workspace)

    def _find_workspace(self, home: str) -> str | None:
        return self._workspace or read_workspace_path(home)

    def _read_session(self, folder: str) -> _SessionInbox:
        stamp = read_stamp(os.path.join(folder, "journal.db"))
        cached = self._cache.get(folder)
        if cached is None or not cached.is_complete or cached.stamp != stamp:
            self.unreadable.pop(folder, None)
            workspace = self._find_workspace(os.path.dirname(folder))
            empty = _SessionInbox(stamp, True, [], [])
            cached = self._read(folder, lambda journal: self._list(journal, folder, workspace, stamp), empty)
            self._cache[folder] = cached
        return cached

    def _list(self, journal: SessionJournal, folder: str, workspace: str | None, stamp: Stamp) -> _SessionInbox:
        questions: list[InboxQuestion] = []
        for event in _list_question_events(journal):
            if isinstance(event, BrokenEvent):
                self.unreadable[folder] = f"a question in {folder} cannot be read: {event.problem}"
            else:
                question, time = _build_question(event), event.time
                questions.append(InboxQuestion(question=question, folder=folder, workspace=workspace, time=time))
        # The death of a runner returns an answered request to the list, and the stamp stays.
        is_complete = not is_fresh(stamp) and not list_calls(journal.database, "ready", "claimed")
        return _SessionInbox(stamp, is_complete, list(_list_waiting(journal, folder, workspace)), questions)

    def _read(self, folder: str, read: Callable[[SessionJournal], _Content], missing: _Content) -> _Content:
        try:
            with closing(ReadOnlyDatabase(os.path.join(folder, "journal.db"))) as database:
                return read(SessionJournal(database, os.path.basename(folder), ""))
        except (StoreError, TypeError) as error:  # TypeError: a damaged row holds another type
            self.unreadable[folder] = str(error)
            return missing


def _list_waiting(journal: SessionJournal, folder: str, workspace: str | None) -> Iterator[InboxRequest]:
    """The open requests of a session. Requests that cannot be read cannot be answered either and are left out."""
    for call, (_, data, answer) in _list_open_rows(journal.database):
        is_run = call.state == "claimed" and not is_dead(folder, call.runner)
        if is_run or (answer is not None and call.state not in {"ready", "claimed"}):
            continue
        if answer is not None and call.state == "ready" and _is_denial(answer):
            continue  # its call gets the result when the session goes on
        start, context = journal.event(call.start_seq), journal.context(call.start_seq)
        tools = _list_tools(journal, call.batch_id)
        if isinstance(start, BrokenEvent) or context is None or tools is None:
            continue
        with suppress(*UNREADABLE):
            yield InboxRequest(
                request=decode_json(data, PermissionRequest),
                folder=folder,
                workspace=workspace,
                time=start.time,
                mode=context.mode,
                tools=tools,
                environment=_find_environment(journal.database, call.batch_id),
                answer=None if answer is None else decode_json(answer, Answer),
            )


def _is_denial(data: bytes) -> bool:
    with suppress(*UNREADABLE):
        return decode_json(data, Answer).kind == "deny"
    return False


def _list_tools(journal: SessionJournal, batch_id: str) -> tuple[str, ...] | None:
    """The tools of the calls of a batch that were not started. None if a call cannot be read."""
    calls = list_calls(journal.database, "parked", "ready", "claimed")
    starts = [journal.event(call.start_seq) for call in calls if call.batch_id == batch_id]
    names = tuple(start.tool_call_name for start in starts if isinstance(start, ToolCallStart))
    return names if len(names) == len(starts) else None


def _find_environment(database: Database, batch_id: str) -> str | None:
    """One process asked for the whole batch, so its requests name the same variables."""
    requests = (decode_json(row[1], PermissionRequest) for row in database.rows(_OF_BATCH, (batch_id,)))
    return next((request.environment for request in requests if request.environment is not None), None)


def _list_answers(journal: SessionJournal) -> dict[str, Answer]:
    """The answers that can be read, by the ids of their requests."""
    answers: dict[str, Answer] = {}
    for request_id, answer in journal.database.rows("SELECT id, answer FROM request WHERE answer IS NOT NULL"):
        with suppress(*UNREADABLE):
            answers[str(request_id)] = decode_json(answer, Answer)
    return answers


class _Approved(Struct, frozen=True):
    """The fields of an approved request about a command that later requests are compared with."""

    command: str | None = None
    hosts: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def _load_approved(path: str, _stamp: Stamp, most: int) -> list[tuple[str, tuple[str, ...]]]:
    """Cached, because opening a journal takes longer than reading it. A journal that cannot be read has none."""
    found: list[tuple[str, tuple[str, ...]]] = []
    with suppress(StoreError, TypeError), closing(ReadOnlyDatabase(path)) as database:
        for data, answer in database.rows(_ANSWERED, (most,)):
            with suppress(*UNREADABLE):
                if decode_json(answer, Answer).approves and (one := decode_json(data, _Approved)).command is not None:
                    found.append((one.command, one.hosts))
    return found


def _list_pending_ids(journal: SessionJournal) -> list[str]:
    """The ids of requests without an answer, and of parked calls that no request is about: those are questions."""
    rows = journal.database.rows("SELECT id, call_id, answer IS NULL FROM request")
    asked = {call_id for _, call_id, _ in rows}
    calls = list_calls(journal.database, "parked")
    return [*(str(row[0]) for row in rows if row[2]), *(call.id for call in calls if call.id not in asked)]
