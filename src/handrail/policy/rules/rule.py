"""A rule that a person wrote."""

from typing import Literal

import msgspec

from handrail.protocol.decision import Verdict

RuleLayer = Literal["managed", "user", "project", "session"]
LAYERS: tuple[RuleLayer, ...] = ("managed", "user", "project", "session")
STRICTEST_FIRST: tuple[Verdict, ...] = ("deny", "confirm", "allow")
SAYS: dict[Verdict, str] = {"deny": "denies", "confirm": "asks about", "allow": "allows"}


class Rule(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Says allow, confirm or deny of commands that begin with some words, or of a tool's paths."""

    id: str
    verdict: Verdict
    pattern: str
    """For `exec` the first words of a command (`git push`), for every other tool a glob of paths (`docs/**`)."""
    tool: str = "exec"
    """Of other servers' tools also a glob: `mcp__github__get_*`; their pattern is `**`, since they have no paths."""
    because: str = ""
    match: tuple[str, ...] = ()
    """Commands, or paths, that the rule must be about …"""
    no_match: tuple[str, ...] = ()
    """… and must not. Both are checked at load."""
    any_args: bool = False
    """An allow rule is about paths inside the roots and plain options only, unless this is set."""
    layer: RuleLayer = "user"
    source: str = ""
    """Where it stands: `user:12`."""


class Fault(msgspec.Struct, frozen=True):
    """Something about the rules that a person should know."""

    rule: str
    """The id."""
    problem: str
    """In words."""
    is_error: bool
    """Whether the rules cannot be used; otherwise the rule just never decides anything."""


def rank_rule(rule: Rule) -> tuple[int, int]:
    """Of two rules about the same, the one that decides sorts first: the stricter, then that of the higher layer."""
    return STRICTEST_FIRST.index(rule.verdict), LAYERS.index(rule.layer)


def describe_rule(rule: Rule) -> str:
    """A rule as a person finds it: `rule tests (user:12)`."""
    return f"rule {rule.id} ({rule.source or rule.layer})"
