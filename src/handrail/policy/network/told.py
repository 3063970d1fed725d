"""What a person is told of the network that a command asks for."""

from handrail.policy.network.hosts import InvalidHost, parse_host_port
from handrail.policy.network.ranges import describe_address_range
from handrail.protocol.decision import CommandFact

MIN_NETWORK_TIER = 2
"""The tier of the sandbox from which on single hosts can be opened."""


_MAX_NAMED_HOSTS = 8


def describe_network_access(fact: CommandFact) -> str:
    """What a yes to a command that reaches other machines opens to it, and what not."""
    unopened = f"; not opened: {'; '.join(fact.unopened)}" if fact.unopened else ""
    if fact.tier == 0:
        return f"the network asks, and without a sandbox it is open as a whole{_named(fact)}"
    if not fact.hosts:
        return f"it names no host that can be opened, so a yes opens none{unopened}"
    if fact.tier < MIN_NETWORK_TIER:
        return f"it has no network here, which takes a sandbox of tier {MIN_NETWORK_TIER}{_named(fact)}"
    return f"the network asks{_named(fact)}{unopened}"


def render_host(host: str) -> str:
    """A host as a person reads it: of an address that is not out on the internet, with what it is."""
    target = parse_host_port(host)
    kind = None if isinstance(target, InvalidHost) or target.address is None else describe_address_range(target.address)
    return f"{host} ({kind})" if kind else host


def _named(fact: CommandFact) -> str:
    """The first of them: every part of a command that asks says so, and the request has them all."""
    more = f" and {len(fact.hosts) - _MAX_NAMED_HOSTS} more" if len(fact.hosts) > _MAX_NAMED_HOSTS else ""
    return f": {', '.join(map(render_host, fact.hosts[:_MAX_NAMED_HOSTS]))}{more}" if fact.hosts else ""
