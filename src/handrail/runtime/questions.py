"""Questions of the model: put to the person, kept until somebody replies, and replied to exactly once.

The reply is written down together with the result of the call, in one step. So nobody has to take over anything: a
question either waits, whoever asked it and however they ended, or has its result.
"""

import time
from typing import Any

import msgspec

from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.errors import ErrorInfo, UsageError
from handrail.protocol.events import ToolCallQuestionRequired
from handrail.protocol.permissions import Question, Reply
from handrail.protocol.results import ToolResult
from handrail.runtime.closing import (
    build_error_result,
    build_event_fields,
    build_result,
    require_result,
    restore_audit_record,
)
from handrail.runtime.latch import park_batch
from handrail.runtime.pipeline import close_call, take_steps
from handrail.runtime.reloading import load_call
from handrail.runtime.session import PendingCall, Session
from handrail.store.inbox import find_pending_question
from handrail.store.journal import CallEntry, DuplicateCallError
from handrail.tools.companions.replying import build_no_reply_error, build_reply_output, normalize_reply


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


def build_unanswered_result(session: Session, call: ToolCall, question: Question) -> ToolResult[Any]:
    """The answer to who made a single call that asks: never a final result, so neither journal nor audit knows it."""
    pending = PendingCall(call, time.perf_counter(), 0)
    pending.tool = session.offer.get(call.name) or pending.tool
    message = "The question waits for a reply. There is no result yet; the call of the same id has it then."
    details = msgspec.to_builtins(question)
    pending.error = ErrorInfo(code="UNAVAILABLE", message=message, details=details, retryable=True)
    build_error_result(session, pending)
    return require_result(pending)
