"""Parks calls, takes answers, resumes."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.events import (
    Notice,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallPermissionRequired,
    ToolCallQuestionRequired,
    ToolCallStart,
)
from handrail.protocol.permissions import Answer, PermissionRequest, Reply
from handrail.protocol.text import render_value
from handrail.runtime.decide import DECIDING
from handrail.runtime.execute import close_call, digest_environment, take_steps
from handrail.runtime.pending_call import (
    PendingCall,
    drop_preview,
    find_preview_id,
    forget_preview,
    get_preview_id,
    list_base_previews,
    load_call,
    replace_command,
)
from handrail.runtime.permission_request import (
    bind_files,
    build_request,
    is_fresh,
    preview_and_build_request,
    require_answer,
)
from handrail.runtime.permission_request import request_approval as put_question
from handrail.runtime.recovery import recover
from handrail.runtime.results import (
    build_event_fields,
    build_result,
    build_start_event,
    require_result,
    restore_audit_record,
)
from handrail.runtime.session import Session
from handrail.store.approvals import (
    NewCall,
    StoredRequest,
    claim_ready,
    find_stored_request,
    list_batch_calls,
    release_claims,
    replace_request,
    save_answer,
    save_parked_batch,
    save_parked_call,
)
from handrail.store.grants import save_variables
from handrail.store.inbox import (
    find_answer,
    find_last_request,
    find_pending_question,
    list_batch_requests,
    list_pending_questions,
    list_pending_requests,
)
from handrail.store.journal import CallEntry, DuplicateCallError, PendingEvent
from handrail.store.state_dir import save_workspace_path
from handrail.tools.companions.question import build_no_reply_error, build_reply_output, normalize_reply
from handrail.tools.tool import ApprovalNeededError

# § [runtime.latch] The permission latch: questions of a batch are put together, kept until answered, and answered
# § exactly once.


def request_approvals(session: Session, batch: list[PendingCall]) -> bool:
    """Puts the questions about a batch, in its order; whether there is one. Nothing of the batch has run yet."""
    asked = False
    for number, pending in enumerate(batch):
        if pending.needs_approval:
            take_steps(session, pending, (partial(put_question, earlier=batch[:number]),))
            asked |= pending.needs_approval
            if pending.error is not None:
                forget_preview(session, pending)
    return asked


def park_batch(session: Session, batch: list[PendingCall]) -> Parked:
    """Writes down the whole batch as waiting. Nothing of it has run."""
    from handrail.store.state_dir import save_workspace_path  # noqa: PLC0415  only where somebody has to be asked

    batch_id = batch[0].batch_id
    session.workspace.drop_cached()
    requests: list[PermissionRequest] = []
    calls: list[NewCall] = []
    for pending in batch:
        requests += [
            fields["permission_request"]
            for kind, fields in pending.pending_events
            if kind is ToolCallPermissionRequired
        ]
        drafts = (build_start_event(pending), *pending.pending_events)
        calls.append(NewCall(pending.call.tool_call_id, pending.call_context, drafts))
    _keep_variables(session, requests)
    save_workspace_path(os.path.dirname(session.folder), session.workspace.main.path)  # before anybody can answer, too
    try:
        save_parked_batch(session.journal, batch_id, tuple(calls), tuple(requests))
    except Exception:  # an interrupt may come when they are parked already: whoever looks then sees to it
        for pending in batch:
            forget_preview(session, pending)
        raise
    session.journal.deliver()
    return Parked(batch_id=batch_id, requests=tuple(requests))


def _keep_variables(session: Session, requests: list[PermissionRequest]) -> None:
    """Before anybody can answer: who does it in another shell is to carry it out as it would have been here."""
    digests = {request.environment for request in requests if request.environment is not None}
    if digests:
        from handrail.store.grants import has_variables, save_variables  # noqa: PLC0415  only where commands ask

        if all(has_variables(session.folder, digest) for digest in digests):
            return
        save_variables(session.folder, session.commands.variables(session.workspace.roots))


def load_parked(session: Session, batch_id: str | None = None) -> Parked:
    """What is open, of one batch or of the session: what needs a yes, and what the model asks."""
    database = session.journal.database
    return Parked(
        batch_id=batch_id or "",
        requests=list_pending_requests(database, batch_id),
        questions=list_pending_questions(database, batch_id),
    )


def record_answer(session: Session, request_id: str, given: Answer) -> list[str] | Parked | None:
    """Writes an answer down; with the last one this process has taken over the calls of the batch, which these are.

    None when there was an answer already; but the same answer again takes over what a killed process left of it.
    """
    while True:
        asked = load_request(session, request_id)
        _check_answer(asked.request, given)
        calls = _write_answer(session, asked, given)
        if calls is not None:
            return calls or load_parked(session, asked.request.batch_id)
        if asked.answered or load_request(session, request_id).answered:
            return _answered_before(session, asked.request, given)
        # Somebody tried it again just now: whether the answer is to that is looked up.


def load_request(session: Session, request_id: str) -> StoredRequest:
    """A request of this session as it stands now."""
    found = find_stored_request(session.journal.database, request_id)
    if found is None:
        raise UsageError(f"this session has no permission request {request_id[:80]!r}")
    return found


def _check_answer(request: PermissionRequest, given: Answer) -> None:
    if given.kind not in request.answers:
        can = " or ".join(request.answers)
        raise UsageError(f"this request can be answered with {can}, not with {render_value(given.kind)}")
    if given.kind != "deny" and (given.revision or 0) != request.revision:
        told = f"the request {request.id} was tried again since, and shows something else now"
        raise UsageError(f"{told}. Look at it, then answer what it shows: revision={request.revision}")


def _write_answer(session: Session, asked: StoredRequest, given: Answer) -> list[str] | None:
    request = asked.request
    kind = ToolCallPermissionDenied if given.kind == "deny" else ToolCallPermissionGranted
    fields = {"tool_call_id": request.tool_call_id, "tool_call_name": request.called}
    if request.tool_call_name is not None:
        fields |= {"tool_name": request.tool_name, "server_name": request.server_name}
    event: PendingEvent = (kind, {**fields, "permission_request": request, "answer": given})
    calls = save_answer(session.journal, asked, given, event)
    if calls is None:
        return None
    try:
        if given.kind == "deny" and (sealed := find_preview_id(request)):
            drop_preview(session, sealed)
        _keep_grants(session, request, given)
        session.journal.deliver()
    except Exception:  # the answer counts: somebody has to be able to run what this process took over
        release_batch(session, request.batch_id)
        raise
    return calls


def _answered_before(session: Session, request: PermissionRequest, given: Answer) -> list[str] | None:
    found = find_answer(session.journal.database, request.tool_call_id)
    if found is None or found[1].kind != given.kind:
        return None
    return claim_batch(session, request.batch_id) or None


def claim_batch(session: Session, batch_id: str) -> list[str]:
    """Takes over what a killed process left of a batch that everything is answered of; all its calls, or none."""
    recover(session)
    return claim_ready(session.journal.database, session.journal.runner, batch_id)


def release_batch(session: Session, batch_id: str) -> None:
    """Gives up what this process took over and did not begin; whoever comes next can have it."""
    with suppress(StoreError):
        release_claims(session.journal.database, session.journal.runner, batch_id)


def _keep_grants(session: Session, request: PermissionRequest, given: Answer) -> None:
    """Behind the answer: without a yes nothing is granted. A yes counts also where what it grants cannot be kept."""
    try:
        session.grants.remember(request, given)
    except StoreError as error:
        text = f"The answer counts for this call, but will be asked for again: {error}."
        session.journal.append((Notice, {"text": text, "code": "IO_ERROR"}))


def redecide(session: Session, batch: list[PendingCall]) -> None:
    """Judges the calls of a resumed batch by what is now, and holds each to its answer."""
    for pending in batch:
        take_steps(session, pending, (_apply_answer,))  # by itself: what it opens is there from the next step on
        take_steps(session, pending, (*DECIDING, require_answer))
    session.workspace.drop_cached()


def _apply_answer(session: Session, pending: PendingCall) -> None:
    """Holds a call to its answer: a no is its result, whatever has changed since; a yes is for what was asked."""
    found = find_answer(session.journal.database, pending.call.tool_call_id)
    if found is None:
        return
    request, pending.answer = found
    pending.request, pending.preview_id, pending.bound_files = request, find_preview_id(request), request.bound_files
    pending.unmet_previews = set(list_base_previews(request))
    if pending.answer.kind == "deny":
        said = f': "{pending.answer.reason}"' if pending.answer.reason else ""
        raise ToolError("PERMISSION_DENIED", f"The person refused{said}. Nothing ran. Do not repeat this call.")
    with suppress(StoreError):  # once more: whoever wrote the answer down may have been killed then
        session.grants.remember(request, pending.answer)
    if request.kind == "external_directory":
        pending.roots = session.opened_roots.open(pending.facts, pending.answer.kind)
        pending.releases += [root.close for root in pending.roots]


# § [runtime.late_parking] Parks a call late: it was allowed and has run in its overlay, and what it changed there
# § asks. Nothing of that is committed yet; it waits, sealed, for the answer. The calls of its batch that come after
# § it wait with it, and the results of those before it are returned when the batch is done. A command that was to
# § run without an overlay may ask late too, and has not run then: no snapshot could be taken.


def park_after_run(
    session: Session, pending: PendingCall, batch: Sequence[PendingCall], asks: ApprovalNeededError
) -> Parked:
    """Writes the call down as waiting, in one step with all that waits with it. `batch`: the calls that it was brought
    in with, in their order."""
    pending.outcome_decision = asks.decision
    pending.preview_id = get_preview_id(asks.preview)
    based_on = bind_files(session, pending) if pending.preview_id is None else ()
    request = build_request(session, pending, asks.preview, based_on)
    try:
        _write_down(session, pending, batch, request)
    except Exception:  # an interrupt may come when it is parked already: whoever looks then sees to it
        forget_preview(session, pending)
        raise
    finally:
        _let_go(session, batch)
    session.journal.deliver()
    return Parked(batch_id=pending.batch_id, requests=(request,))


def _write_down(
    session: Session, pending: PendingCall, batch: Sequence[PendingCall], request: PermissionRequest
) -> None:
    asked = (ToolCallPermissionRequired, {**build_event_fields(pending), "permission_request": request})
    begun = NewCall(pending.call.tool_call_id, pending.call_context, (*pending.pending_events, asked))
    later = tuple(_new_call(other) for other in batch if other.journal_state is None)
    calls = tuple(other.call.tool_call_id for other in batch)
    # Before anybody can answer: who does it in another shell is to carry it out as it would have been here.
    save_workspace_path(os.path.dirname(session.folder), session.workspace.main.path)
    save_variables(session.folder, session.commands.variables(session.workspace.roots))
    save_parked_call(session.journal, begun, later, calls, request)
    for other in batch:
        if other.journal_state != "finished":
            other.journal_state = "parked"
            other.pending_events.clear()


def _new_call(pending: PendingCall) -> NewCall:
    return NewCall(
        pending.call.tool_call_id, pending.call_context, (build_start_event(pending), *pending.pending_events)
    )


def _let_go(session: Session, batch: Sequence[PendingCall]) -> None:
    """What was opened to the calls after it, for when they run, is opened again then."""
    session.workspace.drop_cached()
    for pending in batch:
        for release in reversed(pending.releases):
            release()


# § [runtime.questions] Questions of the model: put to the person, kept until somebody replies, and replied to
# § exactly once. The reply is written down together with the result of the call, in one step. So nobody has to take
# § over anything: a question either waits, whoever asked it and however they ended, or has its result.


def park_question(session: Session, pending: PendingCall) -> Parked | None:
    """Puts the question of a call that is alone in its batch; None where it asks nothing, or cannot be put."""
    asks = pending.tool.asks
    if asks is None or pending.error is not None or session.is_cancelled(pending.call.tool_call_id):
        return None
    question = asks(pending.call.tool_call_id, pending.arguments)
    fields = {name: value for name, value in msgspec.structs.asdict(question).items() if name != "tool_call_id"}
    # In front of what else there is to tell: right behind the call's first event is where it is looked for.
    pending.pending_events.insert(0, (ToolCallQuestionRequired, {**build_event_fields(pending), **fields}))
    return msgspec.structs.replace(park_batch(session, [pending]), questions=(question,))


def reply(session: Session, call_id: str, said: Reply | str | None) -> Done | None:
    """Gives a question its reply, or puts it aside with None; None when it had one before."""
    entry = session.journal.entry(call_id)
    question = find_pending_question(session.journal.database, call_id)
    if entry is None or question is None:
        if entry is not None and _was_asked(session, entry):
            return None
        raise UsageError(f"this session asks no question {call_id[:80]!r}")
    pending = load_call(session.journal, session.offer, entry, session.characters)
    pending.journal_state = "parked"
    if said is None:
        pending.fail(build_no_reply_error())
    else:
        pending.output = build_reply_output(question, normalize_reply(question, said))
        take_steps(session, pending, (build_result,))
    return _finished(session, pending)


def _finished(session: Session, pending: PendingCall) -> Done | None:
    try:
        close_call(session, pending)
    except DuplicateCallError:
        return None  # somebody else was faster
    except Exception:
        raise
    except BaseException:  # an interrupt, perhaps when the result was just written down
        restore_audit_record(session, pending)
        raise
    session.journal.deliver()
    return Done(results=(require_result(pending),))


def _was_asked(session: Session, entry: CallEntry) -> bool:
    return isinstance(session.journal.event(entry.start_seq + 1), ToolCallQuestionRequired)


# § [runtime.retrying] Tries a command again that waits for an answer: as it is, or as a person changed it. The
# § question stays the same one, under its id; what it shows is replaced, in one step, as long as nobody has
# § answered.


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
