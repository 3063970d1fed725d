"""Trials that wait with the questions that show them: which those are, and how they are forgotten."""

from handrail.protocol.permission import PermissionRequest, Preview
from handrail.runtime.session import Flight, Session


def sealed_in(request: PermissionRequest) -> str | None:
    """The trial that a question shows, where it shows one."""
    return sealed_of(request.preview)


def sealed_of(preview: Preview | None) -> str | None:
    """The same of what is shown."""
    return preview.tried.sealed if preview is not None and preview.tried is not None else None


def tried_on(request: PermissionRequest) -> tuple[str, ...]:
    """The trials that the one that a question shows lies on."""
    preview = request.preview
    return preview.tried.on if preview is not None and preview.tried is not None else ()


def forget_trial(session: Session, flight: Flight) -> None:
    """A step behind the last: the call has its result, so nobody can say yes to its trial any more."""
    if flight.tried is not None:
        drop_trial(session, flight.tried)
        flight.tried = None


def drop_trial(session: Session, sealed: str) -> None:
    """Throws a sealed trial away; what cannot be removed now is left to the sweep."""
    from handrail.changes.layered.sealing import drop  # noqa: PLC0415  few commands are tried

    drop(session.recorder.history, sealed)
