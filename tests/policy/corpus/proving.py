"""Whether a command goes unasked: asked in the way in which a call of the exec tool is judged."""

from handrail.policy.decide import PolicyConfig, decide
from handrail.policy.parse import parse_command
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Unparsed
from handrail.protocol.decisions import Decision
from handrail.runtime.facts import collect_command_facts
from handrail.tools.exec.spec import EXEC
from handrail.workspace.workspace import Workspace

_RULES = PolicyConfig(mode="plan")


def decision(place: Workspace, text: str) -> Decision:
    """What policy says in plan mode, which runs nothing but what is proven."""
    return decide(EXEC, None, collect_command_facts(place, text, tier=2), _RULES)


def is_proven(place: Workspace, text: str) -> bool:
    """Whether policy proves that a command only reads."""
    return decision(place, text).decision == "allow"


def reads_loopback(text: str) -> bool:
    """Whether a command only reads by requests to loopback, which is the sandbox's own network."""
    return parse_command(text, ".", loopback=True).reads_loopback


def as_run(text: str) -> str:
    """What bash is given for a proven text: never the text itself, but what was read in it, written anew."""
    assert not isinstance(lex(text), Unparsed), "what cannot be read is not proven"
    return parse_command(text, ".").bash_text
