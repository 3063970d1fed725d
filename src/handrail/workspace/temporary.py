"""The names of our own unfinished files."""

import hashlib

from handrail.workspace.ignore import TEMPORARY_PREFIX


def build_temporary_name(session_id: str, call_id: str) -> str:
    """The name a call's unfinished file goes by: known, so that a crash leaves nothing that cannot be found.

    A hash, since an id is any text: it may hold a slash, be too long, or be another session's too.
    """
    return f"{TEMPORARY_PREFIX}{hashlib.sha256(f'{session_id} {call_id}'.encode()).hexdigest()[:32]}"
