"""Why a turn ended, as the protocol says it; and what is told of what it has no word for."""

from acp.schema import StopReason

from handrail.acp.errors import build_failure
from handrail.acp.questions import render_question
from handrail.acp.working import SessionModel
from handrail.agent.turn import Turn

_WAITS = "Something waits for your yes. `handrail approvals` lists it; `/continue` puts it to you again."


async def resolve_stop_reason(turn: Turn, work: SessionModel) -> StopReason:
    """The protocol's word for it; an error where the turn failed."""
    if turn.reason == "cancelled":
        return "cancelled"
    if turn.reason == "error":
        raise build_failure(turn.code, turn.message or "The turn failed. /continue goes on from where it was.")
    if turn.reason in {"parked", "question"}:
        return "end_turn"
    finish = await work.find_finish_reason()
    if finish == "filtered":
        return "refusal"
    if turn.reason == "limit":
        return "max_tokens" if finish == "length" or work.has_spent(turn) else "max_turn_requests"
    return "end_turn"


def list_closing_messages(turn: Turn) -> tuple[str, ...]:
    """What the person has to know where somebody has to answer before it goes on."""
    if turn.reason == "parked":
        return (f"\n\n> {_WAITS}\n\n",)
    return tuple(map(render_question, turn.questions)) if turn.reason == "question" else ()
