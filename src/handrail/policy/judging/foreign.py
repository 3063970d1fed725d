"""Judges a call of another server's tool. What the server says of it is a stranger's word, unless somebody vouches for
it; and what the tool does, undo does not cover."""

from fnmatch import fnmatchcase

import msgspec

from handrail.policy.configuration import PolicyConfig, TrustedServer
from handrail.policy.judging.deciding import GRANTED
from handrail.policy.judging.judged import PartVerdict, allow, ask, deny, judge_by_mode
from handrail.policy.rules.grant import find_grant
from handrail.protocol.decision import ForeignFact


def judge_foreign(name: str, fact: ForeignFact, rules: PolicyConfig) -> list[PartVerdict]:
    """The parts of a call: what the mode says of the tool, and that it is another than it was. `name`: what it is
    called here."""
    subject = f"{fact.tool} ({fact.server})"
    if rules.restriction is not None:
        return [deny(subject, "restricted.tool", "the restricted profile calls no other server")]
    judged = [_by_grant(name, _by_mode(subject, fact, rules), rules)]
    if fact.changed:
        why = f"{fact.server} describes this tool otherwise than when it was last approved"
        judged.append(_grantable(name, ask(subject, "tool.changed", why)))
    return judged


def is_read_only_tool(fact: ForeignFact, servers: tuple[TrustedServer, ...]) -> bool:
    """Whether somebody vouches that the tool changes nothing."""
    return any(_vouches(one, fact) for one in servers if one.server == fact.server)


def _vouches(one: TrustedServer, fact: ForeignFact) -> bool:
    listed = any(fnmatchcase(fact.tool, pattern) for pattern in one.read_only)
    return listed or (one.hints and fact.read_only)


def _by_mode(subject: str, fact: ForeignFact, rules: PolicyConfig) -> PartVerdict:
    if is_read_only_tool(fact, rules.servers):
        return allow(subject, "tool.vouched", f"the settings vouch that it only looks ({fact.server})")
    why = f"it runs on the server {fact.server}, and undo does not cover what it does"
    return judge_by_mode(subject, "tool.mcp", "foreign", rules.mode, undo=False, why=why)


def _by_grant(name: str, judged: PartVerdict, rules: PolicyConfig) -> PartVerdict:
    if judged.part.decision != "confirm":
        return judged
    grant = find_grant(rules.grants, name)
    if grant is not None:
        return allow(judged.part.subject, f"{GRANTED}{grant.id}", f"a person allowed {name} for good")
    return _grantable(name, judged)


def _grantable(name: str, judged: PartVerdict) -> PartVerdict:
    """A yes may be for the calls after it too. That of a tool which was changed is first of all to what it is now."""
    return PartVerdict(msgspec.structs.replace(judged.part, grant=name), judged.code, judged.final)
