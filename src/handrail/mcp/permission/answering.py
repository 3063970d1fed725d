"""What a form that was sent back brings about."""

from msgspec.structs import replace

from handrail.mcp.calling import ClientCalls
from handrail.mcp.outcomes import Outcome, UnansweredCall
from handrail.mcp.permission.forms import parse_form_answer


def apply_form_answer(calls: ClientCalls, asks: UnansweredCall, reply: object) -> Outcome:
    """What has become of the call by what a client sent back. What is none of the answers is asked about once more;
    what says nothing leaves the call waiting."""
    said = parse_form_answer(asks, reply)
    if said.unclear and not asks.again:
        return replace(asks, again=True)
    return calls.park(asks) if said.is_empty else calls.answer(asks, said)
