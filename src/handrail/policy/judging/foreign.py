"""Judges a call of another server's tool. What the server says of it is a stranger's word, unless somebody vouches for
it; and what the tool does, undo does not cover."""

from fnmatch import fnmatchcase

import msgspec

from handrail.policy.configuration import Rules, Vouching
from handrail.policy.judging.deciding import GRANTED
from handrail.policy.judging.judged import Judged, allowed, confirmed, denied, moded
from handrail.policy.rules.grant import granted
from handrail.protocol.decision import ForeignFact


def judge_foreign(name: str, fact: ForeignFact, rules: Rules) -> list[Judged]:
    """The parts of a call: what the mode says of the tool, and that it is another than it was. `name`: what it is
    called here."""
    subject = f"{fact.tool} ({fact.server})"
    if rules.restriction is not None:
        return [denied(subject, "restricted.tool", "the restricted profile calls no other server")]
    judged = [_by_grant(name, _by_mode(subject, fact, rules), rules)]
    if fact.changed:
        why = f"{fact.server} describes this tool otherwise than when it was last approved"
        judged.append(_grantable(name, confirmed(subject, "tool.changed", why)))
    return judged


def only_looks(fact: ForeignFact, servers: tuple[Vouching, ...]) -> bool:
    """Whether somebody vouches that the tool changes nothing."""
    return any(_vouches(one, fact) for one in servers if one.server == fact.server)


def _vouches(one: Vouching, fact: ForeignFact) -> bool:
    listed = any(fnmatchcase(fact.tool, pattern) for pattern in one.read_only)
    return listed or (one.hints and fact.read_only)


def _by_mode(subject: str, fact: ForeignFact, rules: Rules) -> Judged:
    if only_looks(fact, rules.servers):
        return allowed(subject, "tool.vouched", f"the settings vouch that it only looks ({fact.server})")
    why = f"it runs on the server {fact.server}, and undo does not cover what it does"
    return moded(subject, "tool.mcp", "foreign", rules.mode, undo=False, why=why)


def _by_grant(name: str, judged: Judged, rules: Rules) -> Judged:
    if judged.part.decision != "confirm":
        return judged
    grant = granted(rules.grants, name)
    if grant is not None:
        return allowed(judged.part.subject, f"{GRANTED}{grant.id}", f"a person allowed {name} for good")
    return _grantable(name, judged)


def _grantable(name: str, judged: Judged) -> Judged:
    """A yes may be for the calls after it too. That of a tool which was changed is first of all to what it is now."""
    return Judged(msgspec.structs.replace(judged.part, grant=name), judged.code, judged.firm)
