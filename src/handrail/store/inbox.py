"""What waits for people and what they granted, over all sessions: only looked at, whoever is at work on them."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from typing import Literal

import msgspec

from handrail.protocol.decisions import Mode
from handrail.protocol.errors import StoreError
from handrail.protocol.events import ToolCallStart, decode_event
from handrail.protocol.permissions import Answer, OpenedFolder, PermissionRequest, Question, StandingGrant
from handrail.protocol.wire import UNREADABLE, decode_json
from handrail.store.approvals import ASKED, parse_question
from handrail.store.database import Database, ReadOnlyDatabase, Row, Stamp, read_stamp
from handrail.store.grants import GrantedFolders, GrantFiles
from handrail.store.journal import CallContext
from handrail.store.runner import is_dead
from handrail.store.state_dir import GRANTED, OPENED, StateFolder, read_workspace_path

_OPEN = """
SELECT r.data, r.answer, c.state, c.runner, e.data, e.decided
FROM request r JOIN call c ON c.id = r.call_id JOIN event e ON e.seq = c.start_seq
WHERE r.answer IS NULL OR c.state IN ('ready', 'claimed') ORDER BY r.id
"""
_BATCH = "SELECT e.data FROM call c JOIN event e ON e.seq = c.start_seq WHERE c.batch_id = ? AND c.state <> 'started'"
_ASKED = "SELECT data FROM request WHERE batch_id = ? ORDER BY id"
_ANSWERED = "SELECT id, answer FROM request WHERE answer IS NOT NULL"
_IDS = """
SELECT id FROM request WHERE answer IS NULL
UNION ALL SELECT id FROM call WHERE state = 'parked' AND id NOT IN (SELECT call_id FROM request)
"""
_FRESH_NANOSECONDS = 2 * 10**9


class InboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that nobody has answered, or whose call was not run though somebody has."""

    request: PermissionRequest
    folder: str
    """The folder of its session."""
    workspace: str | None
    """The folder it is about, where that is known."""
    time: datetime
    """When the call came."""
    mode: Mode | None
    """The mode that the call was judged in."""
    tools: tuple[str, ...]
    """The tools of all calls of its batch."""
    environment: str | None = None
    """The digest of the variables that the commands of its batch were to get."""
    answer: Answer | None = None
    """What was answered, where the call is only left to be run: whoever was to run it was killed."""

    @property
    def state(self) -> Literal["waiting", "ready"]:
        """Whether it waits for an answer, or only to be run."""
        return "waiting" if self.answer is None else "ready"


class InboxQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the model that nobody has replied to."""

    question: Question
    folder: str
    """The folder of its session."""
    workspace: str | None
    """The folder it is about, where that is known."""
    time: datetime

    @property
    def session_id(self) -> str:
        """The session that asks."""
        return os.path.basename(self.folder)


class StoredGrant(msgspec.Struct, frozen=True):
    """Something that people granted, and whose part of the state folder it is in."""

    granted: StandingGrant | OpenedFolder
    home: str
    workspace: str | None
    """The folder it counts in, where that is known."""


class Inbox:
    """The requests of one workspace, or of all. What has not changed since the last look is not read again."""

    def __init__(self, state: StateFolder, workspace: str | None) -> None:
        self._state = state
        self._workspace = workspace
        self._known: dict[str, tuple[Stamp, list[InboxRequest]]] = {}
        self.unreadable: dict[str, str] = {}
        """The sessions whose journals cannot be read, each with the reason. The others are no less there for it."""

    def waiting(self) -> list[InboxRequest]:
        """All that is open, the oldest first."""
        found = [one for folder in self._folders() for one in self._of_session(folder)]
        return sorted(found, key=lambda one: one.request.id)

    def ids(self) -> list[str]:
        """The ids of all that waits to be answered, and no more of it: quicker than to read what they are about."""
        found: list[str] = []
        for folder in self._folders():
            found += [str(row[0]) for row in self._rows(folder, _IDS)]
        return found

    def questions(self) -> list[InboxQuestion]:
        """What models ask, the oldest first. A journal that cannot be read is named among the unreadable."""
        found: list[InboxQuestion] = []
        for folder in self._folders():
            place = self._place(os.path.dirname(folder))
            for row in self._rows(folder, ASKED):
                try:
                    found.append(_asked(folder, place, row[0]))
                except UNREADABLE as error:
                    self.unreadable[folder] = f"a question in {folder} cannot be read: {error}"
        return sorted(found, key=lambda one: one.time)

    def answered(self) -> dict[str, Answer]:
        """What was answered before, by the ids of the requests."""
        found: dict[str, Answer] = {}
        for folder in self._folders():
            for request_id, answer in self._rows(folder, _ANSWERED):
                with suppress(*UNREADABLE):
                    found[str(request_id)] = decode_json(answer, Answer)
        return found

    def granted(self) -> list[StoredGrant]:
        """What people granted and opened, to sessions and to workspaces, the oldest first."""
        sessions = self._folders()
        homes = dict.fromkeys(map(os.path.dirname, sessions))
        places = [(home, os.path.join(home, ".")) for home in homes]
        places += [(os.path.dirname(folder), f"{folder}/") for folder in sessions]
        found = [StoredGrant(one, home, self._place(home)) for home, begin in places for one in _granted_in(begin)]
        return sorted(found, key=lambda kept: kept.granted.time)

    def _folders(self) -> list[str]:
        return self._state.sessions(self._workspace)

    def _place(self, home: str) -> str | None:
        """The workspace of a part of the state folder: the one that was looked for, else the one that was noted."""
        return self._workspace or read_workspace_path(home)

    def _of_session(self, folder: str) -> list[InboxRequest]:
        stamp = read_stamp(os.path.join(folder, "journal.db"))
        known = self._known.get(folder)
        if known is None or known[0] != stamp or _is_fresh(stamp) or any(one.answer for one in known[1]):
            known = self._known[folder] = (stamp, self._read(folder))
        return known[1]

    def _read(self, folder: str) -> list[InboxRequest]:
        self.unreadable.pop(folder, None)
        try:
            with closing(_opened(folder)) as database:
                return list(_waiting_in(database, folder, self._place(os.path.dirname(folder))))
        except (StoreError, TypeError) as error:  # TypeError: of a damaged row that holds something else
            self.unreadable[folder] = str(error)
            return []

    def _rows(self, folder: str, query: str) -> list[Row]:
        try:
            with closing(_opened(folder)) as database:
                return database.rows(query)
        except StoreError as error:
            self.unreadable[folder] = str(error)
            return []


def _opened(folder: str) -> Database:
    return ReadOnlyDatabase(os.path.join(folder, "journal.db"))


def _asked(folder: str, workspace: str | None, data: bytes) -> InboxQuestion:
    return InboxQuestion(
        question=parse_question(data), folder=folder, workspace=workspace, time=decode_event(data).time
    )


def _granted_in(beginning: str) -> tuple[StandingGrant | OpenedFolder, ...]:
    """What was granted in a folder, by how the paths begin that it is noted at."""
    return (*GrantFiles(f"{beginning}{GRANTED}").listed(), *GrantedFolders(f"{beginning}{OPENED}").listed())


def _waiting_in(database: Database, folder: str, workspace: str | None) -> Iterator[InboxRequest]:
    for data, answer, state, runner, start, decided in database.rows(_OPEN):
        if state == "claimed" and not is_dead(folder, runner):
            continue  # somebody runs it
        try:
            request = decode_json(data, PermissionRequest)
            event = decode_event(start)
            mode = decode_json(decided or b"", CallContext).mode
            tools = tuple(_tool(row[0]) for row in database.rows(_BATCH, (request.batch_id,)))
            environment = _environment(database, request.batch_id)
            given = None if answer is None else decode_json(answer, Answer)
        except UNREADABLE:
            continue  # what cannot be read cannot be answered either
        yield InboxRequest(
            request=request,
            folder=folder,
            workspace=workspace,
            time=event.time,
            mode=mode,
            tools=tools,
            environment=environment,
            answer=given,
        )


def _tool(data: bytes) -> str:
    event = decode_event(data)
    return event.tool_call_name if isinstance(event, ToolCallStart) else ""


def _environment(database: Database, batch_id: str) -> str | None:
    """One process asked for the whole batch, so there is one."""
    requests = (decode_json(row[0], PermissionRequest) for row in database.rows(_ASKED, (batch_id,)))
    return next((request.environment for request in requests if request.environment is not None), None)


def _is_fresh(stamp: Stamp) -> bool:
    """Whether it was written just now: then it may be written again without looking any different."""
    return time.time_ns() - max(changed for _, changed in stamp) < _FRESH_NANOSECONDS
