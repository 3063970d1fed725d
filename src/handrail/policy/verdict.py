"""Verdicts on parts of a call, and their combination."""

import re
from typing import Literal

import msgspec

from handrail.policy.config import STRICTEST_FIRST, PolicyConfig, RestrictedProfile, Rule
from handrail.policy.names import Protection, find_protection, is_git_lock
from handrail.protocol.decisions import Access, Decision, DecisionPart, Mode, PathFact, Verdict
from handrail.protocol.errors import ErrorCode

# § [policy.modes] What each mode says where no rule does: one table.

Subject = Literal[
    "proven", "unproven", "write", "delete", "bulk", "protected", "outside", "network", "process", "foreign"
]
"""What a part of a call does. `proven`: it only looks. `unproven`: it may do anything to the workspace. `process`: it
outlives its call. `outside`: it is about a path that no root holds. `foreign`: another server does it."""
Cell = Literal["allow", "confirm", "deny", "undoable"]
"""`undoable`: allowed where undo covers it, confirmed otherwise."""

TABLE: dict[Subject, dict[Mode, Cell]] = {
    "proven": {"plan": "allow", "ask": "allow", "auto": "allow", "full": "allow"},
    "unproven": {"plan": "deny", "ask": "confirm", "auto": "undoable", "full": "allow"},
    "write": {"plan": "deny", "ask": "confirm", "auto": "undoable", "full": "allow"},
    "delete": {"plan": "deny", "ask": "confirm", "auto": "undoable", "full": "allow"},
    "bulk": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "protected": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "outside": {"plan": "deny", "ask": "deny", "auto": "deny", "full": "deny"},
    "network": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "process": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
    "foreign": {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
}

REASONS: dict[tuple[Subject, Verdict], str] = {
    ("unproven", "deny"): "plan mode runs nothing that is not proven harmless",
    ("unproven", "confirm"): "what it does is not proven harmless",
    ("write", "deny"): "plan mode changes nothing",
    ("write", "confirm"): "writes ask in ask mode",
    ("delete", "deny"): "plan mode changes nothing",
    ("delete", "confirm"): "deletions ask in ask mode",
    ("bulk", "deny"): "plan mode changes nothing",
    ("bulk", "confirm"): "so many files at once ask",
    ("protected", "deny"): "plan mode changes nothing",
    ("protected", "confirm"): "this file steers tools, hooks or builds, so changing it asks",
    ("outside", "deny"): "the path leads outside the workspace",
    ("network", "deny"): "plan mode reaches no network",
    ("network", "confirm"): "the network asks",
    ("process", "deny"): "plan mode leaves nothing running",
    ("process", "confirm"): "what goes on after the call asks, since undo does not cover it",
    ("foreign", "deny"): "plan mode calls no other server, but for tools that the settings vouch for",
    ("foreign", "confirm"): "what another server does asks",
}
NOT_COVERED = "undo would not cover it, so it asks"


def apply_mode(subject: Subject, mode: Mode, *, undo: bool) -> tuple[Verdict, str]:
    """The verdict of a mode on a subject, with the reason in words; `undo`: whether it could be undone."""
    cell = TABLE[subject][mode]
    if cell == "undoable":
        return ("allow", f"{mode} mode allows what undo covers") if undo else ("confirm", NOT_COVERED)
    return cell, REASONS.get((subject, cell)) or ("it only reads" if subject == "proven" else f"{mode} mode allows it")


# § [policy.judging.judged] A part of a call, judged: the verdict, and how firm it is.

SKILL = "skill."
"""How the rule of an active skill begins; its name follows."""


class PartVerdict(msgspec.Struct, frozen=True):
    """A part with what follows from it."""

    part: DecisionPart
    code: ErrorCode | None = None
    """The error of a part that is denied."""
    final: bool = False
    """Built in, or said by a rule: no rule and no grant makes it looser."""

    def with_path(self, path: str) -> "PartVerdict":
        """The same, naming the path that it is about where it is no plain yes."""
        if self.part.decision == "allow":
            return self
        part = msgspec.structs.replace(self.part, reason=f"{self.part.reason}: {path}")
        return PartVerdict(part, self.code, self.final)

    def with_remark(self, words: str) -> "PartVerdict":
        """The same, with more to say to whoever is asked."""
        if self.part.decision != "confirm":
            return self
        part = msgspec.structs.replace(self.part, reason=f"{self.part.reason}; {words}")
        return PartVerdict(part, self.code, self.final)


def pick_strictest(judged: list[PartVerdict]) -> PartVerdict:
    """The first of the strictest; among equals one that is firm goes before one that is not."""
    return min(judged, key=lambda one: (STRICTEST_FIRST.index(one.part.decision), not one.final))


def drop_grant(judged: PartVerdict) -> PartVerdict:
    """The same, of no class that could be allowed for good."""
    return PartVerdict(msgspec.structs.replace(judged.part, grant=""), judged.code, judged.final)


def deny(subject: str, rule: str, reason: str, code: ErrorCode = "POLICY_DENIED") -> PartVerdict:
    """A part that is never done."""
    return PartVerdict(DecisionPart(subject=subject, decision="deny", rule=rule, reason=reason), code, final=True)


def deny_credential(subject: str, path: str = "") -> PartVerdict:
    """A part that reaches for a credential; `path` names it where the subject does not."""
    return deny(subject, "fs.secret", "credentials are neither read nor written" + (f": {path}" if path else ""))


def ask(subject: str, rule: str, reason: str) -> PartVerdict:
    """A part that asks; what allows other things does not speak for it."""
    return PartVerdict(DecisionPart(subject=subject, decision="confirm", rule=rule, reason=reason), final=True)


def allow(subject: str, rule: str, reason: str) -> PartVerdict:
    """A part that is let be."""
    return PartVerdict(DecisionPart(subject=subject, decision="allow", rule=rule, reason=reason))


def judge_by_mode(subject: str, rule: str, kind: Subject, mode: Mode, *, undo: bool, why: str = "") -> PartVerdict:
    """A part that the mode decides. `why` says what the part does, where that explains more than the mode's reason."""
    verdict, by = apply_mode(kind, mode, undo=undo)
    reason = f"{why}; {by}" if why and _explains(kind, verdict, by) else why or by
    if verdict == "deny":
        code: ErrorCode = "OUTSIDE_WORKSPACE" if kind == "outside" else "POLICY_DENIED"
        return deny(subject, rule, reason, code)
    # What a rule says of a command says nothing of a file that steers tools, nor of very many files.
    firm = kind in {"protected", "bulk"} and verdict == "confirm"
    return PartVerdict(DecisionPart(subject=subject, decision=verdict, rule=rule, reason=reason), final=firm)


def _explains(kind: Subject, verdict: Verdict, by: str) -> bool:
    """Whether what a part does is not yet why the mode says yes or no to it, or asks although undo covers most."""
    return verdict == "deny" or by == NOT_COVERED or (verdict == "allow" and kind != "proven")


def judge_by_rule(subject: str, rule: Rule) -> PartVerdict:
    """What a rule says."""
    reason = rule.because or f"a rule says so ({rule.source or rule.layer})"
    part = DecisionPart(subject=subject, decision=rule.verdict, rule=rule.id, reason=reason)
    return PartVerdict(part, "POLICY_DENIED" if rule.verdict == "deny" else None, final=True)


# § [policy.judging.deciding] From judged parts to one decision: the strictest, and no where nobody is there to ask.

GRANTED = "grant."
"""How the rule of a grant begins; its id follows."""
NOBODY = "nobody is here to ask"
"""How the reason ends where policy would have asked; the restricted profile, which never asks, says it otherwise."""


def combine(judged: list[PartVerdict], rules: PolicyConfig) -> Decision:
    """The decision over all parts, of which there is at least one."""
    found = judged[0] if len(judged) == 1 else _worth_most(judged)
    part, code = found.part, found.code
    if part.decision == "confirm" and (rules.unattended or rules.restriction is not None):
        nobody = f"and {NOBODY}" if rules.unattended else "and the restricted profile asks nobody"
        part = msgspec.structs.replace(part, decision="deny", reason=f"{part.reason}, {nobody}")
        code = "PERMISSION_DENIED"
    return Decision(
        decision=part.decision,
        rule=part.rule,
        reason=part.reason,
        subject=part.subject,
        code=code,
        parts=tuple(one.part for one in judged) if len(judged) > 1 else (),
        grants=_grants(judged) if part.decision == "confirm" else (),
    )


def _worth_most(judged: list[PartVerdict]) -> PartVerdict:
    """The strictest; of what all is let be, what a person let be is worth a word."""
    found = pick_strictest(judged)
    if found.part.decision != "allow":
        return found
    return next((one for one in judged if one.part.rule.startswith(GRANTED)), found)


def _grants(judged: list[PartVerdict]) -> tuple[str, ...]:
    """What would have to be granted for the call to ask no more; nothing where a grant cannot do that."""
    classes = [one.part.grant for one in judged if one.part.decision == "confirm"]
    return tuple(dict.fromkeys(classes)) if all(classes) else ()


# § [policy.judging.paths] Judges what is done to a path, whoever does it: a file tool or a command.

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


# § [policy.judging.restricted] The restricted profile: a short list of commands, a few folders, and nothing asks.


def restrict_path(
    judged: PartVerdict, fact: PathFact, rules: PolicyConfig, restriction: RestrictedProfile
) -> PartVerdict:
    """Inside the named folders a file may be used as the mode would let it after a yes; elsewhere not at all."""
    subject = judged.part.subject
    if judged.part.decision == "deny":
        return judged
    if fact.real is None or not _is_in(fact.real, restriction) or not _is_in(fact.named or fact.real, restriction):
        named = ", ".join(restriction.folders)
        return deny(subject, "restricted.path", f"the restricted profile uses files in {named} only")
    if fact.access != "read" and (rules.mode == "plan" or find_protection(fact.real) is not None):
        return deny(subject, "restricted.path", "the restricted profile does not change this file")
    return allow(subject, "restricted.path", "the restricted profile uses files in this folder")


def restrict_command(
    judged: PartVerdict, words: tuple[str, ...], restriction: RestrictedProfile, *, proven: bool
) -> PartVerdict:
    """A listed command runs if it is proven, or is exactly what is listed; not what a rule asks about."""
    subject = judged.part.subject
    if judged.part.decision == "deny" or (judged.part.decision == "confirm" and judged.final):
        return judged
    for command in restriction.commands:
        listed = tuple(command.split())
        if words == listed or (proven and judged.part.decision == "allow" and _continues(words, listed)):
            return allow(subject, "restricted.command", "the restricted profile runs this command")
    return deny(subject, "restricted.command", "the restricted profile runs only the commands it lists")


_OF_GIT = re.compile(
    r"-n|-?\d{1,9}|-n\d{1,9}|--max-count=\d{1,9}|--(?:no-)?decorate|--graph|--reverse|--all|-s|-b|-sb|--short|--branch"
    r"|--porcelain(?:=v?[12])?"
)
"""What may be added to a command of git: how many, and how they are shown. All else may show other folders …"""
_BEYOND = re.compile(r"-[A-Za-z0-9]*[RLH].*|--recursive|--dereference.*")
"""… and so may these of ls."""


def _continues(words: tuple[str, ...], listed: tuple[str, ...]) -> bool:
    added = words[len(listed) :]
    if words[: len(listed)] != listed:
        return False
    if words[0] == "git":
        return all(_OF_GIT.fullmatch(word) for word in added)
    return words[0] != "ls" or not any(_BEYOND.fullmatch(word) for word in added)


def _is_in(path: str, restriction: RestrictedProfile) -> bool:
    names = path.split("/")
    return any(
        names[: len(folder)] == folder for folder in (name.strip("/").split("/") for name in restriction.folders)
    )
