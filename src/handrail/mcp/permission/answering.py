"""What a form that was sent back brings about."""

from msgspec.structs import replace

from handrail.mcp.calling import Calls
from handrail.mcp.outcomes import Asks, Outcome
from handrail.mcp.permission.forms import said_in


def answered(calls: Calls, asks: Asks, reply: object) -> Outcome:
    """What has become of the call by what a client sent back. What is none of the answers is asked about once more;
    what says nothing leaves the call waiting."""
    said = said_in(asks, reply)
    if said.unclear and not asks.again:
        return replace(asks, again=True)
    return calls.leave(asks) if said.later else calls.answer(asks, said)
