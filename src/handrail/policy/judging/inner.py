"""Judges a command that stands inside another, seen by its words alone: it can only make the answer stricter."""

import posixpath

from handrail.policy.commands.denies import FORK_BOMB, find_builtin_deny
from handrail.policy.commands.reader import classify
from handrail.policy.judging.case import PolicyContext
from handrail.policy.judging.judged import PartVerdict, deny, deny_credential, judge_by_rule
from handrail.policy.judging.uses import judge_use
from handrail.policy.names import find_protection
from handrail.policy.script import build_simple_command, list_displayed_uses, to_workspace_path
from handrail.protocol.decision import DisplayedCommand

Folders = tuple[str | None, ...]


def judge_inner_command(
    seen: DisplayedCommand, folders: Folders, shown: str, case: PolicyContext, *, literal: bool
) -> PartVerdict | None:
    """What is never done, what it would do to paths that it must not touch, and what a rule forbids or asks about.

    `folders`: where it may run, None where nobody knows; `literal`: nothing in its words is left to expand.
    """
    if seen.forks_itself:
        return deny(shown, FORK_BOMB.rule, FORK_BOMB.reason)
    never = find_builtin_deny(seen.words, seen.writes, literal=literal)
    if never is not None:
        return deny(shown, never.rule, never.reason)
    named = _secret(seen, shown) or _path(seen, folders, shown, case)
    return named or _inner_rule(seen, shown, case) or _path_rule(seen, folders, shown, case)


def _secret(seen: DisplayedCommand, shown: str) -> PartVerdict | None:
    uses = classify(build_simple_command(seen.words)).uses if seen.words else ()
    named = [*(use.path for use in uses), *seen.writes]
    found = next((path for path in named if find_protection(path) == "credential"), None)
    return None if found is None else deny_credential(shown, found)


def _path(seen: DisplayedCommand, folders: Folders, shown: str, case: PolicyContext) -> PartVerdict | None:
    program = seen.words[0] if seen.words else ""
    for use in (use for folder in folders for use in list_displayed_uses(seen, folder)):
        found = judge_use(use, program, shown, case)
        if found is not None and found.part.decision == "deny":
            return found
    return None


def _inner_rule(seen: DisplayedCommand, shown: str, case: PolicyContext) -> PartVerdict | None:
    rule = case.book.stricter(seen.words)
    return None if rule is None else judge_by_rule(shown, rule)


def _path_rule(seen: DisplayedCommand, folders: Folders, shown: str, case: PolicyContext) -> PartVerdict | None:
    """What a rule for every tool says of paths as they are spelled; where those lead that are read, nobody looked."""
    uses = classify(build_simple_command(seen.words)).uses if seen.words and case.book.tools else ()
    paths = [*(use.path for use in uses), *(seen.writes if case.book.tools else ())]
    for path in (
        posixpath.normpath(to_workspace_path(path, folder or ".")) for path in paths if path for folder in folders
    ):
        rule = case.book.path("exec", (path,))
        if rule is not None and rule.verdict != "allow":
            return judge_by_rule(shown, rule).with_path(path)
    return None
