"""Judges what is done to a path, whoever does it: a file tool or a command."""

from handrail.policy.configuration import Rules
from handrail.policy.judging.judged import Judged, confirmed, denied, moded, secret
from handrail.policy.modes import Subject
from handrail.policy.names import Protection, locks_repository, protection
from handrail.protocol.decision import Access, PathFact

ACCESSES: dict[Access, Subject] = {"read": "proven", "write": "write", "delete": "delete"}
"""What the mode is asked about."""
_SHARED = "the file has other names (hard links), maybe outside the workspace, and a write changes all of them"
LOCKED = "a lock that stays there blocks git until somebody deletes it"


def judge_path(fact: PathFact, rules: Rules, *, undo: bool, subject: str = "") -> Judged:
    """The verdict on one path. `subject` is what to call it, where that is not the path itself."""
    subject = subject or fact.path
    if fact.real is None:
        return _outside(fact, rules, subject)
    found = _protection(fact.real, fact.named)
    if found == "credential" or fact.credential:
        return secret(subject, "the file is one under another name (hard link)" if fact.credential else "")
    if fact.access == "read":
        return moded(subject, "fs.read", "proven", rules.mode, undo=undo)
    if not fact.writable:
        return denied(subject, "fs.read-only", "this root is read-only")
    kind = "protected" if found == "protected" or fact.repository else ACCESSES[fact.access]
    if kind == "write" and (asks := _asks_to_write(fact, fact.real)):
        return moded(subject, asks[0], "protected", rules.mode, undo=undo, why=asks[1])
    return moded(subject, f"fs.{kind}", kind, rules.mode, undo=undo)


def _asks_to_write(fact: PathFact, real: str) -> tuple[str, str] | None:
    """The rule by which a file asks like a protected one, whatever its name protects, and why in words."""
    if fact.shared:
        return "fs.hard-link", _SHARED
    if fact.read_only:
        return "fs.read-only-file", "the file's mode makes it read-only; a write would replace it all the same"
    return ("fs.lock", LOCKED) if locks_repository(real) else None


def _outside(fact: PathFact, rules: Rules, subject: str) -> Judged:
    """Asks only where somebody looked where it leads, and found a folder that may be opened."""
    if fact.outside is not None and protection(fact.outside) == "credential":
        return secret(subject)
    if rules.outside == "deny" or fact.folder is None or (fact.access != "read" and rules.mode == "plan"):
        return moded(subject, "fs.outside", "outside", rules.mode, undo=False)
    if fact.shut:
        return denied(subject, "fs.outside", f"the path leads outside the workspace; {fact.shut}", "OUTSIDE_WORKSPACE")
    return confirmed(subject, "fs.outside", f"the path leads outside the workspace, to {fact.folder}")


def _protection(real: str, named: str | None) -> Protection | None:
    """The strictest over both names where a link is on the way: it may lead elsewhere by the time it is used."""
    if named is None:
        return protection(real)
    found = (protection(real), protection(named))
    return "credential" if "credential" in found else found[0] or found[1]
