"""Approvals: how a parked batch gets its answers."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol

from msgspec.structs import replace

from handrail.changes.history import History
from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.errors import StoreError, UsageError
from handrail.protocol.events import Notice, ToolCallQuestionRequired, ToolCallStart
from handrail.protocol.permissions import (
    Answer,
    AnswerKind,
    ApproverReply,
    InboxRequest,
    PermissionRequest,
    Question,
    Reply,
)
from handrail.protocol.results import ToolResult
from handrail.protocol.text import render_value
from handrail.runtime import permission_request
from handrail.runtime.batch import run_batch, run_claimed
from handrail.runtime.execute import close_call, take_steps
from handrail.runtime.park import claim_batch, is_pending, load_parked, release_batch
from handrail.runtime.pending_call import PendingCall, drop_preview, load_call
from handrail.runtime.recovery import recover
from handrail.runtime.results import build_answer_event, build_result, require_result, restore_audit_record
from handrail.runtime.session import Session
from handrail.state import open_journal
from handrail.store.approvals import list_abandoned_calls, list_batch_calls, save_answer
from handrail.store.inbox import (
    Inbox,
    StoredRequest,
    find_answer,
    find_last_request,
    find_pending_question,
    find_stored_request,
)
from handrail.store.journal import DuplicateCallError
from handrail.store.runner import is_in_use
from handrail.store.state_dir import StateFolder
from handrail.tools.companions.question import build_no_reply_error, build_reply_output

OnPermission = Callable[[PermissionRequest], Answer | AnswerKind | None] | Literal["park"]
"""Is asked about each request. None leaves it for later, `"park"` leaves every request for later."""


class Approver(Protocol):
    """Asks a person for approval."""

    def is_available(self) -> bool: ...

    def ask(self, request: PermissionRequest, number: int, total: int, /) -> ApproverReply: ...

    def report(self, reply: ApproverReply, outcome: Done | Parked | None, /) -> None:
        """Tells the person the outcome of their answer. None: it was answered elsewhere before."""


class CallbackApprover:
    """Asks a function of the program."""

    def __init__(self, on_permission: Callable[[PermissionRequest], Answer | AnswerKind | None]) -> None:
        self._on_permission = on_permission

    def is_available(self) -> bool:
        return True

    def ask(self, request: PermissionRequest, _number: int, _total: int) -> ApproverReply:
        answer = self._on_permission(request)
        return ApproverReply(request, answer if isinstance(answer, Answer | None) else Answer(kind=answer))

    def report(self, _reply: ApproverReply, _outcome: Done | Parked | None) -> None:
        """The program gets the outcome of its call."""


# The loop


def ask_for_batch(
    session: Session, calls: tuple[ToolCall, ...], parked: Parked, find_approver: Callable[[], Approver | None]
) -> Done | Parked:
    """Asks about a parked batch until it is done or a request is left for later."""
    _replace_twins(session, calls, parked)
    outcome: Done | Parked = parked
    while isinstance(outcome, Parked) and outcome.requests and (approver := find_approver()) is not None:
        answered = ask_in_turn(session, outcome, approver)
        if isinstance(answered, Parked):
            return answered
        results = {result.tool_call_id: result for result in answered.results}
        if results.keys() >= {call.tool_call_id for call in calls}:
            return Done(results=tuple(results[call.tool_call_id] for call in calls))
        outcome = run_batch(session, calls, fresh=False)  # reads the results of calls that others ran
    return outcome


def ask_in_turn(session: Session, parked: Parked, approver: Approver) -> Done | Parked:
    """Asks about each request of a parked batch until it is done or a request is left for later. Results of calls that
    other processes ran are missing."""
    outcome: Done | Parked = parked
    while isinstance(outcome, Parked) and outcome.requests and approver.is_available():
        reply = approver.ask(outcome.requests[0], *locate_request(parked, outcome))
        settled = settle_reply(session, reply)
        if settled is None:
            break
        if reply.answer is not None:
            approver.report(reply, settled.answered)
        outcome = settled.rest
    return outcome


def locate_request(first: Parked, now: Parked) -> tuple[int, int]:
    """The number of the next request, and how many there are, since a batch was parked."""
    total = max(1, len(first.requests))
    return max(1, total - len(now.requests) + 1), total


class SettledReply(NamedTuple):
    """What became of a batch by the reply of an approver."""

    answered: Done | Parked | None
    """The outcome of the answer. None if there was none, or it was answered or retried elsewhere before."""
    rest: Done | Parked
    """What is left to ask about. A `Done` without results if another process runs the batch."""


def settle_reply(session: Session, reply: ApproverReply) -> SettledReply | None:
    """Gives the answer of an approver. None if there is no answer and its subject stays pending."""
    subject, answer, answered = reply.subject, reply.answer, None
    if answer is None and is_pending(session, subject):
        return None
    try:
        if isinstance(subject, PermissionRequest) and isinstance(answer, Answer):
            answered = answer_request(session, subject.id, bind_answer(subject, answer))
        elif isinstance(subject, Question) and answer is not None:
            answered = answer_question(session, subject.tool_call_id, answer if isinstance(answer, Reply) else None)
    except UsageError:
        if is_pending(session, subject):
            raise
    if isinstance(answered, Done):
        return SettledReply(answered, answered)
    entry = session.journal.entry(subject.tool_call_id)
    rest = load_parked(session, entry.batch_id if entry is not None else subject.tool_call_id)
    return SettledReply(answered, rest if rest.requests or rest.questions else Done(results=()))


# Batches that killed processes left


def resume_batches(session: Session) -> Done | None:
    """Runs the answered batches that killed processes left. None if there are none.

    A batch that has to wait again has no results yet.
    """
    recover(session)
    results: list[ToolResult[Any]] = []
    for batch_id in session.journal.list_ready_batches():
        outcome = run_claimed(session, claim_batch(session, batch_id))
        if isinstance(outcome, Done):
            results += outcome.results
    return Done(results=tuple(results)) if results else None


# Answers to permission requests


def bind_answer(request: PermissionRequest, answer: Answer) -> Answer:
    """Binds an answer to the revision that the request shows, unless it names one itself."""
    if answer.revision is not None or not request.revision:
        return answer
    return replace(answer, revision=request.revision)


def answer_request(session: Session, request_id: str, answer: Answer) -> Done | Parked | None:
    """Answers a permission request. The last answer of a batch runs the batch: then the outcome is that of all its
    calls. None if it was answered before."""
    try:
        calls = _record_answer(session, request_id, answer)
        return run_claimed(session, calls) if isinstance(calls, list) else calls
    except Exception:
        raise
    except BaseException:  # an interrupt: the answer may be stored already, so another process has to be able to run it
        with suppress(StoreError, UsageError):
            release_batch(session, permission_request.load_request(session, request_id).request.batch_id)
        raise


def _record_answer(session: Session, request_id: str, answer: Answer) -> list[str] | Parked | None:
    """Stores an answer. Returns the calls of the batch if this was the last answer: this process has claimed them."""
    while True:
        stored = permission_request.load_request(session, request_id)
        check_answer(stored.request, answer)
        calls = _save_answer(session, stored, answer)
        if calls is not None:
            return calls or load_parked(session, stored.request.batch_id)
        if stored.answered or permission_request.load_request(session, request_id).answered:
            # The same answer again claims what a killed process left of the batch.
            found = find_answer(session.journal.database, stored.request.tool_call_id)
            if found is None or found[1].kind != answer.kind:
                return None
            return claim_batch(session, stored.request.batch_id) or None
        # Another process retried the request meanwhile: check whether the answer is for the new revision.


def check_answer(request: PermissionRequest, answer: Answer) -> None:
    """UsageError if the request cannot have this answer."""
    if answer.by is not None and (answer.by != "expiry" or answer.approves):
        raise UsageError("only handrail itself answers for a preview")
    if answer.kind not in request.answers:
        can = " or ".join(request.answers)
        raise UsageError(f"this request can be answered with {can}, not with {render_value(answer.kind)}")
    if other := [name for name in answer.grants if name not in request.grants]:
        offered = " or ".join(map(render_value, request.grants)) or "nothing"
        raise UsageError(f"this request offers to grant {offered}, not {render_value(other[0])}")
    if answer.grants and answer.kind not in {"session", "workspace"}:
        raise UsageError(f"the answer {answer.kind} grants no class of commands; say session or workspace")
    if answer.kind != "deny" and (answer.revision or 0) != request.revision:
        reason = f"the request {request.id} has a newer preview"
        raise UsageError(f"{reason}. Check it, then answer that revision: revision={request.revision}")


def _save_answer(session: Session, stored: StoredRequest, answer: Answer) -> list[str] | None:
    request = stored.request
    calls = save_answer(session.journal, stored, answer, build_answer_event(request, answer))
    if calls is None:
        return None
    try:
        if answer.kind == "deny":
            drop_preview(session, request.preview_id)
        try:
            session.grants.remember(request, answer)
        except StoreError as error:
            text = f"The approval covers this call, but later calls need approval again: {error}."
            session.journal.append((Notice, {"text": text, "code": "IO_ERROR"}))
        session.journal.deliver()
    except Exception:  # the answer is stored, so another process has to be able to run the batch
        release_batch(session, request.batch_id)
        raise
    return calls


# Requests that nobody waits for


def expire_requests(state: StateFolder, workspace: str | None, seconds: float) -> int:
    """Denies the requests of a workspace, or of all, that are older than this and whose sessions no process has open.
    Returns their number."""
    before, expired = datetime.now(UTC) - timedelta(seconds=seconds), 0
    answer = Answer(kind="deny", reason="it expired", by="expiry")
    for waiting in Inbox(state, workspace).list_requests():
        preview = waiting.request.preview
        asked = max(waiting.time, preview.time) if preview is not None and preview.time is not None else waiting.time
        with suppress(StoreError, OSError):  # maybe another user's, or on a full disk: the next time
            expired += asked < before and not is_in_use(waiting.folder) and deny_stored_request(waiting, answer)
    return expired


def deny_stored_request(waiting: InboxRequest, answer: Answer) -> bool:
    """Denies a request without opening its session. Nothing of its batch runs: its calls get their results when the
    session goes on. False if it was answered before."""
    with open_journal(waiting.folder, "crash") as journal:
        stored = find_stored_request(journal.database, waiting.request.id)
        if stored is None or stored.answered:
            return False
        event = build_answer_event(stored.request, answer)
        if save_answer(journal, stored, answer, event, new="ready") is None:
            return False
    if stored.request.preview_id is not None:
        History(os.path.join(os.path.dirname(waiting.folder), ".changes")).previews.drop(stored.request.preview_id)
    return True


def _replace_twins(session: Session, calls: tuple[ToolCall, ...], parked: Parked) -> None:
    """Denies the older request about the same call, if the process that made it has ended."""
    if len(calls) != 1 or not parked.requests:
        return
    journal, new = session.journal, calls[0]
    for old in list_abandoned_calls(journal, session.folder):
        start, request = journal.event(old.start_seq), find_last_request(journal.database, old.id)
        if old.batch_id == parked.batch_id or not isinstance(start, ToolCallStart) or request is None:
            continue
        is_alone = list_batch_calls(journal.database, old.batch_id) == [old.id]
        if is_alone and not request.edited and (start.tool_call_name, start.args) == (new.name, new.args):
            stored = permission_request.load_request(session, request.id)
            answer = Answer(kind="deny", reason="the same call came again", by="expiry")
            if not stored.answered and (claimed := _save_answer(session, stored, answer)):
                run_claimed(session, claimed)


# Replies to questions of the model


def answer_question(session: Session, call_id: str, reply: Reply | str | None) -> Done | None:
    """Gives a question its reply. None puts the question aside. Returns None if it had a reply before.

    The reply is stored with the result of the call in one transaction, so no process has to resume it."""
    entry = session.journal.entry(call_id)
    question = find_pending_question(session.journal, call_id)
    if entry is None or question is None:
        if entry is not None and isinstance(session.journal.event(entry.start_seq + 1), ToolCallQuestionRequired):
            return None
        raise UsageError(f"this session has no question {call_id[:80]!r}")
    pending = load_call(session.journal, session.offer, entry, session.characters)
    if reply is None:
        pending.fail(build_no_reply_error())
    else:
        pending.output = build_reply_output(question, question.normalize_reply(reply))
        take_steps(session, pending, (build_result,))
    return _finish(session, pending)


def _finish(session: Session, pending: PendingCall) -> Done | None:
    try:
        close_call(session, pending)
    except DuplicateCallError:
        return None  # another process replied first
    except Exception:
        raise
    except BaseException:  # an interrupt, maybe when the result was just stored
        restore_audit_record(session, pending)
        raise
    session.journal.deliver()
    return Done(results=(require_result(pending),))
