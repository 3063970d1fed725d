"""Stored previews of the requests that wait: which those are, and how they are deleted."""

from handrail.protocol.permissions import PermissionRequest, Preview
from handrail.runtime.session import PendingCall, Session


def find_preview_id(request: PermissionRequest) -> str | None:
    """The stored preview of a request, if it has one."""
    return get_preview_id(request.preview)


def get_preview_id(preview: Preview | None) -> str | None:
    """The same of what is shown."""
    return preview.tried.sealed if preview is not None and preview.tried is not None else None


def list_base_previews(request: PermissionRequest) -> tuple[str, ...]:
    """The previews below the one of a request."""
    preview = request.preview
    return preview.tried.on if preview is not None and preview.tried is not None else ()


def forget_preview(session: Session, pending: PendingCall) -> None:
    """A step behind the last: the call has its result, so nobody can say yes to its preview any more."""
    if pending.preview_id is not None:
        drop_preview(session, pending.preview_id)
        pending.preview_id = None


def drop_preview(session: Session, sealed: str) -> None:
    """Deletes a stored preview; what cannot be removed now is left to the sweep."""
    from handrail.changes.layered.sealing import delete_preview  # noqa: PLC0415  few commands are tried

    delete_preview(session.recorder.history, sealed)
