"""Judges a command that stands inside another, seen by its words alone: it can only make the answer stricter."""

import posixpath

from handrail.policy.commands.denies import FORK_BOMB, never_done
from handrail.policy.commands.reader import read_command
from handrail.policy.judging.case import Case
from handrail.policy.judging.judged import Judged, denied, ruled, secret
from handrail.policy.judging.uses import judge_use
from handrail.policy.names import protection
from handrail.policy.script import as_simple, from_workspace, seen_uses
from handrail.protocol.decision import SeenCommand

Folders = tuple[str | None, ...]


def refused(seen: SeenCommand, folders: Folders, shown: str, case: Case, *, literal: bool) -> Judged | None:
    """What is never done, what it would do to paths that it must not touch, and what a rule forbids or asks about.

    `folders`: where it may run, None where nobody knows; `literal`: nothing in its words is left to expand.
    """
    if seen.forks_itself:
        return denied(shown, FORK_BOMB.rule, FORK_BOMB.reason)
    never = never_done(seen.words, seen.writes, literal=literal)
    if never is not None:
        return denied(shown, never.rule, never.reason)
    named = _secret(seen, shown) or _path(seen, folders, shown, case)
    return named or _rule(seen, shown, case) or _path_rule(seen, folders, shown, case)


def _secret(seen: SeenCommand, shown: str) -> Judged | None:
    uses = read_command(as_simple(seen.words)).uses if seen.words else ()
    named = [*(use.path for use in uses), *seen.writes]
    found = next((path for path in named if protection(path) == "credential"), None)
    return None if found is None else secret(shown, found)


def _path(seen: SeenCommand, folders: Folders, shown: str, case: Case) -> Judged | None:
    program = seen.words[0] if seen.words else ""
    for use in (use for folder in folders for use in seen_uses(seen, folder)):
        found = judge_use(use, program, shown, case)
        if found is not None and found.part.decision == "deny":
            return found
    return None


def _rule(seen: SeenCommand, shown: str, case: Case) -> Judged | None:
    rule = case.book.stricter(seen.words)
    return None if rule is None else ruled(shown, rule)


def _path_rule(seen: SeenCommand, folders: Folders, shown: str, case: Case) -> Judged | None:
    """What a rule for every tool says of paths as they are spelled; where those lead that are read, nobody looked."""
    uses = read_command(as_simple(seen.words)).uses if seen.words and case.book.tools else ()
    paths = [*(use.path for use in uses), *(seen.writes if case.book.tools else ())]
    for path in (
        posixpath.normpath(from_workspace(path, folder or ".")) for path in paths if path for folder in folders
    ):
        rule = case.book.path("exec", (path,))
        if rule is not None and rule.verdict != "allow":
            return ruled(shown, rule).about(path)
    return None
