"""Judges what a simple command does to one path that it names."""

import posixpath

from handrail.policy.commands.reading import PathUse
from handrail.policy.commands.targets import RIGHTS, to_base_name
from handrail.policy.judging.case import PolicyContext
from handrail.policy.judging.judged import (
    PartVerdict,
    ask,
    deny,
    deny_credential,
    judge_by_mode,
    judge_by_rule,
    pick_strictest,
)
from handrail.policy.judging.paths import ACCESSES, judge_path
from handrail.policy.judging.restricted import restrict_path
from handrail.policy.names import find_protection, may_name_credential
from handrail.protocol.decision import PathFact


def judge_use(use: PathUse, program: str, shown: str, case: PolicyContext) -> PartVerdict | None:
    """The verdict on one use of a path; None where it says nothing."""
    judged = _path_by_default(use, program, shown, case)
    said = _path_by_rule(use, shown, case) if case.book.tools else None
    if judged is None or said is None:
        return judged or said
    return pick_strictest([judged, said])


def _path_by_rule(use: PathUse, shown: str, case: PolicyContext) -> PartVerdict | None:
    """What a deny or ask rule for every tool says. A word that only may be a path counts where there is a file."""
    fact = case.find_fact(use)
    if fact is None or fact.real is None or (fact.kind == "missing" and not use.is_certainly_path):
        return None
    rule = case.book.path("exec", (fact.real,) if fact.named is None else (fact.real, fact.named))
    return judge_by_rule(shown, rule).with_path(use.path) if rule is not None and rule.verdict != "allow" else None


def _path_by_default(use: PathUse, program: str, shown: str, case: PolicyContext) -> PartVerdict | None:
    if may_name_credential(use.path) if use.is_glob else find_protection(use.path) == "credential":
        return deny_credential(shown, use.path)
    fact = case.find_fact(use)
    if not use.is_certainly_path:
        return _judge_guess(use, fact, shown, case)
    if fact is None:
        return deny(shown, "fs.unknown", f"nothing is known about {use.path}")
    return _judge_place(use, fact, program, shown, case)


def _judge_place(use: PathUse, fact: PathFact, program: str, shown: str, case: PolicyContext) -> PartVerdict:
    if use.is_glob and _climbs(use.path):
        return deny(shown, "fs.outside", f"the pattern {use.path} may lead outside the workspace", "OUTSIDE_WORKSPACE")
    if case.rules.restriction is not None and use.is_glob:  # a link in a folder may match it, and lead elsewhere
        return deny(shown, "restricted.path", f"the restricted profile wants each file by its name, not {use.path}")
    if _is_whole_root(use, fact) and (use.access == "delete" or _owns(use, program)):
        return deny(shown, "deny.workspace", "a root as a whole is neither deleted nor given away")
    if fact.real is None and _is_temporary(use.path, case):
        return judge_by_mode(shown, f"fs.{use.access}", ACCESSES[use.access], case.rules.mode, undo=True)
    if fact.real is not None and fact.kind == "other" and use.access == "read":
        return ask(shown, "fs.special", f"it is no regular file, so reading it may never end: {use.path}")
    return _judge_fact(fact, use, shown, case)


def _judge_fact(fact: PathFact, use: PathUse, shown: str, case: PolicyContext) -> PartVerdict:
    judged = judge_path(fact, case.rules, undo=case.undo, subject=shown)
    if case.rules.restriction is not None:
        judged = restrict_path(judged, fact, case.rules, case.rules.restriction)
    return judged.with_path(use.path)


def _judge_guess(use: PathUse, fact: PathFact | None, shown: str, case: PolicyContext) -> PartVerdict | None:
    """A word that may be a path: all it can tell is that it leads to a credential, or to what is changed by asking."""
    found = find_protection(use.path) if fact is None or fact.real is None else find_protection(fact.real)
    if found == "credential" or (fact is not None and fact.credential):
        return deny_credential(shown, use.path)
    if found == "protected" and use.access != "read":
        return judge_by_mode(shown, "fs.protected", "protected", case.rules.mode, undo=case.undo).with_path(use.path)
    return None


def _is_whole_root(use: PathUse, fact: PathFact) -> bool:
    """A pattern in a root is not all of it, but one in a folder around it may be."""
    return fact.root and fact.real is None if use.is_glob else fact.root or fact.real == "."


def _owns(use: PathUse, program: str) -> bool:
    return use.access == "write" and to_base_name(program) in RIGHTS


def _climbs(pattern: str) -> bool:
    """Whether a pattern goes up somewhere: behind a wildcard nobody knows from where."""
    return ".." in pattern.split("/")


def _is_temporary(path: str, case: PolicyContext) -> bool:
    """Whether a path is in the sandbox's own /tmp, which begins empty, so that no link leads out of it."""
    if case.fact.tier < 2 or case.rules.restriction is not None:
        return False
    return f"{posixpath.normpath(path)}/".startswith("/tmp/")  # noqa: S108  nothing is made there
