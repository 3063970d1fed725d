"""Settles the calls of killed processes: each gets its result, each result its audit record."""

import os
from contextlib import suppress

from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import Notice, ToolCallEnd, ToolCallError
from handrail.runtime.execute import close_call
from handrail.runtime.locks import Locks
from handrail.runtime.pending_call import load_call
from handrail.runtime.registry import ToolSet
from handrail.runtime.results import build_audit_record, describe_interrupted
from handrail.runtime.session import Session
from handrail.runtime.undo import settle_dead_changes
from handrail.state import open_journal
from handrail.store.audit import AuditChain, forget_runner, list_unaudited
from handrail.store.inbox import list_open_answers
from handrail.store.journal import CallEntry, SessionJournal
from handrail.store.runner import is_dead, list_dead_runners, remove_runner
from handrail.store.state_dir import StateFolder

_LOCK_SECONDS = 10.0


def recover(session: Session) -> None:
    """Settles what killed processes left in this session. Lists one folder if there is nothing to settle."""
    if not list_dead_runners(session.folder):
        return
    lock = session.locks.of(f"recovery:{session.folder}")
    try:
        if not lock.take(_LOCK_SECONDS):
            return  # another process does it
        for runner in list_dead_runners(session.folder):
            _restore_records(session.journal, session.chain, session.offer, runner)
            for entry in session.journal.list_unfinished(runner, "started"):
                if entry.facts.command is not None:
                    session.commands.kill_orphans()
                _close_crashed(session, entry)
            # Answered calls that did not begin run in the next process that needs their results.
            session.journal.release_claims(runner)
            with suppress(StoreError):  # a grant that cannot be stored is asked for again
                for request, answer in list_open_answers(session.journal.database):
                    session.grants.remember(request, answer)
            forget_runner(session.journal, runner)
            remove_runner(session.folder, runner)
    finally:
        lock.release()
    session.journal.deliver()


def recover_workspace(session: Session) -> None:
    """Settles changes that killed processes of any session left half done in the workspace."""
    history = session.recorder.history
    others = history.others_at_work()
    if not others:
        return
    home = os.path.dirname(session.folder)
    with suppress(StoreError):  # an unreadable change log stops changes only
        settle_dead_changes(session)
        for runner, name in others.items():
            if is_dead(os.path.join(home, name), runner):
                history.forget_work(runner)


def restore_audit(state: StateFolder, offer: ToolSet) -> int:
    """Adds the audit records that killed processes left out, without opening their sessions. Returns their number."""
    folders = [folder for folder in state.sessions() if list_dead_runners(folder)]
    if not folders:
        return 0
    chain, locks, restored = AuditChain(state.audit), Locks(state.locks()), 0
    try:
        for folder in folders:
            with suppress(StoreError):  # one unreadable session does not stop the others
                restored += _restore_session(folder, chain, locks, offer)
    finally:
        chain.close()
    return restored


def _restore_records(journal: SessionJournal, chain: AuditChain, offer: ToolSet, runner: str) -> int:
    """Adds the audit records of results that a runner recorded last. Returns their number."""
    call_ids, start = list_unaudited(journal, runner)
    audited = chain.contains(journal.session_id, set(call_ids), start) if call_ids else set[str]()
    restored = 0
    for call_id in call_ids:
        entry = journal.entry(call_id)
        if call_id not in audited and entry is not None:
            event = journal.event(entry.end_seq or 0)
            if isinstance(event, ToolCallEnd | ToolCallError):
                pending = load_call(journal, offer, entry, budget=0)
                chain.append(build_audit_record(journal.session_id, pending, event.result))
                restored += 1
    return restored


def _close_crashed(session: Session, entry: CallEntry) -> None:
    pending = load_call(session.journal, session.offer, entry, session.characters)
    pending.error = None
    message = f"The runtime ended while this call ran. {describe_interrupted(session, pending)}"
    pending.fail(ToolError("INTERRUPTED", message))
    pending.pending_events.append((Notice, {"code": "INTERRUPTED", "text": f"Call {entry.id} was cut off by a crash."}))
    close_call(session, pending)


def _restore_session(folder: str, chain: AuditChain, locks: Locks, offer: ToolSet) -> int:
    lock = locks.of(f"recovery:{folder}")
    try:
        if not lock.take(_LOCK_SECONDS):
            return 0  # another process opens the session just now
        with open_journal(folder) as journal:
            return sum(_restore_records(journal, chain, offer, runner) for runner in list_dead_runners(folder))
    finally:
        lock.release()
