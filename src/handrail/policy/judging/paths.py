"""Judges what is done to a path, whoever does it: a file tool or a command."""

from handrail.policy.configuration import PolicyConfig
from handrail.policy.judging.judged import PartVerdict, ask, deny, deny_credential, judge_by_mode
from handrail.policy.modes import Subject
from handrail.policy.names import Protection, find_protection, is_git_lock
from handrail.protocol.decision import Access, PathFact

ACCESSES: dict[Access, Subject] = {"read": "proven", "write": "write", "delete": "delete"}
"""What the mode is asked about."""
_SHARED = "the file has other names (hard links), maybe outside the workspace, and a write changes all of them"
LOCKED = "a lock that stays there blocks git until somebody deletes it"


def judge_path(fact: PathFact, rules: PolicyConfig, *, undo: bool, subject: str = "") -> PartVerdict:
    """The verdict on one path. `subject` is what to call it, where that is not the path itself."""
    subject = subject or fact.path
    if fact.real is None:
        return _outside(fact, rules, subject)
    found = _protection(fact.real, fact.named)
    if found == "credential" or fact.credential:
        return deny_credential(subject, "the file is one under another name (hard link)" if fact.credential else "")
    if fact.access == "read":
        return judge_by_mode(subject, "fs.read", "proven", rules.mode, undo=undo)
    if not fact.writable:
        return deny(subject, "fs.read-only", "this root is read-only")
    kind = "protected" if found == "protected" or fact.repository else ACCESSES[fact.access]
    if kind == "write" and (asks := _asks_to_write(fact, fact.real)):
        return judge_by_mode(subject, asks[0], "protected", rules.mode, undo=undo, why=asks[1])
    return judge_by_mode(subject, f"fs.{kind}", kind, rules.mode, undo=undo)


def _asks_to_write(fact: PathFact, real: str) -> tuple[str, str] | None:
    """The rule by which a file asks like a protected one, whatever its name protects, and why in words."""
    if fact.shared:
        return "fs.hard-link", _SHARED
    if fact.read_only:
        return "fs.read-only-file", "the file's mode makes it read-only; a write would replace it all the same"
    return ("fs.lock", LOCKED) if is_git_lock(real) else None


def _outside(fact: PathFact, rules: PolicyConfig, subject: str) -> PartVerdict:
    """Asks only where somebody looked where it leads, and found a folder that may be opened."""
    if fact.outside is not None and find_protection(fact.outside) == "credential":
        return deny_credential(subject)
    if rules.outside == "deny" or fact.folder is None or (fact.access != "read" and rules.mode == "plan"):
        return judge_by_mode(subject, "fs.outside", "outside", rules.mode, undo=False)
    if fact.closed_reason:
        return deny(
            subject, "fs.outside", f"the path leads outside the workspace; {fact.closed_reason}", "OUTSIDE_WORKSPACE"
        )
    return ask(subject, "fs.outside", f"the path leads outside the workspace, to {fact.folder}")


def _protection(real: str, named: str | None) -> Protection | None:
    """The strictest over both names where a link is on the way: it may lead elsewhere by the time it is used."""
    if named is None:
        return find_protection(real)
    found = (find_protection(real), find_protection(named))
    return "credential" if "credential" in found else found[0] or found[1]
