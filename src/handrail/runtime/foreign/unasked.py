"""Tools of other servers where none is asked: for who explains what policy says, or judges calls of before."""

from handrail.protocol.decisions import ForeignFact
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.foreign.naming import split_tool_name
from handrail.runtime.foreign.tools import build_foreign_spec
from handrail.runtime.sources import ForeignTool


def build_unlisted_spec(fact: ForeignFact) -> ToolSpec:
    """A spec that policy can judge by; it takes any arguments."""
    return build_foreign_spec(fact.server, ForeignTool(name=fact.tool), looks=False)


def parse_foreign_fact(name: str) -> ForeignFact | None:
    """What a name alone tells: which tool of which server. Its server may say more, and nothing of that is believed."""
    found = split_tool_name(name)
    return None if found is None else ForeignFact(server=found[0], tool=found[1])
