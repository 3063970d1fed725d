"""Parked calls that a client finds again by name and arguments."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime

from handrail.protocol.permissions import PermissionRequest, Question
from handrail.store.approvals import (
    build_deferred_marker_path,
    find_last_request,
    list_pending_questions,
    list_pending_requests,
)
from handrail.store.database import Row
from handrail.store.journal import BrokenEvent, SessionJournal
from handrail.store.runner import is_dead

_SAME = """
SELECT call_id, holder FROM left_call l WHERE digest = ?
ORDER BY EXISTS (SELECT 1 FROM call c WHERE c.id = l.call_id), call_id
"""
_ONE = "SELECT call_id, holder FROM left_call WHERE call_id = ? AND digest = ?"
_TAKE = "UPDATE left_call SET holder = ? WHERE call_id = ? AND holder IS ?"
_LET_GO = "UPDATE left_call SET holder = NULL WHERE call_id = ? AND holder = ?"
_FORGET = "DELETE FROM left_call WHERE call_id = ? AND holder = ?"
_AT_WORK = "SELECT state, runner FROM call WHERE id = ?"


class DeferredCalls:
    """Those of one session, as one runner sees them.

    Every call asks whether there is one, and most sessions never have any. So there is an empty file beside the journal
    from before the first one is written down: to look for it costs a fifth of a look into the journal.
    """

    def __init__(self, journal: SessionJournal, folder: str) -> None:
        """`folder`: of the session, where the runners have their marks."""
        self.folder = folder
        self._journal = journal
        self._database = journal.database
        self._runner = journal.runner
        self._mark = build_deferred_marker_path(journal.database)
        self._marked = False
        self._version = -1
        self._some = True

    def has_any(self) -> bool:
        """Whether there may be one. The table is looked at only if somebody wrote meanwhile."""
        self._marked = self._marked or os.access(self._mark, os.F_OK)
        if not self._marked:
            return False
        version = self.version()
        if version != self._version:
            self._version = version
            self._look()
        return self._some

    def version(self) -> int:
        """A number that changes when another process writes to the journal."""
        row = self._database.row("PRAGMA data_version")
        return row[0] if row else 0

    @contextmanager
    def expect(self, call_id: str, digest: Callable[[], str]) -> Generator[None]:
        """Notes a call if it is parked while this is open: in the same transaction, and in this runner's hand. So what
        waits is found again whenever this process is killed."""
        self._journal.digests[call_id] = digest
        try:
            yield
        finally:
            del self._journal.digests[call_id]
            self._version = -1

    def claim(self, digest: str) -> str | None:
        """Takes one of these name and arguments into this runner's hand that is in nobody's; one that
        has its result before one that waits."""
        rows = self._database.rows(_SAME, (digest,))
        return next((row[0] for row in rows if self._taken(row)), None)

    def claim_one(self, call_id: str, digest: str) -> bool:
        """The same for one call; False where it is in another hand, was handed over, or is another call."""
        row = self._database.row(_ONE, (call_id, digest))
        return row is not None and self._taken(row)

    def release(self, call_id: str) -> None:
        """Takes it out of this runner's hand: whoever makes the call again may have it."""
        self._database.run(_LET_GO, (call_id, self._runner))

    def forget(self, call_id: str) -> None:
        """What came of it was handed over."""
        self._database.run(_FORGET, (call_id, self._runner))
        self._look()

    def status(self, call_id: str) -> tuple[str, bool]:
        """How far a call is (see `Entry.state`), and whether somebody who lives is at it."""
        row = self._database.row(_AT_WORK, (call_id,))
        if row is None:
            return "finished", False
        return row[0], row[0] in {"claimed", "started"} and not is_dead(self.folder, row[1])

    def asked(self, call_id: str) -> tuple[tuple[PermissionRequest, ...], tuple[Question, ...]]:
        """What a call asks now."""
        row = self._database.row("SELECT batch_id FROM call WHERE id = ?", (call_id,))
        if row is None:
            return (), ()
        requests = list_pending_requests(self._database, row[0])
        questions = list_pending_questions(self._database, row[0])
        return (
            tuple(one for one in requests if one.tool_call_id == call_id),
            tuple(one for one in questions if one.tool_call_id == call_id),
        )

    def ended_at(self, call_id: str) -> datetime | None:
        """When a call got its result; None while it has none."""
        entry = self._journal.entry(call_id)
        if entry is None or entry.end_seq is None:
            return None
        event = self._journal.event(entry.end_seq)
        return None if isinstance(event, BrokenEvent) else event.time

    def ran_at(self, call_id: str) -> datetime | None:
        """When the command of a finished call ran: for its preview, or after the answer. None if it is no command."""
        request = find_last_request(self._database, call_id)
        if request is None or request.command is None:
            return None
        preview = request.preview
        return preview.time if preview is not None and preview.tried is not None else self.ended_at(call_id)

    def _taken(self, row: Row) -> bool:
        call_id, holder = row
        if holder is not None and not is_dead(self.folder, holder):
            return False
        with self._database.lock:
            self._database.run(_TAKE, (self._runner, call_id, holder))
            found = self._database.row("SELECT changes()")
        return found is not None and found[0] == 1

    def _look(self) -> None:
        self._some = self._database.row("SELECT 1 FROM left_call LIMIT 1") is not None
