"""Judges what a call wants with the notes of a workspace."""

from handrail.policy.configuration import PolicyConfig
from handrail.policy.judging.judged import PartVerdict, allow, deny, judge_by_mode
from handrail.protocol.decision import MemoryFact

_WHY = "every later session reads what is noted"


def judge_memory(fact: MemoryFact, rules: PolicyConfig) -> PartVerdict:
    """Reading is always allowed. What is noted lasts, and undo does not cover it: who got a model to note a lie once
    would speak to every later session. So it asks wherever somebody can be asked, and files do not speak for it."""
    if fact.action == "list":
        return allow("notes", "memory.read", "reading notes changes nothing")
    subject = f"{fact.action} {fact.note}".strip()
    if rules.restriction is not None:
        return deny(subject, "restricted.tool", "the restricted profile notes nothing that lasts")
    return judge_by_mode(subject, "memory.write", "write", rules.mode, undo=False, why=_WHY)
