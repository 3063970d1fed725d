"""The sessions of a fleet, each with the worker that runs it."""

import os
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from importlib import resources
from typing import Any, Literal

import msgspec
import psycopg

from handrail.agent.turn import Turn
from handrail.fleet.options import RunOptions
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.events import AnyEvent, BrokenEvent, User
from handrail.protocol.events import Mode as ModeEvent
from handrail.protocol.messages import AssistantMessage, UserMessage
from handrail.protocol.permissions import Answer, PermissionRequest, Reply
from handrail.protocol.receipt import ChainedRecord
from handrail.protocol.text import render_value
from handrail.protocol.wire import decode_json, encode, escape_surrogates
from handrail.runtime.approvals import bind_answer, check_answer
from handrail.runtime.results import build_answer_event
from handrail.store.approvals import save_answer
from handrail.store.audit import Verification, decode_record
from handrail.store.database import Row
from handrail.store.inbox import find_stored_request
from handrail.store.journal import PendingEvent, SessionJournal
from handrail.store.postgres import ConnectionPool, PostgresDatabase, SessionReader, SessionScope, StaleWorkerError
from handrail.store.postgres_schema import FLEET, JOBS, build_open_error, list_tables, migrate
from handrail.store.shared_store import SharedStore
from handrail.store.state_dir import check_session_id, make_id
from handrail.store.transcript import Messages, build_insert, build_prompt

QUEUE, TASK = "handrail", "handrail.go_on"
DEAD_SECONDS = 15.0
"""After so long without a heartbeat the jobs of a worker go to others."""
State = Literal["queued", "running", "waiting", "idle", "failed"]
"""queued: a worker will run it. waiting: for a person. idle: its last turn has ended. failed: its last turn failed."""
_DEFER = """
    SELECT procrastinate_defer_jobs_v1(ARRAY[ROW(?, ?, 0, ?, NULL, ?::jsonb, NULL)]::procrastinate_job_to_defer_v1[])
"""
_CREATE = """
    INSERT INTO handrail.session (id, tenant, state, lock, options) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE
    SET state = excluded.state, options = excluded.options, cancelled = false, changed = now()
    WHERE session.state IN ('idle', 'failed') AND session.tenant = excluded.tenant
"""
_CLAIM = """
    UPDATE handrail.session SET epoch = epoch + 1, state = 'running', worker = ?, changed = now(),
        tries = CASE WHEN last_seq = last.seq THEN tries + 1 ELSE 1 END, last_seq = last.seq
    FROM (SELECT coalesce(max(seq), 0) AS seq FROM handrail.event WHERE scope = ?) AS last
    WHERE id = ? RETURNING epoch, tenant, options, tries, base, cancelled
"""
_RELEASE = """
    UPDATE handrail.session SET state = ?, outcome = ?, runners = ?, worker = NULL, tries = 0, cancelled = false,
        changed = now(), tokens = tokens + ?, seconds = seconds + ?
    WHERE id = ? AND epoch = ?
"""
_INFO = "SELECT id, tenant, state, worker, options, outcome, tokens, seconds, created, changed FROM handrail.session"
_WAITING = "SELECT scope, data FROM handrail.request WHERE answer IS NULL AND id > ? ORDER BY id LIMIT ?"
_OPEN = "SELECT scope FROM handrail.request WHERE id = ? AND answer IS NULL"
_MATCHES = """
    position(lower(?) IN lower(id || ' ' || coalesce((
        SELECT convert_from(data, 'UTF8') FROM handrail.event WHERE scope = id AND kind = 'user' AND seq <= 2
        ORDER BY seq LIMIT 1
    ), ''))) > 0
"""
_CANCEL = """
    UPDATE handrail.session SET cancelled = true WHERE id = ? AND state IN ('queued', 'running', 'waiting')
    RETURNING state, lock
"""
_SET_MODE = """
    UPDATE handrail.session SET options = ?, changed = now()
    WHERE id = ? AND state NOT IN ('queued', 'running')
"""
_LOCK_STATE = "SELECT state, lock FROM handrail.session WHERE id = ? FOR UPDATE"
"""One prompt at a time: the next one gets the next number."""
_OPEN_STATES = {"queued", "running", "waiting"}
_MAX_PROMPTS = 100
_DELETE = "DELETE FROM handrail.session WHERE id = ? AND state IN ('idle', 'failed')"
_DELETE_ROWS = (
    *(f"DELETE FROM handrail.{table} WHERE scope = ?" for table in list_tables() if table != "audit_line"),  # noqa: S608
    "DELETE FROM handrail.reply WHERE session = ?",
    "DELETE FROM handrail.folder WHERE session = ?",
)
_HAS_AUDIT = "SELECT 1 FROM handrail.audit_line WHERE scope = ? LIMIT 1"
_USED = """
    SELECT count(*) FILTER (WHERE state IN ('queued', 'running', 'waiting') AND id <> ?), coalesce(sum(tokens), 0),
        coalesce(sum(seconds), 0)
    FROM handrail.session WHERE tenant = ?
"""


class BusySessionError(UsageError):
    """The session has an open turn, or is gone. Nothing was done."""


class TenantLimitError(UsageError):
    """The tenant has reached a limit. Nothing was started."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the last turn of a session ended."""

    reason: str
    text: str = ""
    branch: str | None = None
    """The branch in the repository of the session, if its files changed."""
    code: str | None = None
    message: str | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to run a session, until another worker claims it."""

    session: str
    epoch: int
    tenant: str
    options: RunOptions
    tries: int
    """How many workers claimed the session since its last event."""
    base: str | None = None
    """The commit that the first worker cloned."""
    cancelled: bool = False
    """Whether the turn is to end at once."""


class TenantLimits(msgspec.Struct, frozen=True, kw_only=True):
    """None: no limit."""

    sessions: int | None = None
    """Sessions that are queued, running or waiting at the same time."""
    tokens: int | None = None
    seconds: float | None = None
    """Run time of all sessions together."""


class FleetSession(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    tenant: str
    state: State
    worker: str | None
    options: RunOptions
    outcome: Outcome | None
    tokens: int
    seconds: float
    created: datetime
    changed: datetime


class FleetRequest(msgspec.Struct, frozen=True):
    session: str
    request: PermissionRequest


class FleetSessions:
    """The sessions in one database. It can be used from any thread of any machine."""

    def __init__(self, url: str, *, pooled: bool = False) -> None:
        """StoreError if the database cannot be used. `pooled`: keeps connections for the next sessions."""
        self.url, self._pool = url, ConnectionPool() if pooled else None
        self._database = PostgresDatabase(SessionScope(url=url, session=""), "", FLEET)

    def close(self) -> None:
        self._database.close()
        self.close_unused(0.0)

    def close_unused(self, seconds: float) -> None:
        """Closes the kept connections that no session used for so long."""
        if self._pool is not None:
            self._pool.close_unused(seconds)

    def build_scope(self, session: str, epoch: int | None = None) -> SessionScope:
        return SessionScope(url=self.url, session=session, epoch=epoch, pool=self._pool)

    # For programs and people

    def submit(self, prompt: str, options: RunOptions, *, session: str | None = None, tenant: str = "") -> str:
        """Gives a new or idle session a prompt. A worker runs it. Returns the id of the session.

        BusySessionError if the session is at work, TenantLimitError if the tenant has reached a limit.
        """
        session = check_session_id(session or make_id("s"))
        found = self.find(session)
        if found is not None and (found.options.workspace, found.tenant) != (options.workspace, tenant):
            raise UsageError(f"session {session} has another workspace or tenant; choose another id")
        if found is None and self._database.row(_HAS_AUDIT, (session,)) is not None:
            raise UsageError(f"session {session} was removed, and its audit is kept; choose another id")
        self._check_limits(tenant, session)
        lock = options.build_lock(session)

        with closing(self._open_journal(session)) as database:
            journal = SessionJournal(database, session, f"submit-{os.urandom(6).hex()}")
            waiting = Messages(journal).list_prompts()  # the last run did not take them, so they come first
            taking = waiting[-1].number if waiting else 0
            text = "\n\n".join((*(one.text for one in waiting), escape_surrogates(prompt)))
            message = UserMessage(message_id=make_id("m"), text=text)
            event = (User, {"message_id": message.message_id, "text": message.text})

            def create(_first: int) -> None:
                row = (session, tenant, "queued", lock, encode(options))
                if database.execute(_CREATE, row).rowcount != 1:
                    problem = f"session {session} has an open turn; answer its requests, or wait for its end"
                    raise BusySessionError(problem)
                taken = database.execute("DELETE FROM prompt WHERE number <= ?", (taking,)).rowcount
                if taken != len(waiting):
                    raise BusySessionError(f"session {session} has just had a turn")
                database.execute(*build_insert(message))
                database.execute(*build_job(session, lock))

            last = Messages(journal).last()
            if isinstance(last, AssistantMessage) and last.calls:
                problem = f"session {session} has an open turn; continue it with handrail fleet resume"
                raise BusySessionError(problem)
            journal.write((event,), create)
        return session

    def queue(self, session: str, prompt: str) -> bool:
        """Keeps a prompt for the model, with its next results or after its turn. False if there is no open turn.

        BusySessionError if too many wait.
        """
        with closing(self._open_journal(session)) as database, database.lock, database.transaction:
            row = database.execute(_LOCK_STATE, (session,)).fetchone()
            if row is None or row[0] not in _OPEN_STATES:
                return False
            if database.execute("SELECT count(*) FROM prompt").fetchone()[0] >= _MAX_PROMPTS:
                raise BusySessionError(f"{_MAX_PROMPTS} prompts wait for the turn of session {session}")
            database.execute(*build_prompt(escape_surrogates(prompt)))
            if row[0] != "waiting":  # the run may have looked for prompts for the last time
                database.execute(*build_job(session, row[1]))
        return True

    def create(self, options: RunOptions, tenant: str = "") -> str:
        """Makes a session that waits for its first prompt. Returns its id."""
        session = make_id("s")
        row = (session, tenant, "idle", options.build_lock(session), encode(options))
        self._write(session, (ModeEvent, {"mode": options.mode}), (_CREATE, row))
        return session

    def set_mode(self, session: FleetSession, mode: Mode) -> None:
        """Changes the mode of the next run. BusySessionError if a run may have begun."""
        changed = (encode(msgspec.structs.replace(session.options, mode=mode)), session.id)
        self._write(session.id, (ModeEvent, {"mode": mode}), (_SET_MODE, changed))

    def delete(self, session: str) -> None:
        """Removes a session, but not its audit. BusySessionError if its turn is open."""
        with self._database.lock, self._database.transaction:
            if self._database.execute(_DELETE, (session,)).rowcount != 1:
                raise BusySessionError(f"session {session} has an open turn")
            for statement in _DELETE_ROWS:
                self._database.execute(statement, (session,))

    def list_waiting(self, after: str = "", limit: int = 1000) -> list[FleetRequest]:
        """The requests without an answer, the oldest first. `after`: only requests with a greater id."""
        rows = self._database.rows(_WAITING, (after, limit))
        return [FleetRequest(session, decode_json(data, PermissionRequest)) for session, data in rows]

    def answer(self, request_id: str, answer: Answer, *, shown: PermissionRequest | None = None) -> str:
        """Answers a request. With the last answer of a batch, a worker runs the batch. Returns the session.

        `shown` binds an approval to the revision that the person saw. UsageError if the request had an answer.
        """
        row = self._database.row(_OPEN, (request_id,))
        if row is None:
            raise UsageError(f"no permission request {render_value(request_id[:80])} is waiting")
        session: str = row[0]
        with closing(self._open_journal(session)) as database:
            journal = SessionJournal(database, session, f"answer-{os.urandom(6).hex()}")
            while (stored := find_stored_request(database, request_id)) is not None and not stored.answered:
                bound = answer if shown is None else bind_answer(shown, answer)
                check_answer(stored.request, bound)
                event = build_answer_event(stored.request, bound)
                also = (build_job(session, self._find_lock(session)),)
                if save_answer(journal, stored, bound, event, new="ready", also=also) is not None:
                    return session
        raise UsageError(f"the permission request {render_value(request_id[:80])} was answered already")

    def reply(self, session: str, call_id: str, reply: Reply | None) -> None:
        """Replies to a question of the model. None dismisses the question."""
        insert = "INSERT INTO handrail.reply VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        lock = self._find_lock(session)
        with self._database.lock, self._database.transaction:
            if self._database.execute(insert, (session, call_id, encode(reply))).rowcount != 1:
                raise UsageError(f"the question {render_value(call_id[:80])} already has a reply")
            self._database.execute(*build_job(session, lock))

    def resume(self, session: str) -> None:
        """Lets a worker continue a turn that failed."""
        lock = self._find_lock(session)
        with self._database.lock, self._database.transaction:
            self._database.execute(*build_job(session, lock))

    def cancel(self, session: str) -> bool:
        """Ends the turn that runs or waits. Returns whether there is one."""
        with self._database.lock, self._database.transaction:
            row = self._database.execute(_CANCEL, (session,)).fetchone()
            if row is not None and row[0] == "waiting":
                self._database.execute(*build_job(session, row[1]))
        return row is not None

    def find(self, session: str) -> FleetSession | None:
        row = self._database.row(f"{_INFO} WHERE id = ?", (session,))
        return _read_summary(row) if row else None

    def list_sessions(self, *states: State, limit: int = 1000, text: str = "") -> list[FleetSession]:
        """The sessions in some states, or all, the last changed first. `text`: part of an id or of a first prompt."""
        known = f"state IN ({', '.join('?' * len(states))})" if states else "true"
        matches = _MATCHES if text else "? = ''"
        rows = self._database.rows(
            f"{_INFO} WHERE {known} AND {matches} ORDER BY changed DESC LIMIT ?", (*states, text, limit)
        )
        return list(map(_read_summary, rows))

    def events(self, session: str, after: int = 0) -> list[AnyEvent | BrokenEvent]:
        """The events of a session after a number."""
        return list(self.open_view(session).events(after))

    def rows(self, query: str, values: Row = ()) -> list[Row]:
        return self._database.rows(query, values)

    def open_view(self, session: str) -> SessionJournal:
        """The journal for reading. It holds no connection."""
        return SessionJournal(SessionReader(self.build_scope(session)), session, "")

    def list_audit(self, session: str, limit: int) -> list[ChainedRecord]:
        """The last audit records of a session that were not changed, the last first."""
        query = "SELECT line FROM handrail.audit_line WHERE scope = ? ORDER BY seq DESC LIMIT ?"
        found = (decode_record(row[0]) for row in self._database.rows(query, (session, limit)))
        return [one[0] for one in found if one is not None]

    def verify(self, session: str) -> Verification:
        """Compares the audit chain of a session with its journal. A call that just ended may lack its record yet."""
        with closing(SharedStore(self.build_scope(session))) as store:
            return store.verify()

    def set_limits(self, tenant: str, limits: TenantLimits) -> None:
        upsert = """
            INSERT INTO handrail.tenant VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE
            SET sessions = excluded.sessions, tokens = excluded.tokens, seconds = excluded.seconds
        """
        self._database.run(upsert, (tenant, limits.sessions, limits.tokens, limits.seconds))

    # For workers

    def claim(self, session: str, worker: str) -> Claim | None:
        """Claims a session. Writes of earlier workers fail from now on. None if it does not exist."""
        with self._database.lock, self._database.transaction:
            row = self._database.execute(_CLAIM, (worker, session, session)).fetchone()
        if row is None:
            return None
        epoch, tenant, options, tries, base, cancelled = row
        return Claim(
            session=session,
            epoch=epoch,
            tenant=tenant,
            options=decode_json(options, RunOptions),
            tries=tries,
            base=base,
            cancelled=cancelled,
        )

    def save_base(self, claim: Claim, commit: str) -> None:
        update = "UPDATE handrail.session SET base = ? WHERE id = ? AND epoch = ?"
        self._database.run(update, (commit, claim.session, claim.epoch))

    def is_current(self, claim: Claim) -> bool:
        query = "SELECT 1 FROM handrail.session WHERE id = ? AND epoch = ?"
        return self._database.row(query, (claim.session, claim.epoch)) is not None

    def release(
        self,
        claim: Claim,
        state: State,
        outcome: Outcome,
        *,
        runners: Iterable[str] = (),
        tokens: int = 0,
        seconds: float = 0.0,
    ) -> None:
        """The last act of a worker. `runners`: those with unsettled work. StaleWorkerError if the claim is void."""
        unsettled = "".join(f"{runner} " for runner in runners)
        values = (state, encode(outcome), unsettled, tokens, seconds, claim.session, claim.epoch)
        if self._database.run(_RELEASE, values) != 1:
            raise StaleWorkerError("another worker has taken over this session")

    def list_cancelled(self, worker: str) -> list[str]:
        query = "SELECT id FROM handrail.session WHERE state = 'running' AND worker = ? AND cancelled"
        return [row[0] for row in self._database.rows(query, (worker,))]

    def take_replies(self, session: str) -> list[tuple[str, Reply | None]]:
        rows = self._database.rows("SELECT call_id, data FROM handrail.reply WHERE session = ?", (session,))
        return [(call_id, decode_json(data, Reply | None)) for call_id, data in rows]

    def drop_reply(self, session: str, call_id: str) -> None:
        self._database.run("DELETE FROM handrail.reply WHERE session = ? AND call_id = ?", (session, call_id))

    def measure_tenant(self, tenant: str, session: str = "") -> tuple[TenantLimits, TenantLimits]:
        """The limits of a tenant, and what it uses. `session` does not count as one of its sessions."""
        used = self._database.rows(_USED, (session, tenant))[0]
        return self.find_limits(tenant), TenantLimits(sessions=used[0], tokens=int(used[1]), seconds=float(used[2]))

    def find_limits(self, tenant: str) -> TenantLimits:
        row = self._database.row("SELECT sessions, tokens, seconds FROM handrail.tenant WHERE name = ?", (tenant,))
        sessions, tokens, seconds = row or (None, None, None)
        return TenantLimits(sessions=sessions, tokens=tokens, seconds=seconds)

    def _check_limits(self, tenant: str, session: str) -> None:
        if self.find_limits(tenant) == TenantLimits():
            return  # what it uses takes longer to find, the more sessions it had
        limits, used = self.measure_tenant(tenant, session)
        for name in ("sessions", "tokens", "seconds"):
            limit = getattr(limits, name)
            if limit is not None and getattr(used, name) >= limit:
                raise TenantLimitError(f"tenant {render_value(tenant)} has reached its limit of {limit} {name}")

    def _write(self, session: str, event: PendingEvent, statement: tuple[str, Row]) -> None:
        """Appends an event, if a statement changes one row."""
        with closing(self._open_journal(session)) as database:

            def execute(_first: int) -> None:
                if database.execute(*statement).rowcount != 1:
                    raise BusySessionError(f"session {session} has a running turn")

            SessionJournal(database, session, f"set-{os.urandom(6).hex()}").write((event,), execute)

    def _open_journal(self, session: str) -> PostgresDatabase:
        return PostgresDatabase(self.build_scope(session), "")

    def _find_lock(self, session: str) -> str:
        row = self._database.row("SELECT lock FROM handrail.session WHERE id = ?", (session,))
        if row is None:
            raise UsageError(f"there is no session {render_value(session[:80])}")
        return row[0]


def build_job(session: str, lock: str) -> tuple[str, Row]:
    """The statement that makes a worker run a session. A job too many does no harm: it finds nothing to do."""
    return _DEFER, (QUEUE, TASK, lock, encode({"session": session}).decode())


def build_outcome(turn: Turn, branch: str | None) -> Outcome:
    return Outcome(reason=turn.reason, text=turn.text, branch=branch, code=turn.code, message=turn.message)


def prepare_database(url: str) -> None:
    """Makes the tables of handrail and of procrastinate, or applies the steps that they lack."""
    migrate(url)
    schema = (resources.files("procrastinate.sql") / "schema.sql").read_bytes()
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(4727012)")
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {JOBS}; SET LOCAL search_path = {JOBS}".encode())
            found: Any = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
            if found[0] is None:
                connection.execute(schema)
    except psycopg.Error as error:
        raise build_open_error(error) from error


def _read_summary(row: Row) -> FleetSession:
    name, tenant, state, worker, options, outcome, tokens, seconds, created, changed = row
    return FleetSession(
        id=name,
        tenant=tenant,
        state=state,
        worker=worker,
        options=decode_json(options, RunOptions),
        outcome=decode_json(outcome, Outcome) if outcome else None,
        tokens=tokens,
        seconds=seconds,
        created=created,
        changed=changed,
    )
