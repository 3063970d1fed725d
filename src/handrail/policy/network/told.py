"""What a person is told of the network that a command asks for."""

from handrail.policy.network.hosts import Refused, parse_target
from handrail.policy.network.ranges import kind_of
from handrail.protocol.decision import CommandFact

OPENS_FROM = 2
"""The tier of the sandbox from which on single hosts can be opened."""


_MOST_NAMED = 8


def told(fact: CommandFact) -> str:
    """What a yes to a command that reaches other machines opens to it, and what not."""
    unopened = f"; not opened: {'; '.join(fact.unopened)}" if fact.unopened else ""
    if fact.tier == 0:
        return f"the network asks, and without a sandbox it is open as a whole{_named(fact)}"
    if not fact.hosts:
        return f"it names no host that can be opened, so a yes opens none{unopened}"
    if fact.tier < OPENS_FROM:
        return f"it has no network here, which takes a sandbox of tier {OPENS_FROM}{_named(fact)}"
    return f"the network asks{_named(fact)}{unopened}"


def shown_host(host: str) -> str:
    """A host as a person reads it: of an address that is not out on the internet, with what it is."""
    target = parse_target(host)
    kind = None if isinstance(target, Refused) or target.address is None else kind_of(target.address)
    return f"{host} ({kind})" if kind else host


def _named(fact: CommandFact) -> str:
    """The first of them: every part of a command that asks says so, and the request has them all."""
    more = f" and {len(fact.hosts) - _MOST_NAMED} more" if len(fact.hosts) > _MOST_NAMED else ""
    return f": {', '.join(map(shown_host, fact.hosts[:_MOST_NAMED]))}{more}" if fact.hosts else ""
