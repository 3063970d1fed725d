"""Whether what a question shows is still so: what others changed since it was put."""

import os
from datetime import UTC, datetime, timedelta

from handrail.changes.layered.trial import Examined
from handrail.protocol.error import ToolError
from handrail.protocol.permission import PermissionRequest
from handrail.runtime.session import Session
from handrail.runtime.waiting_trials import sealed_in, tried_on
from handrail.store.requests import calls_of_batch, requests_of_batch

GONE = "what was tried is not kept any more"
ELSE = "what an earlier call of its batch would change"
FRESH_FOR = timedelta(minutes=5)
"""After that a preview counts as old: a command also reads what is outside the workspace, and nobody watches that."""


def outdated(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    """The files that others changed since; where it is more than files, that in words."""
    sealed = sealed_in(request)
    session.outside.refresh()
    try:
        if sealed is None:
            return _changed_files(session, request)
        if not _stands(session, request):
            return (ELSE,)
        return _stale(session, request, sealed)
    except ToolError:
        return (GONE,)
    finally:
        session.workspace.let_go()


def is_fresh(session: Session, request: PermissionRequest) -> bool:
    """Whether a new call may be shown this request's preview: no input of the preview changed since. The inputs of a
    command are taken to be all files of the workspace. False if it is not certain."""
    if outdated(session, request):
        return False
    preview, history = request.preview, session.recorder.history
    if preview is None or preview.tried is None:
        return True  # `based_on` names all of its inputs
    if preview.time is None or not timedelta() <= datetime.now(UTC) - preview.time < FRESH_FOR:
        return False
    last = None if history.is_empty else next(history.log.latest(), None)
    if last is not None and last.time >= preview.time:
        return False
    from handrail.changes.layered.checking import is_unchanged_since  # noqa: PLC0415  few commands are tried

    return is_unchanged_since(session.workspace, _examined(session, preview.tried.sealed).started)


def _stands(session: Session, request: PermissionRequest) -> bool:
    """Whether what it was tried on top of is still to be kept, as it was then."""
    below = set(tried_on(request))
    if not below:
        return True
    database = session.journal.database
    below -= set(calls_of_batch(database, request.batch_id))
    for asked, said in requests_of_batch(database, request.batch_id):
        if said is not None and said.kind in {"deny", "output"}:
            below |= {asked.tool_call_id} & set(tried_on(request))
        else:
            below.discard(sealed_in(asked) or "")
    return not below


def _stale(session: Session, request: PermissionRequest, sealed: str) -> tuple[str, ...]:
    """What others changed of what it would change, and of what it was tried on top of. Where an earlier call changes a
    file first, that file is that call's to look at."""
    from handrail.changes.layered.committing import stale  # noqa: PLC0415  few commands are tried

    below, found = tried_on(request), list[str]()
    for asked, _ in requests_of_batch(session.journal.database, request.batch_id) if below else ():
        if asked.tool_call_id in below:
            found += _changed_files(session, asked)
        elif sealed_in(asked) in below:
            found += _stale(session, asked, sealed_in(asked) or "")
    examined = _examined(session, sealed)
    expected = {os.fsdecode(path) for path in examined.expected}
    found += [path for path in stale(session.workspace, examined) if path not in expected]
    return tuple(dict.fromkeys(found))


def _examined(session: Session, sealed: str) -> Examined:
    from handrail.changes.layered.sealing import unseal  # noqa: PLC0415  few commands are tried

    return unseal(session.recorder.history, sealed).examined


def _changed_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    return tuple(basis.path for basis in request.based_on if _now(session, basis.path) != (basis.real, basis.hash))


def _now(session: Session, path: str) -> tuple[str | None, str | None]:
    try:
        return session.workspace.look(path, "read").real, session.workspace.hash_of(path)
    except ToolError:
        return None, None
