"""From judged parts to one decision: the strictest, and no where nobody is there to ask."""

import msgspec

from handrail.policy.configuration import PolicyConfig
from handrail.policy.judging.judged import PartVerdict, pick_strictest
from handrail.protocol.decision import Decision

GRANTED = "grant."
"""How the rule of a grant begins; its id follows."""
NOBODY = "nobody is here to ask"
"""How the reason ends where policy would have asked; the restricted profile, which never asks, says it otherwise."""


def combine(judged: list[PartVerdict], rules: PolicyConfig) -> Decision:
    """The decision over all parts, of which there is at least one."""
    found = judged[0] if len(judged) == 1 else _worth_most(judged)
    part, code = found.part, found.code
    if part.decision == "confirm" and (rules.unattended or rules.restriction is not None):
        nobody = f"and {NOBODY}" if rules.unattended else "and the restricted profile asks nobody"
        part = msgspec.structs.replace(part, decision="deny", reason=f"{part.reason}, {nobody}")
        code = "PERMISSION_DENIED"
    return Decision(
        decision=part.decision,
        rule=part.rule,
        reason=part.reason,
        subject=part.subject,
        code=code,
        parts=tuple(one.part for one in judged) if len(judged) > 1 else (),
        grants=_grants(judged) if part.decision == "confirm" else (),
    )


def _worth_most(judged: list[PartVerdict]) -> PartVerdict:
    """The strictest; of what all is let be, what a person let be is worth a word."""
    found = pick_strictest(judged)
    if found.part.decision != "allow":
        return found
    return next((one for one in judged if one.part.rule.startswith(GRANTED)), found)


def _grants(judged: list[PartVerdict]) -> tuple[str, ...]:
    """What would have to be granted for the call to ask no more; nothing where a grant cannot do that."""
    classes = [one.part.grant for one in judged if one.part.decision == "confirm"]
    return tuple(dict.fromkeys(classes)) if all(classes) else ()
