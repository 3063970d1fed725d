"""Judges the simple commands of a script, each on its own: what is never done, its paths, its effect, the rules."""

import msgspec

from handrail.policy.commands.denies import denied as never_done
from handrail.policy.commands.reading import Effect, Reading
from handrail.policy.commands.wrapped import inner_commands
from handrail.policy.judging.case import Case
from handrail.policy.judging.judged import STRICTNESS, Judged, allowed, denied, moded, ruled, strictest
from handrail.policy.judging.restricted import restrict_command
from handrail.policy.judging.uses import judge_use
from handrail.policy.modes import Subject
from handrail.policy.rules.grant import granted
from handrail.policy.rules.rule import Rule
from handrail.policy.script import Step

Words = tuple[str, ...]
SUBJECTS: dict[Effect, Subject] = {
    "proven": "proven",
    "write": "write",
    "delete": "delete",
    "network": "network",
    "unproven": "unproven",
}


def judge_step(step: Step, case: Case) -> Judged:
    """The verdict on one simple command: a built-in no, else what rules say, else grants, else the mode."""
    # What a table knows word by word starts nothing else.
    inner = inner_commands(step.words) if step.reading.effect in {"unproven", "network"} else ()
    by_default = _grantable(strictest(_by_default(step, inner, case)), step.reading.grant)
    judged = by_default if by_default.code is not None else _by_rule(step, inner, case, by_default)
    for use in step.redirected:  # a rule about a program says nothing of where its output goes
        found = judge_use(use, "", step.shown, case)
        judged = strictest([judged, found]) if found is not None else judged
    if case.rules.restriction is None:
        return judged
    if step.redirected:
        return denied(step.shown, "restricted.command", "the restricted profile redirects nothing")
    proven = step.reading.effect == "proven"
    return restrict_command(judged, step.words, case.rules.restriction, proven=proven)


def never_run(commands: tuple[Words, ...], writes: Words, shown: str) -> Judged | None:
    """The built-in no to a command, or to one that it would start: the first of them is the command itself."""
    for one in commands:
        found = never_done(one, writes)
        if found is not None:
            return denied(shown, found.rule, found.reason)
    return None


def _by_default(step: Step, inner: tuple[Words, ...], case: Case) -> list[Judged]:
    never = never_run((step.words, *inner), step.writes, step.shown)
    if never is not None:
        return [never]
    found = [judge_use(use, step.words[0], step.shown, case) for use in step.uses if not case.only_reads(use)]
    judged = [one for one in found if one is not None]
    # What changes just the files it names is judged by these.
    if not judged or step.reading.effect not in {"write", "delete"}:
        judged.insert(0, by_effect(step.reading, step.shown, case))
    return judged


def by_effect(reading: Reading, shown: str, case: Case) -> Judged:
    """What the mode says to what a command does."""
    if reading.effect == "deny":
        return denied(shown, reading.rule, reading.reason)
    kind = SUBJECTS[reading.effect]
    return moded(shown, reading.rule, kind, case.rules.mode, undo=case.undo, why=reading.reason)


def _by_rule(step: Step, inner: tuple[Words, ...], case: Case, by_default: Judged) -> Judged:
    rule = _rule(step, inner, case)
    if rule is not None:
        said = ruled(step.shown, rule)
        return strictest([by_default, said]) if by_default.firm else said
    grant = granted(case.rules.grants, by_default.part.grant)
    if grant is None or by_default.part.decision != "confirm":
        return by_default
    return allowed(step.shown, f"grant.{grant.id}", f"a person allowed {grant.command} for good")


def _rule(step: Step, inner: tuple[Words, ...], case: Case) -> Rule | None:
    if not case.rules.rules:
        return None
    at_root = step.folders == (".",)
    rule = case.book.command(step.words, lambda word: case.is_inside(word, step.folders), at_root=at_root)
    for words in inner:
        rule = _stricter(rule, case.book.stricter(words))
    return rule


def _stricter(one: Rule | None, other: Rule | None) -> Rule | None:
    if one is None or other is None:
        return one or other
    return other if STRICTNESS[other.verdict] > STRICTNESS[one.verdict] else one


def _grantable(judged: Judged, grant: str) -> Judged:
    if judged.firm or judged.part.decision != "confirm":
        return judged
    return Judged(msgspec.structs.replace(judged.part, grant=grant), judged.code, judged.firm)
