"""Calls of one batch were approved together: what one of them changed is no surprise to those that come after it."""

import msgspec

from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import ToolError
from handrail.runtime.session import PendingCall, Session
from handrail.runtime.waiting_trials import find_preview_id
from handrail.store.inbox import find_last_request

_NOT_KEPT = (
    "This was tried on top of what an earlier call of its batch would change, and that was not kept, or is another"
)


def rebase_later_calls(session: Session, done: PendingCall, later: list[PendingCall]) -> None:
    """To be called when a call has its result: those that were approved with it go by what it left."""
    if not later:
        return
    changes = _changed(done)
    if changes is not None:
        _expect(changes, later)
    if any(flight.unmet_previews for flight in later):
        _check_below(session, done, later)


def _changed(pending: PendingCall) -> ChangeSet | None:
    if pending.output is None:
        return pending.change_set
    changes: object = getattr(pending.output, "changes", None)  # a custom tool may have returned anything
    return changes if isinstance(changes, ChangeSet) else None


def _expect(changes: ChangeSet, later: list[PendingCall]) -> None:
    after = {change.path: change.after for change in changes.changes}
    for pending in later:
        pending.bound_files = tuple(
            msgspec.structs.replace(basis, hash=after.get(basis.real or "", basis.hash))
            for basis in pending.bound_files
        )


def _check_below(session: Session, done: PendingCall, later: list[PendingCall]) -> None:
    """A command that was tried on top of another is committed only if that was. What it printed can be had anyway."""
    if _changed(done) is not None:
        asked = done.request or find_last_request(session.journal.database, done.call.tool_call_id)
        sealed = find_preview_id(asked) if asked is not None else None
        for pending in later:
            pending.unmet_previews.discard(sealed or done.call.tool_call_id)
    following = later[0]
    if following.unmet_previews and following.answer is not None and following.answer.kind != "output":
        following.fail(ToolError("CONFLICT", f"{_NOT_KEPT}. Nothing was kept. Call again."))
