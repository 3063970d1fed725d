"""Tries a command again that waits for an answer: as it is, or as a person changed it.

The question stays the same one, under its id; what it shows is replaced, in one step, as long as nobody has answered.
"""

from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.events import ToolCallPermissionRequired, ToolCallStart
from handrail.protocol.permissions import PermissionRequest
from handrail.runtime.closing import build_event_fields
from handrail.runtime.latch import load_request
from handrail.runtime.outdating import is_fresh
from handrail.runtime.pipeline import DECIDING, take_steps
from handrail.runtime.question import preview_and_build_request
from handrail.runtime.reloading import load_call, replace_command
from handrail.runtime.session import PendingCall, Session
from handrail.runtime.steps import digest_environment
from handrail.runtime.waiting_trials import drop_preview, find_preview_id, forget_preview
from handrail.store.approvals import NewCall, StoredRequest, list_batch_calls, replace_request
from handrail.store.inbox import find_last_request, list_batch_requests


def retry(session: Session, request_id: str, command: str | None) -> PermissionRequest:
    """Tries it anew and puts what came of that in the place of the question. ToolError where policy refuses the command
    as it was changed: then the question stays as it was."""
    asked = load_request(session, request_id)
    if not asked.answered and asked.request.command is None:
        raise UsageError(f"the permission request {request_id!r} is about no command, so there is nothing to try")
    return _ask_again(session, asked, command, same=True)


def refresh(session: Session, request_id: str) -> PermissionRequest:
    """The request if its preview is fresh, else one with a new preview and a new id: whoever saw the old preview has
    not said yes to the new one. ToolError if there can be none now: then the request stays as it was."""
    asked = load_request(session, request_id)
    if not asked.answered and is_fresh(session, asked.request):
        return asked.request
    return _ask_again(session, asked, None, same=False)


def _ask_again(session: Session, asked: StoredRequest, command: str | None, *, same: bool) -> PermissionRequest:
    """Puts the question anew, in the place of the one that waits. The call can be cancelled meanwhile. `same`: whether
    it keeps its id."""
    request_id, here = asked.request.id, (asked.request.tool_call_id,)
    if asked.answered:
        raise UsageError(f"the permission request {request_id!r} was answered already")
    pending = _flight(session, asked.request, command)
    session.cancel_tokens.begin(here)
    try:
        anew = _asked_anew(session, pending, asked.request)
        if same:
            anew = replace(anew, id=request_id, revision=asked.request.revision + 1)
        drafts = ((ToolCallPermissionRequired, {**build_event_fields(pending), "permission_request": anew}),)
        call = NewCall(pending.call.tool_call_id, pending.call_context, drafts)
        if not replace_request(session.journal, asked, anew, call):
            raise UsageError(_too_late(session, request_id))
    except Exception:
        forget_preview(session, pending)
        raise
    except BaseException:
        _forget_unless_put(session, pending)
        raise
    finally:
        session.cancel_tokens.end(here)
        session.workspace.drop_cached()
    if old := find_preview_id(asked.request):
        drop_preview(session, old)
    session.journal.deliver()
    return anew


def _forget_unless_put(session: Session, pending: PendingCall) -> None:
    """An interrupt may come when the question shows the new preview already."""
    with suppress(StoreError):
        asked = find_last_request(session.journal.database, pending.call.tool_call_id)
        if asked is None or find_preview_id(asked) != pending.preview_id:
            forget_preview(session, pending)


def _flight(session: Session, request: PermissionRequest, command: str | None) -> PendingCall:
    """The call, judged afresh. One that nobody would have to be asked about still waits: somebody is at it."""
    entry = session.journal.entry(request.tool_call_id)
    if entry is None:
        raise UsageError(f"the call of the permission request {request.id!r} is not in this session")
    pending = load_call(session.journal, session.offer, entry, session.characters)
    if command is not None:
        pending.replace_call(replace_command(pending.call, command))
    if request.environment is not None and digest_environment(session) != request.environment:
        message = "The command would get other environment variables here and now than when the person was asked."
        raise ToolError("CONFLICT", f"{message} Nothing was tried. Try again where it was asked.")
    take_steps(session, pending, DECIDING)
    _raise_error(pending)
    return pending


def _asked_anew(session: Session, pending: PendingCall, request: PermissionRequest) -> PermissionRequest:
    found: list[PermissionRequest] = []

    def put(session: Session, pending: PendingCall) -> None:
        found.append(preview_and_build_request(session, pending, _earlier(session, request)))

    take_steps(session, pending, (put,))
    _raise_error(pending)
    edited = found[0].command != _called(session, request)
    return replace(found[0], edited=edited)


def _earlier(session: Session, request: PermissionRequest) -> list[PendingCall]:
    """The calls before it in its batch that have no result yet, as they were judged and answered so far."""
    database = session.journal.database
    calls = list_batch_calls(database, request.batch_id)
    found = {asked.tool_call_id: (asked, said) for asked, said in list_batch_requests(database, request.batch_id)}
    earlier: list[PendingCall] = []
    for call_id in calls[: calls.index(request.tool_call_id)] if request.tool_call_id in calls else []:
        entry = session.journal.entry(call_id)
        if entry is None or entry.state == "finished":
            continue
        pending = load_call(session.journal, session.offer, entry, session.characters)
        pending.request, pending.answer = found.get(call_id, (None, None))
        pending.preview_id = None if pending.request is None else find_preview_id(pending.request)
        earlier.append(pending)
    return earlier


def _called(session: Session, request: PermissionRequest) -> Any:
    """The command as the model called it."""
    entry = session.journal.entry(request.tool_call_id)
    event = session.journal.event(entry.start_seq) if entry is not None else None
    args: Any = event.args if isinstance(event, ToolCallStart) else {}
    return args.get("command")


def _raise_error(pending: PendingCall) -> None:
    if pending.error is not None:
        raise ToolError(pending.error.code, pending.error.message, details=pending.error.details)


def _too_late(session: Session, request_id: str) -> str:
    if load_request(session, request_id).answered:
        return f"the permission request {request_id!r} was answered meanwhile; what was tried now is dropped"
    return f"somebody else tried the permission request {request_id!r} again meanwhile; look at what it shows now"
