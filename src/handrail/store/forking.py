"""A second session that begins where another one is: its transcript, and what that transcript relies on."""

import os
from collections.abc import Callable
from contextlib import suppress

from handrail.protocol.error import UsageError
from handrail.protocol.event import Notice
from handrail.protocol.message import AssistantMessage, CallResult, ResultsMessage
from handrail.protocol.wire import encode
from handrail.store.active_skills import make_marker
from handrail.store.database import Database
from handrail.store.journal import SessionJournal
from handrail.store.messages import Messages

_NOT_HERE = "This session was forked before this call had a result; in this session it was not made."
_COPIED = {
    "message": "SELECT number, kind, data FROM message WHERE number <= ? ORDER BY number",
    "output": "SELECT call_id, blob FROM output WHERE ? > 0",
    "seen": "SELECT path, mark FROM seen WHERE ? > 0",
    "skill": "SELECT name, data FROM skill WHERE ? >= 0",
}


def fork_journal(source: SessionJournal, path: str, session_id: str) -> None:
    """Begins the journal of a new session with the transcript of another: the messages, the stored outputs that it
    names, which files were read and which skills are active. Events, grants, requests and processes are not copied."""
    if os.path.exists(path):
        raise UsageError(f"there is a session {session_id} already; choose another id for the fork")
    unfinished = f"{path}.{os.urandom(6).hex()}.new"
    try:
        _fill(source, unfinished, session_id, lambda: make_marker(path))
        os.rename(unfinished, path)
    finally:
        for left in (unfinished, f"{unfinished}-wal", f"{unfinished}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(left)


def _fill(source: SessionJournal, path: str, session_id: str, mark_skills: Callable[[], None]) -> None:
    """Under another name: a session is there when all of it is."""
    transcript = Messages(source).after()
    last = transcript[-1].number if transcript else 0
    target = Database(path, "crash")
    try:
        with target.lock, target.transaction:
            for table, query in _COPIED.items():
                rows = source.database.rows(query, (last,))
                if rows and table == "skill":
                    mark_skills()
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    target.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608  names of ours
            if transcript and (open_calls := _open_calls(transcript[-1].message)):
                # With the rest or not at all: without it the fork would take the calls for its own.
                row = (last + 1, "results", encode(ResultsMessage(results=open_calls)))
                target.execute("INSERT INTO message VALUES (?, ?, ?)", row)
        told = f"Forked from session {source.session_id} behind its event {source.last_seq()}."
        SessionJournal(target, session_id, "fork").append((Notice, {"text": told}))
    finally:
        target.close()


def _open_calls(last: object) -> tuple[CallResult, ...]:
    """Calls without a result are those of the session that asked for them: a fork makes none of them again."""
    if not isinstance(last, AssistantMessage):
        return ()
    return tuple(
        CallResult(tool_call_id=call.tool_call_id, name=call.name, ok=False, content=_NOT_HERE) for call in last.calls
    )
