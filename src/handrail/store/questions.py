"""The questions of the model that wait for a reply, as they stand in a session's journal.

A question is a call that is parked, and the event that asks it comes right behind the one that the call came in with.
It needs no row of its own: the reply gives the call its result, and with that it waits no more.
"""

from handrail.protocol.event import ToolCallQuestionRequired, decode_event
from handrail.protocol.question import Question
from handrail.store.database import Database

ASKED = """
SELECT e.data FROM call c JOIN event e ON e.seq = c.start_seq + 1
WHERE c.state = 'parked' AND e.kind = 'tool_call.question-required'
"""
_OF_BATCH = f"{ASKED} AND coalesce(?, c.batch_id) = c.batch_id ORDER BY c.start_seq"
_OF_CALL = f"{ASKED} AND c.id = ?"


def list_pending_questions(database: Database, batch_id: str | None = None) -> tuple[Question, ...]:
    """The questions that nobody has replied to: of one batch, or of the session."""
    return tuple(parse_question(row[0]) for row in database.rows(_OF_BATCH, (batch_id,)))


def find_pending_question(database: Database, call_id: str) -> Question | None:
    """The question that a call waits with; None where it is none, or has its reply."""
    row = database.row(_OF_CALL, (call_id,))
    return parse_question(row[0]) if row else None


def parse_question(data: bytes) -> Question:
    """The question that an event asks."""
    event = decode_event(data)
    if not isinstance(event, ToolCallQuestionRequired):
        raise AssertionError("the row is not of a question")
    return Question(
        tool_call_id=event.tool_call_id,
        question=event.question,
        options=event.options,
        multiple=event.multiple,
        custom=event.custom,
    )
