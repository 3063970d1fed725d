"""Adds the audit lines that killed processes left out, without opening their sessions."""

from contextlib import suppress

from handrail.protocol.errors import StoreError
from handrail.runtime.locks import Locks
from handrail.runtime.recovery import RECOVERY_SECONDS, AuditSession, restore_lines
from handrail.runtime.registry import ToolSet
from handrail.store.audit import AuditChain
from handrail.store.runner import list_dead_runners
from handrail.store.sessions import open_journal
from handrail.store.state_dir import StateFolder


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
