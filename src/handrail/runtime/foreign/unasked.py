"""Tools of other servers where none is asked: for who explains what policy says, or judges calls of before."""

from handrail.protocol.decision import ForeignFact
from handrail.protocol.tool import ToolSpec
from handrail.runtime.foreign.naming import taken_apart
from handrail.runtime.foreign.tools import spec_of
from handrail.runtime.sources import ForeignTool


def unasked_spec(fact: ForeignFact) -> ToolSpec:
    """A spec that policy can judge by; it takes any arguments."""
    return spec_of(fact.server, ForeignTool(name=fact.tool), looks=False)


def fact_by_name(name: str) -> ForeignFact | None:
    """What a name alone tells: which tool of which server. Its server may say more, and nothing of that is believed."""
    found = taken_apart(name)
    return None if found is None else ForeignFact(server=found[0], tool=found[1])
