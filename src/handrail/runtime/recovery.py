"""Settles calls after a crash."""

import os
from contextlib import suppress
from typing import Any

import msgspec

from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import Notice, ToolCallEnd, ToolCallError
from handrail.protocol.results import ToolResult
from handrail.runtime.execute import close_call
from handrail.runtime.locks import Locks
from handrail.runtime.pending_call import find_preview_id, load_call
from handrail.runtime.registry import ToolSet
from handrail.runtime.results import build_audit_record, describe_interrupted, flush_audit
from handrail.runtime.session import Session
from handrail.store.approvals import has_begun_calls, release_claims
from handrail.store.audit import AuditChain, forget_runner, list_unaudited
from handrail.store.inbox import find_last_request
from handrail.store.journal import CallEntry, SessionJournal
from handrail.store.runner import Runner, is_dead, list_dead_runners, remove_runner
from handrail.store.sessions import open_journal
from handrail.store.state_dir import StateFolder

# § [runtime.recovery] Settles what a process left undone when it was killed: every call gets its result, every
# § result its audit line.

RECOVERY_SECONDS = 10.0


def recover(session: Session) -> None:
    """To be called when a session is opened, and where a call does not get on. Costs one look into its folder when
    nothing is left undone."""
    if not list_dead_runners(session.folder):
        return
    lock = session.locks.of(f"recovery:{session.folder}")
    try:
        if not lock.take(RECOVERY_SECONDS):
            return  # somebody else is at it
        for runner in list_dead_runners(session.folder):
            _settle(session, runner)
            with suppress(StoreError):  # what cannot be kept is asked for again
                session.grants.remember_all(session.journal.database)
            forget_runner(session.journal, runner)
            remove_runner(session.folder, runner)
    finally:
        lock.release()
    session.journal.deliver()


def settle_others(session: Session) -> None:
    """To be called when a session is opened: what a killed process left half changed in the workspace is settled,
    whatever its session was. Costs one look into a folder when nobody else is at work."""
    history = session.recorder.history
    others = history.others_at_work()
    if not others:
        return
    from handrail.runtime.undo import settle_dead_changes  # noqa: PLC0415  hardly ever needed

    home = os.path.dirname(session.folder)
    with suppress(StoreError):  # a change log that cannot be read stops changes, and nothing else
        settle_dead_changes(session)
        for runner, name in others.items():
            if is_dead(os.path.join(home, name), runner):
                history.forget_work(runner)


def end_work(session: Session, runner: Runner) -> None:
    """To be called when a session is closed. What cannot be settled now is left to whoever opens it next."""
    end = runner.release
    try:
        with session.closing:
            flush_audit(session)
        if not has_begun_calls(session.journal):
            forget_runner(session.journal, runner.id)
            end = runner.close
    except StoreError:
        pass
    finally:
        end()


class AuditSession(msgspec.Struct, frozen=True):
    """As much of a session as its missing audit lines need."""

    id: str
    journal: SessionJournal
    chain: AuditChain
    offer: ToolSet
    characters: int = 0


def _settle(session: Session, runner: str) -> None:
    restore_lines(session, runner)
    for entry in session.journal.unfinished(runner, "started"):
        if entry.facts.command is not None:
            session.commands.kill_orphans()
        _seal_interrupted(session, entry)
    # Of what was answered and not begun nothing is lost: whoever asks for it next runs it, and nobody is asked again.
    release_claims(session.journal.database, runner)


def restore_lines(session: Session | AuditSession, runner: str) -> int:
    """Results that were written down and did not get their line before the end; how many."""
    calls, start = list_unaudited(session.journal, runner)
    found = session.chain.contains(session.id, set(calls), start) if calls else set[str]()
    restored = 0
    for call_id in calls:
        entry = session.journal.entry(call_id)
        if call_id not in found and entry is not None:
            pending = load_call(session.journal, session.offer, entry, session.characters)
            result = _result_of(session, entry)
            if result is not None:
                session.chain.append(build_audit_record(session.id, pending, result))
                restored += 1
    return restored


def _seal_interrupted(session: Session, entry: CallEntry) -> None:
    pending = load_call(session.journal, session.offer, entry, session.characters)
    pending.error = None
    with suppress(StoreError):  # its preview goes with the result
        asked = find_last_request(session.journal.database, entry.id)
        pending.preview_id = find_preview_id(asked) if asked is not None else None
    message = f"The runtime ended while this call ran. {describe_interrupted(session, pending)}"
    pending.fail(ToolError("INTERRUPTED", message))
    pending.pending_events.append((Notice, {"code": "INTERRUPTED", "text": f"Call {entry.id} was cut off by a crash."}))
    close_call(session, pending)


def _result_of(session: Session | AuditSession, entry: CallEntry) -> ToolResult[Any] | None:
    event = session.journal.event(entry.end_seq or 0)
    return event.result if isinstance(event, ToolCallEnd | ToolCallError) else None


# § [runtime.restoring] Adds the audit lines that killed processes left out, without opening their sessions.


def list_unsettled_sessions(state: StateFolder) -> list[str]:
    """The folders of sessions that a killed process was at work on and nobody has opened since."""
    return [folder for folder in state.sessions() if list_dead_runners(folder)]


def restore_audit(state: StateFolder, offer: ToolSet) -> int:
    """Adds every missing line; how many. What else such a session needs is done when it is opened."""
    folders = list_unsettled_sessions(state)
    if not folders:
        return 0
    chain, locks, restored = AuditChain(state.audit), Locks(state.locks()), 0
    try:
        for folder in folders:
            with suppress(StoreError):  # one that cannot be read stops none of the others
                restored += _restore(folder, chain, locks, offer)
    finally:
        chain.close()
    return restored


def _restore(folder: str, chain: AuditChain, locks: Locks, offer: ToolSet) -> int:
    lock = locks.of(f"recovery:{folder}")
    try:
        if not lock.take(RECOVERY_SECONDS):
            return 0  # somebody opens the session just now
        with open_journal(folder) as journal:
            remains = AuditSession(journal.session_id, journal, chain, offer)
            return sum(restore_lines(remains, runner) for runner in list_dead_runners(folder))
    finally:
        lock.release()
