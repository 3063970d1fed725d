"""Whether what a question shows is still so: what others changed since it was put."""

import os
from datetime import UTC, datetime, timedelta

from handrail.changes.layered.trial import OverlayChanges
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import PermissionRequest
from handrail.runtime.session import Session
from handrail.runtime.waiting_trials import find_preview_id, list_base_previews
from handrail.store.approvals import list_batch_calls
from handrail.store.inbox import list_batch_requests
from handrail.workspace.facts import build_command_fact

GONE = "what was tried is not kept any more"
ELSE = "what an earlier call of its batch would change"
FRESH_FOR = timedelta(minutes=5)
"""After that a preview counts as old: a command also reads what is outside the workspace, and nobody watches that."""


def list_outdated_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    """The files that others changed since; where it is more than files, that in words."""
    sealed = find_preview_id(request)
    session.opened_roots.refresh()
    try:
        if sealed is None:
            return _changed_files(session, request)
        if not _stands(session, request):
            return (ELSE,)
        return _stale(session, request, sealed)
    except ToolError:
        return (GONE,)
    finally:
        session.workspace.drop_cached()


def is_fresh(session: Session, request: PermissionRequest) -> bool:
    """Whether a new call may be shown this request's preview: no input of the preview changed since. The inputs of a
    command are taken to be all files of the workspace. False if it is not certain."""
    if list_outdated_files(session, request):
        return False
    preview, history = request.preview, session.recorder.history
    if preview is None or preview.tried is None:
        return True  # `bound_files` names all of its inputs
    if preview.time is None or not timedelta() <= datetime.now(UTC) - preview.time < FRESH_FOR:
        return False
    last = None if history.is_empty else next(history.log.latest(), None)
    if last is not None and last.time >= preview.time:
        return False
    from handrail.changes.layered.checking import is_unchanged_since  # noqa: PLC0415  few commands are tried

    return is_unchanged_since(session.workspace, _examined(session, preview.tried.sealed).started)


def _stands(session: Session, request: PermissionRequest) -> bool:
    """Whether what it was tried on top of still waits to be committed, as it was then."""
    below = set(list_base_previews(request))
    if not below:
        return True
    database = session.journal.database
    below -= set(list_batch_calls(database, request.batch_id))
    for asked, said in list_batch_requests(database, request.batch_id):
        if said is not None and said.kind in {"deny", "output"}:
            below |= {asked.tool_call_id} & set(list_base_previews(request))
        else:
            below.discard(find_preview_id(asked) or "")
    return not below


def _stale(session: Session, request: PermissionRequest, sealed: str) -> tuple[str, ...]:
    """What others changed of what it would change, and of what it was tried on top of. Where an earlier call changes a
    file first, that file is that call's to look at."""
    from handrail.changes.layered.committing import list_stale_paths  # noqa: PLC0415  few commands are tried

    below, found = list_base_previews(request), list[str]()
    for asked, _ in list_batch_requests(session.journal.database, request.batch_id) if below else ():
        if asked.tool_call_id in below:
            found += _changed_files(session, asked)
        elif find_preview_id(asked) in below:
            found += _stale(session, asked, find_preview_id(asked) or "")
    examined = _examined(session, sealed)
    expected = {os.fsdecode(path) for path in examined.expected}
    found += [path for path in list_stale_paths(session.workspace, examined) if path not in expected]
    return tuple(dict.fromkeys(found))


def _examined(session: Session, sealed: str) -> OverlayChanges:
    from handrail.changes.layered.sealing import load_preview  # noqa: PLC0415  few commands are tried

    return load_preview(session.recorder.history, sealed).examined


def _changed_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    return tuple(basis.path for basis in request.bound_files if _now(session, basis.path) != (basis.real, basis.hash))


def _now(session: Session, path: str) -> tuple[str | None, str | None]:
    try:
        return build_command_fact(session.workspace, path, "read").real, session.workspace.hash_of(path)
    except ToolError:
        return None, None
