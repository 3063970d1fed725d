"""Judges the simple commands of a script, each on its own: what is never done, its paths, its effect, the rules."""

import msgspec

from handrail.policy.commands.denies import never_done
from handrail.policy.commands.reading import Reading, Use
from handrail.policy.commands.targets import base_name
from handrail.policy.commands.told import is_told_what_to_run
from handrail.policy.judging.case import Case
from handrail.policy.judging.deciding import GRANTED
from handrail.policy.judging.inner import refused
from handrail.policy.judging.judged import Judged, allowed, denied, moded, ruled, strictest, ungranted
from handrail.policy.judging.restricted import restrict_command
from handrail.policy.judging.uses import judge_use
from handrail.policy.rules.code import runs_code
from handrail.policy.rules.foreign_names import FOREIGN
from handrail.policy.rules.grant import granted
from handrail.policy.rules.prefix import is_about, prefix
from handrail.policy.rules.rule import Rule
from handrail.policy.script import Step

_GIT_DELETES = tuple(
    prefix(("git", *words.split()))
    for words in (
        *("rm", "clean", "prune", "branch -d", "branch -D", "tag -d", "tag --delete", "stash drop", "stash clear"),
        *("worktree remove", "update-ref -d", "reflog delete", "reflog expire", "notes remove", "replace -d"),
    )
)


def judge_step(step: Step, case: Case) -> Judged:
    """The verdict on one simple command: a built-in no, else what rules say, else grants, else the mode."""
    if step.endless:
        return denied(step.shown, "exec.limit", "it starts more commands than can be looked at")
    by_default = _grantable(strictest(_by_default(step, case)), _class_of(step))
    judged = [by_default if by_default.code is not None else _by_rule(step, case, by_default)]
    # A rule about a program says nothing of where its output goes, nor of what else it starts.
    judged += (one for use in step.redirected if (one := judge_use(use, "", step.shown, case)))
    judged += (one for inner in step.inner if (one := refused(inner, step.folders, step.shown, case, literal=True)))
    return _restricted(_only_question(judged), step, case)


def _class_of(step: Step) -> str:
    """The class that a person may allow for good; none if the command deletes, or runs what its words say."""
    grant = step.reading.grant
    return "" if grant and (_deletes(step) or runs_code(step.words) or is_told_what_to_run(step.words)) else grant


def _deletes(step: Step) -> bool:
    if step.reading.effect == "delete" or any(use.access == "delete" for use in step.uses):
        return True
    words = ("git", *step.words[1:])
    return base_name(step.words[0]) == "git" and any(is_about(one, words) for one in _GIT_DELETES)


def _only_question(judged: list[Judged]) -> Judged:
    """The strictest of them; where more than one asks, a grant for the program would not end the asking."""
    found = strictest(judged)
    asking = sum(one.part.decision == "confirm" for one in judged)
    return found if asking < 2 else ungranted(found)


def _restricted(judged: Judged, step: Step, case: Case) -> Judged:
    if case.rules.restriction is None:
        return judged
    if step.redirected:
        return denied(step.shown, "restricted.command", "the restricted profile redirects nothing")
    proven = step.reading.effect == "proven"
    return restrict_command(judged, step.words, case.rules.restriction, proven=proven)


def _by_default(step: Step, case: Case) -> list[Judged]:
    never = never_done(step.words, step.writes, literal=True)
    if never is not None:
        return [denied(step.shown, never.rule, never.reason)]
    uses = step.uses if step.reading.effect != "proven" else [_settled(use, case) for use in step.uses]
    found = [judge_use(use, step.words[0], step.shown, case) for use in uses if not case.only_reads(use)]
    judged = [one for one in found if one is not None]
    # What changes just the files it names is judged by these; `ln -s a` names none that it changes.
    named = any(use.certain and use.access != "read" for use in step.uses)
    if not named or step.reading.effect not in {"write", "delete"}:
        judged.insert(0, by_effect(step.reading, step.shown, case))
    return judged


def _settled(use: Use, case: Case) -> Use:
    """What only may be a path is one for certain where it leads outside: no branch is called like a link."""
    fact = None if use.certain else case.fact_of(use)
    return Use(use.path, use.access, use.is_glob) if fact is not None and fact.real is None else use


def by_effect(reading: Reading, shown: str, case: Case) -> Judged:
    """What the mode says to what a command does; of the network, also what a yes opens."""
    judged = moded(shown, reading.rule, reading.effect, case.rules.mode, undo=case.undo, why=reading.reason)
    return judged.adding(case.network) if reading.effect == "network" else judged


def _by_rule(step: Step, case: Case, by_default: Judged) -> Judged:
    rule = _rule(step, case) if case.rules.rules else None
    if rule is not None:
        said = ruled(step.shown, rule)
        return strictest([by_default, said]) if by_default.firm else said
    grant = granted(case.rules.grants, by_default.part.grant)
    if grant is None:
        return by_default
    return allowed(step.shown, f"{GRANTED}{grant.id}", f"a person allowed {grant.command} for good")


def _rule(step: Step, case: Case) -> Rule | None:
    at_root = step.folders == (".",)
    return case.book.command(step.words, lambda word: case.is_inside(word, step.folders), at_root=at_root)


def _grantable(judged: Judged, grant: str) -> Judged:
    if judged.firm or judged.part.decision != "confirm" or grant.startswith(FOREIGN):
        return judged
    return Judged(msgspec.structs.replace(judged.part, grant=grant), judged.code, judged.firm)
