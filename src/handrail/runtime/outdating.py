"""Whether what a question shows is still so: what others changed since it was put."""

import os

from handrail.changes.layered.trial import Examined
from handrail.protocol.error import ToolError
from handrail.protocol.permission import PermissionRequest
from handrail.runtime.session import Session
from handrail.runtime.trials import sealed_in, tried_on
from handrail.store.requests import requests_of_batch

GONE = "what was tried is not kept any more"
ELSE = "what an earlier call of its batch would change"


def outdated(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    """The files that others changed since; where it is more than files, that in words."""
    sealed = sealed_in(request)
    session.outside.refresh()
    try:
        if sealed is None:
            return _changed_files(session, request)
        if not _stands(session, request):
            return (ELSE,)
        return _stale(session, sealed, tried_on(request))
    except ToolError:
        return (GONE,)
    finally:
        session.workspace.let_go()


def _stands(session: Session, request: PermissionRequest) -> bool:
    """Whether what it was tried on top of is still to be kept, as it was then."""
    below = set(tried_on(request))
    for asked, said in requests_of_batch(session.journal.database, request.batch_id) if below else ():
        if said is None or said.kind not in {"deny", "output"}:
            below.discard(sealed_in(asked) or "")
    return not below


def _stale(session: Session, sealed: str, below: tuple[str, ...]) -> tuple[str, ...]:
    """Where it lies on other trials, what they would change is not changed yet: they are looked at in its place."""
    from handrail.changes.layered.committing import stale  # noqa: PLC0415  few commands are tried

    found: tuple[str, ...] = ()
    expected: set[str] = set()
    for name in (*below, sealed):
        examined = _examined(session, name)
        found += tuple(path for path in stale(session.workspace, examined) if path not in expected)
        expected |= {os.fsdecode(step.path) for step in examined.steps}
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
