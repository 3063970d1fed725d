"""Questions of the model: put to the person, kept until somebody replies, and replied to exactly once.

The reply is written down together with the result of the call, in one step. So nobody has to take over anything: a
question either waits, whoever asked it and however they ended, or has its result.
"""

import time
from typing import Any

import msgspec

from handrail.protocol.batch import Done, Parked
from handrail.protocol.call import ToolCall
from handrail.protocol.error import ErrorInfo, UsageError
from handrail.protocol.event import ToolCallQuestionRequired
from handrail.protocol.question import Question, Reply
from handrail.protocol.result import ToolResult
from handrail.runtime.closing import make_up, named, seal_error, seal_output, sealed
from handrail.runtime.latch import park
from handrail.runtime.pipeline import close, take_steps
from handrail.runtime.reloading import reloaded
from handrail.runtime.session import Flight, Session
from handrail.store.journal import DuplicateCallError, Entry
from handrail.store.questions import waiting_question
from handrail.tools.companions.replying import no_reply, output_of, reply_to


def put(session: Session, flight: Flight) -> Parked | None:
    """Puts the question of a call that is alone in its batch; None where it asks nothing, or cannot be put."""
    asks = flight.tool.asks
    if asks is None or flight.error is not None or session.ends(flight.call.tool_call_id):
        return None
    question = asks(flight.call.tool_call_id, flight.arguments)
    fields = {name: value for name, value in msgspec.structs.asdict(question).items() if name != "tool_call_id"}
    # In front of what else there is to tell: right behind the call's first event is where it is looked for.
    flight.drafts.insert(0, (ToolCallQuestionRequired, {**named(flight), **fields}))
    return msgspec.structs.replace(park(session, [flight]), questions=(question,))


def reply(session: Session, call_id: str, said: Reply | str | None) -> Done | None:
    """Gives a question its reply, or puts it aside with None; None when it had one before."""
    entry = session.journal.entry(call_id)
    question = waiting_question(session.journal.database, call_id)
    if entry is None or question is None:
        if entry is not None and _was_asked(session, entry):
            return None
        raise UsageError(f"this session asks no question {call_id[:80]!r}")
    flight = reloaded(session.journal, session.offer, entry, session.characters)
    flight.recorded = "parked"
    if said is None:
        flight.fail(no_reply())
    else:
        flight.output = output_of(question, reply_to(question, said))
        take_steps(session, flight, (seal_output,))
    return _finished(session, flight)


def _finished(session: Session, flight: Flight) -> Done | None:
    try:
        close(session, flight)
    except DuplicateCallError:
        return None  # somebody else was faster
    except Exception:
        raise
    except BaseException:  # an interrupt, perhaps when the result was just written down
        make_up(session, flight)
        raise
    session.journal.deliver()
    return Done(results=(sealed(flight),))


def _was_asked(session: Session, entry: Entry) -> bool:
    return isinstance(session.journal.event(entry.start_seq + 1), ToolCallQuestionRequired)


def interim(session: Session, call: ToolCall, question: Question) -> ToolResult[Any]:
    """The answer to who made a single call that asks: never a final result, so neither journal nor audit knows it."""
    flight = Flight(call, time.perf_counter(), 0)
    flight.tool = session.offer.get(call.name) or flight.tool
    message = "The question waits for a reply. There is no result yet; the call of the same id has it then."
    details = msgspec.to_builtins(question)
    flight.error = ErrorInfo(code="UNAVAILABLE", message=message, details=details, retryable=True)
    seal_error(session, flight)
    return sealed(flight)
