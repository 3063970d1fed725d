"""Judges what a call wants with a process session."""

from handrail.policy.configuration import PolicyConfig
from handrail.policy.judging.judged import PartVerdict, allow, ask, deny, judge_by_mode
from handrail.protocol.decision import ProcessFact

_LOOKS = frozenset({"list", "poll", "log"})


def judge_process(fact: ProcessFact, rules: PolicyConfig) -> PartVerdict:
    """Looking and ending are always allowed. Writing is running something, unless the program does nothing but look:
    what a shell is sent, it does. Nobody can say of it beforehand what may be sent, so that no rule and no grant
    speaks for it."""
    if fact.action in _LOOKS:
        return allow(fact.action, "process.look", "looking at what runs changes nothing")
    subject = f"{fact.action} to {fact.command}" if fact.action == "write" else f"{fact.action} {fact.command}"
    if fact.action != "write":
        return allow(subject, "process.stop", "what this session has started it may end")
    if rules.restriction is not None:
        return deny(subject, "restricted.tool", "the restricted profile writes to no program")
    if fact.looks:
        return judge_by_mode(subject, "process.write", "proven", rules.mode, undo=False, why="the program only looks")
    why = "what the program does with it is not proven harmless"
    judged = judge_by_mode(subject, "process.write", "unproven", rules.mode, undo=fact.layered, why=why)
    return ask(subject, "process.write", judged.part.reason) if judged.part.decision == "confirm" else judged
