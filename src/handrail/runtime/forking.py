"""A second session that goes another way from here."""

import os

from handrail.runtime.session import Session
from handrail.store.state_dir import check_session_id, make_private
from handrail.store.transcript import fork_journal


def fork_session(session: Session, session_id: str) -> str:
    """Begins a session of the same workspace with the transcript of this one; its id."""
    folder = os.path.join(os.path.dirname(session.folder), check_session_id(session_id))
    make_private(folder)
    fork_journal(session.journal, os.path.join(folder, "journal.db"), session_id)
    return session_id
