"""Calls of one batch were approved together: what one of them changed is no surprise to those that come after it."""

import msgspec

from handrail.protocol.change import ChangeSet
from handrail.protocol.error import ToolError
from handrail.runtime.session import Flight, Session
from handrail.runtime.waiting_trials import sealed_in
from handrail.store.requests import request_about

_NOT_KEPT = (
    "This was tried on top of what an earlier call of its batch would change, and that was not kept, or is another"
)


def stack(session: Session, done: Flight, later: list[Flight]) -> None:
    """To be called when a call has its result: those that were approved with it go by what it left."""
    if not later:
        return
    changes = _changed(done)
    if changes is not None:
        _expect(changes, later)
    if any(flight.missing for flight in later):
        _check_below(session, done, later)


def _changed(flight: Flight) -> ChangeSet | None:
    if flight.output is None:
        return flight.made
    changes: object = getattr(flight.output, "changes", None)  # a custom tool may have returned anything
    return changes if isinstance(changes, ChangeSet) else None


def _expect(changes: ChangeSet, later: list[Flight]) -> None:
    after = {change.path: change.after for change in changes.changes}
    for flight in later:
        flight.based_on = tuple(
            msgspec.structs.replace(basis, hash=after.get(basis.real or "", basis.hash)) for basis in flight.based_on
        )


def _check_below(session: Session, done: Flight, later: list[Flight]) -> None:
    """A command that was tried on top of another one is kept only where that was. What it printed can be had anyway."""
    if _changed(done) is not None:
        asked = done.asked or request_about(session.journal.database, done.call.tool_call_id)
        sealed = sealed_in(asked) if asked is not None else None
        for flight in later:
            flight.missing.discard(sealed or done.call.tool_call_id)
    following = later[0]
    if following.missing and following.answer is not None and following.answer.kind != "output":
        following.fail(ToolError("CONFLICT", f"{_NOT_KEPT}. Nothing was kept. Call again."))
