"""Adds the audit lines that killed processes left out, without opening their sessions."""

from contextlib import suppress

from handrail.protocol.error import StoreError
from handrail.runtime.locks import Locks
from handrail.runtime.recovery import RECOVERY_SECONDS, Remains, restore_lines
from handrail.runtime.registry import Offer
from handrail.store.archive import reading
from handrail.store.audit import Chain
from handrail.store.folder import StateFolder
from handrail.store.runner import dead_runners


def unsettled(state: StateFolder) -> list[str]:
    """The folders of sessions that a killed process was at work on and nobody has opened since."""
    return [folder for folder in state.sessions() if dead_runners(folder)]


def restore_audit(state: StateFolder, offer: Offer) -> int:
    """Adds every missing line; how many. What else such a session needs is done when it is opened."""
    folders = unsettled(state)
    if not folders:
        return 0
    chain, locks, restored = Chain(state.audit), Locks(state.locks()), 0
    try:
        for folder in folders:
            with suppress(StoreError):  # one that cannot be read stops none of the others
                restored += _restore(folder, chain, locks, offer)
    finally:
        chain.close()
    return restored


def _restore(folder: str, chain: Chain, locks: Locks, offer: Offer) -> int:
    lock = locks.of(f"recovery:{folder}")
    try:
        if not lock.take(RECOVERY_SECONDS):
            return 0  # somebody opens the session just now
        with reading(folder) as journal:
            remains = Remains(journal.session_id, journal, chain, offer)
            return sum(restore_lines(remains, runner) for runner in dead_runners(folder))
    finally:
        lock.release()
