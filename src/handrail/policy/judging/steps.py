"""Judges the simple commands of a script, each on its own: what is never done, its paths, its effect, the rules."""

import msgspec

from handrail.policy.commands.denies import denied as never_done
from handrail.policy.commands.reading import Effect
from handrail.policy.commands.wrapped import inner_commands
from handrail.policy.judging.case import Case
from handrail.policy.judging.judged import STRICTNESS, Judged, denied, moded, ruled, strictest
from handrail.policy.judging.restricted import restrict_command
from handrail.policy.judging.uses import judge_use
from handrail.policy.modes import Subject
from handrail.policy.rules.grant import granted
from handrail.policy.rules.rule import Rule
from handrail.policy.script import Step
from handrail.protocol.decision import DecisionPart

SUBJECTS: dict[Effect, Subject] = {
    "proven": "proven",
    "write": "write",
    "delete": "delete",
    "network": "network",
    "unproven": "unproven",
}


def judge_step(step: Step, case: Case) -> Judged:
    """The verdict on one simple command: a built-in no, else what rules say, else grants, else the mode."""
    by_default = strictest(_by_default(step, case))
    judged = by_default if by_default.firm else _by_rule(step, case, by_default)
    for use in step.redirected:  # a rule about a program says nothing of where its output goes
        found = judge_use(use, "", step.shown, case)
        judged = strictest([judged, found]) if found is not None else judged
    if case.rules.restriction is None:
        return judged
    if step.redirected:
        return denied(step.shown, "restricted.command", "the restricted profile redirects nothing")
    proven = step.reading.effect == "proven"
    return restrict_command(judged, step.words, case.rules.restriction, proven=proven)


def never_run(words: tuple[str, ...], writes: tuple[str, ...], shown: str) -> Judged | None:
    """The built-in no to a command, or to one that it would start."""
    for one in (words, *inner_commands(words)):
        found = never_done(one, writes)
        if found is not None:
            return denied(shown, found.rule, found.reason)
    return None


def by_effect(step: Step, case: Case) -> Judged:
    """What the mode says to what the command does."""
    reading = step.reading
    if reading.effect == "deny":
        return denied(step.shown, reading.rule, reading.reason)
    kind = SUBJECTS[reading.effect]
    judged = moded(step.shown, reading.rule, kind, case.rules.mode, undo=case.undo, why=reading.reason)
    return judged if judged.part.decision != "confirm" else _grantable(judged, reading.grant)


def _by_default(step: Step, case: Case) -> list[Judged]:
    never = never_run(step.words, step.writes, step.shown)
    if never is not None:
        return [never]
    judged = [by_effect(step, case)]
    for use in step.uses:
        found = judge_use(use, step.words[0], step.shown, case)
        if found is not None:
            judged.append(found)
    return judged


def _by_rule(step: Step, case: Case, by_default: Judged) -> Judged:
    rule = case.book.command(step.words, lambda word: case.is_inside(word, step.folders))
    for inner in inner_commands(step.words):
        rule = _stricter(rule, case.book.stricter(inner))
    if rule is not None:
        return ruled(step.shown, rule)
    if by_default.part.decision == "confirm":
        grant = granted(case.rules.grants, by_default.part.grant)
        if grant is not None:
            reason = f"a person allowed {grant.command} for good"
            return Judged(DecisionPart(subject=step.shown, decision="allow", rule=f"grant.{grant.id}", reason=reason))
    return by_default


def _stricter(one: Rule | None, other: Rule | None) -> Rule | None:
    if one is None or other is None:
        return one or other
    return other if STRICTNESS[other.verdict] > STRICTNESS[one.verdict] else one


def _grantable(judged: Judged, grant: str) -> Judged:
    return Judged(msgspec.structs.replace(judged.part, grant=grant), judged.code, judged.firm)
