"""Judges what a call wants with a process session."""

from handrail.policy.configuration import Rules
from handrail.policy.judging.judged import Judged, allowed, confirmed, denied, moded
from handrail.protocol.decision import ProcessFact

_LOOKS = frozenset({"list", "poll", "log"})


def judge_process(fact: ProcessFact, rules: Rules) -> Judged:
    """Looking and ending are always allowed. Writing is running something, unless the program does nothing but look:
    what a shell is sent, it does. Nobody can say of it beforehand what may be sent, so that no rule and no grant
    speaks for it."""
    if fact.action in _LOOKS:
        return allowed(fact.action, "process.look", "looking at what runs changes nothing")
    subject = f"{fact.action} to {fact.command}" if fact.action == "write" else f"{fact.action} {fact.command}"
    if fact.action != "write":
        return allowed(subject, "process.stop", "what this session has started it may end")
    if rules.restriction is not None:
        return denied(subject, "restricted.tool", "the restricted profile writes to no program")
    if fact.looks:
        return moded(subject, "process.write", "proven", rules.mode, undo=False, why="the program only looks")
    why = "what the program does with it is not proven harmless"
    judged = moded(subject, "process.write", "unproven", rules.mode, undo=fact.layered, why=why)
    return confirmed(subject, "process.write", judged.part.reason) if judged.part.decision == "confirm" else judged
