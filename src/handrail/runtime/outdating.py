"""Whether what a question shows is still so: what others changed since it was put."""

from handrail.protocol.error import ToolError
from handrail.protocol.permission import PermissionRequest
from handrail.runtime.session import Session
from handrail.runtime.trials import sealed_in

GONE = "what was tried is not kept any more"


def outdated(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    """The files that others changed since."""
    sealed = sealed_in(request)
    session.outside.refresh()
    try:
        return _changed_files(session, request) if sealed is None else _stale(session, sealed)
    finally:
        session.workspace.let_go()


def _stale(session: Session, sealed: str) -> tuple[str, ...]:
    from handrail.changes.layered.committing import stale  # noqa: PLC0415  few commands are tried
    from handrail.changes.layered.sealing import unseal  # noqa: PLC0415

    try:
        trial = unseal(session.recorder.history, sealed)
    except ToolError:
        return (GONE,)
    return stale(session.workspace, trial.examined)


def _changed_files(session: Session, request: PermissionRequest) -> tuple[str, ...]:
    return tuple(basis.path for basis in request.based_on if _now(session, basis.path) != (basis.real, basis.hash))


def _now(session: Session, path: str) -> tuple[str | None, str | None]:
    try:
        return session.workspace.look(path, "read").real, session.workspace.hash_of(path)
    except ToolError:
        return None, None
