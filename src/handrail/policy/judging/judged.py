"""A part of a call, judged: the verdict, and how firm it is."""

import msgspec

from handrail.policy.modes import NOT_COVERED, Subject, apply_mode
from handrail.policy.rules.rule import STRICTEST_FIRST, Rule
from handrail.protocol.decision import DecisionPart, Mode, Verdict
from handrail.protocol.error import ErrorCode

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
