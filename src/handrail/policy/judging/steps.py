"""Judges the simple commands of a script, each on its own: what is never done, its paths, its effect, the rules."""

import msgspec

from handrail.policy.commands.denies import find_builtin_deny
from handrail.policy.commands.reading import Classification, PathUse
from handrail.policy.commands.targets import to_base_name
from handrail.policy.commands.told import has_program_option
from handrail.policy.judging.case import PolicyContext
from handrail.policy.judging.deciding import GRANTED
from handrail.policy.judging.inner import judge_inner_command
from handrail.policy.judging.judged import (
    PartVerdict,
    allow,
    deny,
    drop_grant,
    judge_by_mode,
    judge_by_rule,
    pick_strictest,
)
from handrail.policy.judging.restricted import restrict_command
from handrail.policy.judging.uses import judge_use
from handrail.policy.rules.code import can_run_code
from handrail.policy.rules.foreign_names import MCP_PREFIX
from handrail.policy.rules.grant import find_grant
from handrail.policy.rules.prefix import build_prefix, is_about
from handrail.policy.rules.rule import Rule
from handrail.policy.script import CommandStep

_GIT_DELETES = tuple(
    build_prefix(("git", *words.split()))
    for words in (
        *("rm", "clean", "prune", "branch -d", "branch -D", "tag -d", "tag --delete", "stash drop", "stash clear"),
        *("worktree remove", "update-ref -d", "reflog delete", "reflog expire", "notes remove", "replace -d"),
    )
)


def judge_step(step: CommandStep, case: PolicyContext) -> PartVerdict:
    """The verdict on one simple command: a built-in no, else what rules say, else grants, else the mode."""
    if step.endless:
        return deny(step.shown, "exec.limit", "it starts more commands than can be looked at")
    by_default = _grantable(pick_strictest(_by_default(step, case)), _class_of(step))
    judged = [by_default if by_default.code is not None else _by_rule(step, case, by_default)]
    # A rule about a program says nothing of where its output goes, nor of what else it starts.
    judged += (one for use in step.redirected if (one := judge_use(use, "", step.shown, case)))
    judged += (
        one for inner in step.inner if (one := judge_inner_command(inner, step.folders, step.shown, case, literal=True))
    )
    return _restricted(_only_question(judged), step, case)


def _class_of(step: CommandStep) -> str:
    """The class that a person may allow for good; none if the command deletes, or runs what its words say."""
    grant = step.reading.grant
    return "" if grant and (_deletes(step) or can_run_code(step.words) or has_program_option(step.words)) else grant


def _deletes(step: CommandStep) -> bool:
    if step.reading.effect == "delete" or any(use.access == "delete" for use in step.uses):
        return True
    words = ("git", *step.words[1:])
    return to_base_name(step.words[0]) == "git" and any(is_about(one, words) for one in _GIT_DELETES)


def _only_question(judged: list[PartVerdict]) -> PartVerdict:
    """The strictest of them; where more than one asks, a grant for the program would not end the asking."""
    found = pick_strictest(judged)
    asking = sum(one.part.decision == "confirm" for one in judged)
    return found if asking < 2 else drop_grant(found)


def _restricted(judged: PartVerdict, step: CommandStep, case: PolicyContext) -> PartVerdict:
    if case.rules.restriction is None:
        return judged
    if step.redirected:
        return deny(step.shown, "restricted.command", "the restricted profile redirects nothing")
    proven = step.reading.effect == "proven"
    return restrict_command(judged, step.words, case.rules.restriction, proven=proven)


def _by_default(step: CommandStep, case: PolicyContext) -> list[PartVerdict]:
    never = find_builtin_deny(step.words, step.writes, literal=True)
    if never is not None:
        return [deny(step.shown, never.rule, never.reason)]
    uses = step.uses if step.reading.effect != "proven" else [_settled(use, case) for use in step.uses]
    found = [judge_use(use, step.words[0], step.shown, case) for use in uses if not case.is_plain_read(use)]
    judged = [one for one in found if one is not None]
    # What changes just the files it names is judged by these; `ln -s a` names none that it changes.
    named = any(use.is_certainly_path and use.access != "read" for use in step.uses)
    if not named or step.reading.effect not in {"write", "delete"}:
        judged.insert(0, judge_effect(step.reading, step.shown, case))
    return judged


def _settled(use: PathUse, case: PolicyContext) -> PathUse:
    """What only may be a path is one for certain where it leads outside: no branch is called like a link."""
    fact = None if use.is_certainly_path else case.find_fact(use)
    return PathUse(use.path, use.access, use.is_glob) if fact is not None and fact.real is None else use


def judge_effect(reading: Classification, shown: str, case: PolicyContext) -> PartVerdict:
    """What the mode says to what a command does; of the network, also what a yes opens."""
    judged = judge_by_mode(shown, reading.rule, reading.effect, case.rules.mode, undo=case.undo, why=reading.reason)
    return judged.with_remark(case.network) if reading.effect == "network" else judged


def _by_rule(step: CommandStep, case: PolicyContext, by_default: PartVerdict) -> PartVerdict:
    rule = _rule(step, case) if case.rules.rules else None
    if rule is not None:
        said = judge_by_rule(step.shown, rule)
        return pick_strictest([by_default, said]) if by_default.final else said
    grant = find_grant(case.rules.grants, by_default.part.grant)
    if grant is None:
        return by_default
    return allow(step.shown, f"{GRANTED}{grant.id}", f"a person allowed {grant.command} for good")


def _rule(step: CommandStep, case: PolicyContext) -> Rule | None:
    at_root = step.folders == (".",)
    return case.book.command(step.words, lambda word: case.is_inside(word, step.folders), at_root=at_root)


def _grantable(judged: PartVerdict, grant: str) -> PartVerdict:
    if judged.final or judged.part.decision != "confirm" or grant.startswith(MCP_PREFIX):
        return judged
    return PartVerdict(msgspec.structs.replace(judged.part, grant=grant), judged.code, judged.final)
