"""The inbox of a fleet: what waits for people in all sessions, as `handrail.state.Inbox` has it for one machine."""

from datetime import datetime

import msgspec

from handrail.fleet.options import RunOptions, name_workspace
from handrail.fleet.sessions import FleetSessions
from handrail.protocol.events import KIND_NAMES, ToolCallQuestionRequired
from handrail.protocol.permissions import Answer, InboxQuestion, InboxRequest, PermissionRequest
from handrail.protocol.records import StoredGrant
from handrail.protocol.wire import decode_json
from handrail.store.database import Row
from handrail.store.inbox import find_pending_question

_REQUESTS = """
    SELECT s.id, s.options, r.data, e.data FROM handrail.request AS r JOIN handrail.session AS s ON s.id = r.scope
    JOIN handrail.call AS c ON c.scope = r.scope AND c.id = r.call_id
    JOIN handrail.event AS e ON e.scope = r.scope AND e.seq = c.start_seq
    WHERE r.answer IS NULL AND coalesce(?, r.id) = r.id ORDER BY r.id
"""
_QUESTIONS = """
    SELECT s.id, s.options, c.id, e.data FROM handrail.session AS s JOIN handrail.call AS c ON c.scope = s.id
    JOIN handrail.event AS e ON e.scope = s.id AND e.seq = c.start_seq + 1 AND e.kind = ?
    WHERE s.state = 'waiting' AND c.state = 'parked'
        AND NOT EXISTS (SELECT 1 FROM handrail.reply AS r WHERE r.session = s.id AND r.call_id = c.id)
"""
_ANSWERS = "SELECT id, answer FROM handrail.request WHERE answer IS NOT NULL"


class _Start(msgspec.Struct):
    """An event of a call."""

    time: datetime


class FleetInbox:
    def __init__(self, sessions: FleetSessions) -> None:
        self._sessions = sessions
        self.unreadable: dict[str, str] = {}

    def list_requests(self) -> list[InboxRequest]:
        return self._read_requests(None)

    def find_request(self, request_id: str) -> InboxRequest | None:
        """None if it was answered, or does not exist."""
        return next(iter(self._read_requests(request_id)), None)

    def list_questions(self) -> list[InboxQuestion]:
        found: list[InboxQuestion] = []
        for session, data, call_id, start in self._sessions.rows(_QUESTIONS, (KIND_NAMES[ToolCallQuestionRequired],)):
            question = find_pending_question(self._sessions.open_view(session), call_id)
            if question is not None:
                workspace, time = name_workspace(decode_json(data, RunOptions)), decode_json(start, _Start).time
                found.append(InboxQuestion(question=question, folder=session, workspace=workspace, time=time))
        return sorted(found, key=lambda one: one.time)

    def list_answers(self) -> dict[str, Answer]:
        return {name: decode_json(data, Answer) for name, data in self._sessions.rows(_ANSWERS)}

    def list_grants(self) -> list[StoredGrant]:
        """None: the grants of a session are on its workers."""
        return []

    def _read_requests(self, request_id: str | None) -> list[InboxRequest]:
        return list(map(_build_request, self._sessions.rows(_REQUESTS, (request_id,))))


def _build_request(row: Row) -> InboxRequest:
    session, data, request, start = row
    options = decode_json(data, RunOptions)
    return InboxRequest(
        request=decode_json(request, PermissionRequest),
        folder=session,
        workspace=name_workspace(options),
        time=decode_json(start, _Start).time,
        mode=options.mode,
        tools=(),
    )
