"""The last step of every tool that changes a file: new bytes take the place of the old ones."""

import hashlib

from handrail.tools.contract import Context
from handrail.workspace.ignore import TEMPORARY
from handrail.workspace.replace import Current, NewFolders, Written, replace
from handrail.workspace.walk import Landing


def save(context: Context, landing: Landing, before: Current | None, data: bytes, path: str) -> Written:
    """Puts `data` in the place of `before`, or creates the file with its parents; CONFLICT when it is not `before`."""
    if before is not None and before.data == data:
        return Written(before.hash, len(data), before.status.st_mode & 0o7777)
    context.check_cancelled()
    folders = NewFolders(landing.folder, landing.missing)
    try:
        temporary = temporary_name(context.session_id, context.tool_call_id)
        written = replace(folders.innermost, landing.name, data, before, temporary=temporary, path=path)
        folders.keep()
    finally:
        folders.close()
    return written


def temporary_name(session_id: str, call_id: str) -> str:
    """The name a call's unfinished file goes by: known, so that a crash leaves nothing that cannot be found.

    A hash, since an id is any text: it may hold a slash, be too long, or be another session's too.
    """
    return f"{TEMPORARY}{hashlib.sha256(f'{session_id} {call_id}'.encode()).hexdigest()[:32]}"
