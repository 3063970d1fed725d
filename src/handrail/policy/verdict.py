"""Verdicts on the parts of a call."""

from typing import Literal

import msgspec
from msgspec.structs import replace

from handrail.policy.config import GRANTED, STRICTEST_FIRST, PolicyConfig, RestrictedProfile, Rule
from handrail.policy.names import GIT_LOCK, find_protection, is_git_lock, is_in_folder
from handrail.protocol.decisions import Decision, DecisionPart, Mode, PathFact, Verdict
from handrail.protocol.errors import REFUSAL_ADVICE, ErrorCode, ToolError

PartKind = Literal[
    "proven", "unproven", "write", "delete", "bulk", "protected", "outside", "network", "process", "foreign"
]
"""The effect of a part of a call. `proven`: only reads. `unproven`: may do anything to the workspace. `outside`: uses a
path outside every root. `process`: outlives the call. `foreign`: calls an MCP server."""
Cell = Literal["allow", "confirm", "deny", "undoable"]
"""`undoable`: allowed if it can be undone, otherwise confirmed."""

TABLE: dict[PartKind, dict[Mode, Cell]] = {
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
"""The verdict of each mode if no rule decides."""

_REASONS: dict[tuple[PartKind, Verdict], str] = {
    ("unproven", "deny"): "plan mode runs only commands that handrail can prove harmless",
    ("unproven", "confirm"): "handrail cannot prove that it changes nothing",
    ("write", "deny"): "plan mode changes nothing",
    ("write", "confirm"): "ask mode asks before every write",
    ("delete", "deny"): "plan mode changes nothing",
    ("delete", "confirm"): "ask mode asks before every deletion",
    ("bulk", "deny"): "plan mode changes nothing",
    ("bulk", "confirm"): "so many files at once ask",
    ("protected", "deny"): "plan mode changes nothing",
    ("protected", "confirm"): "this file controls tools, hooks or builds, so changes need approval",
    ("outside", "deny"): "the path leads outside the workspace",
    ("network", "deny"): "plan mode has no network",
    ("network", "confirm"): "network access needs approval",
    ("process", "deny"): "plan mode leaves nothing running",
    ("process", "confirm"): "background processes need approval, since undo does not cover them",
    ("foreign", "deny"): "plan mode calls only tools of other servers that the settings declare read-only",
    ("foreign", "confirm"): "what another server does asks",
}


class PartVerdict(msgspec.Struct, frozen=True):
    """The verdict on one part of a call."""

    part: DecisionPart
    code: ErrorCode | None = None
    """The error code if the part is denied."""
    final: bool = False
    """Neither a rule nor a grant may loosen it."""
    names_hosts: bool = False
    """Whether the reason says which hosts an approval opens."""
    kind: PartKind | None = None
    """The effect, if the mode decided."""

    def with_path(self, path: str) -> "PartVerdict":
        """Name the path in the reason, unless the part is allowed."""
        if self.part.decision == "allow":
            return self
        effect = self.part.reason if path == self.part.subject else ""
        return self._with(reason=f"{self.part.reason}: {path}", effect=effect)

    def with_hosts(self, remark: str) -> "PartVerdict":
        """Add the remark about the network to the reason if the part asks."""
        if self.part.decision != "confirm":
            return self
        return replace(self._with(reason=f"{self.part.reason}; {remark}", effect=""), names_hosts=True)

    def with_grant(self, grant: str) -> "PartVerdict":
        """Set the class of commands, or the tool, that a standing approval would cover."""
        return self._with(grant=grant)

    def _with(self, **fields: str) -> "PartVerdict":
        return replace(self, part=replace(self.part, **fields))


def deny(subject: str, rule: str, reason: str, code: ErrorCode = "POLICY_DENIED") -> PartVerdict:
    """A part that nothing allows."""
    return PartVerdict(DecisionPart(subject=subject, decision="deny", rule=rule, reason=reason), code, final=True)


def deny_credential(subject: str, path: str = "") -> PartVerdict:
    """A part that uses a credential. `path` names it if the subject does not."""
    return deny(subject, "fs.secret", "credentials may be neither read nor written" + (f": {path}" if path else ""))


def ask(subject: str, rule: str, reason: str) -> PartVerdict:
    """A part that asks, despite rules and grants."""
    return PartVerdict(DecisionPart(subject=subject, decision="confirm", rule=rule, reason=reason), final=True)


def allow(subject: str, rule: str, reason: str) -> PartVerdict:
    """A part that needs no approval."""
    return PartVerdict(DecisionPart(subject=subject, decision="allow", rule=rule, reason=reason))


def pick_strictest(verdicts: list[PartVerdict]) -> PartVerdict:
    """The first of the strictest parts. Among equals a final one goes first."""
    return min(verdicts, key=lambda verdict: (STRICTEST_FIRST.index(verdict.part.decision), not verdict.final))


def combine(verdicts: list[PartVerdict], rules: PolicyConfig) -> Decision:
    """The decision over all parts, at least one. In an unattended session a question becomes a denial."""
    deciding = verdicts[0] if len(verdicts) == 1 else _pick_deciding(verdicts)
    part, code = deciding.part, deciding.code
    if part.decision == "confirm" and (rules.unattended or rules.restriction is not None):
        nobody = "no person is present to approve" if rules.unattended else "the restricted profile never asks"
        part = replace(part, decision="deny", reason=f"{part.reason}, and {nobody}", effect="")
        code = "PERMISSION_DENIED"
    return Decision(
        decision=part.decision,
        rule=part.rule,
        reason=part.reason,
        subject=part.subject,
        effect=part.effect,
        code=code,
        parts=tuple(verdict.part for verdict in verdicts) if len(verdicts) > 1 else (),
        grants=_list_grants(verdicts) if part.decision == "confirm" else (),
    )


def _pick_deciding(verdicts: list[PartVerdict]) -> PartVerdict:
    """The strictest part. If all parts are allowed, one that a grant allows is worth showing."""
    strictest = pick_strictest(verdicts)
    if strictest.part.decision != "allow":
        return strictest
    return next((verdict for verdict in verdicts if verdict.part.rule.startswith(GRANTED)), strictest)


def _list_grants(verdicts: list[PartVerdict]) -> tuple[str, ...]:
    """The grants with which the call would not ask. Empty if grants cannot achieve that."""
    grants = [verdict.part.grant for verdict in verdicts if verdict.part.decision == "confirm"]
    return tuple(dict.fromkeys(grants)) if all(grants) else ()


def judge_by_mode(
    subject: str, rule: str, kind: PartKind, mode: Mode, *, undo: bool, why: str = "", effect: str = ""
) -> PartVerdict:
    """A part that the mode decides. `undo`: whether it can be undone. `why`: what the part does. `effect`: the same
    without the subject."""
    verdict, explanation = _apply_mode(kind, mode, undo=undo)
    is_explained = bool(why) and _needs_explanation(kind, mode, verdict)
    reason = f"{why}; {explanation}" if is_explained else why or explanation
    if verdict == "deny":
        code: ErrorCode = "OUTSIDE_WORKSPACE" if kind == "outside" else "POLICY_DENIED"
        return deny(subject, rule, reason, code)
    # A rule about a command does not cover protected files or bulk changes.
    final = kind in {"protected", "bulk"} and verdict == "confirm"
    effect = effect if verdict == "confirm" and not is_explained else ""
    part = DecisionPart(subject=subject, decision=verdict, rule=rule, reason=reason, effect=effect)
    return PartVerdict(part, final=final, kind=kind)


def _apply_mode(kind: PartKind, mode: Mode, *, undo: bool) -> tuple[Verdict, str]:
    cell = TABLE[kind][mode]
    if cell == "undoable":
        covered: Verdict = "allow" if undo else "confirm"
        return covered, f"{mode} mode allows what undo covers" if undo else (
            "undo does not cover it, so it needs approval"
        )
    return cell, _REASONS.get((kind, cell)) or ("it only reads" if kind == "proven" else f"{mode} mode allows it")


def _needs_explanation(kind: PartKind, mode: Mode, verdict: Verdict) -> bool:
    """Whether the reason needs the mode's explanation as well as what the part does."""
    if verdict == "confirm":
        return TABLE[kind][mode] == "undoable"
    return verdict == "deny" or kind != "proven"


def judge_by_rule(subject: str, rule: Rule) -> PartVerdict:
    reason = rule.because or f"a rule decides this ({rule.source or rule.layer})"
    part = DecisionPart(subject=subject, decision=rule.verdict, rule=rule.id, reason=reason)
    return PartVerdict(part, "POLICY_DENIED" if rule.verdict == "deny" else None, final=True)


_SHARED = "the file has other names (hard links), maybe outside the workspace, and a write changes all names"


def judge_path(fact: PathFact, rules: PolicyConfig, *, undo: bool, subject: str = "") -> PartVerdict:
    """A path that a file tool or a command uses. `subject`: its name in the decision, if not the path."""
    subject = subject or fact.path
    if fact.real is None:
        return _judge_outside(fact, rules, subject)
    # A link may lead elsewhere by the time it is used, so both names count.
    protections = {find_protection(fact.real), find_protection(fact.named or fact.real)}
    if "credential" in protections or fact.credential:
        return deny_credential(subject, "the file has another, protected name (hard link)" if fact.credential else "")
    if fact.access == "read":
        return judge_by_mode(subject, "fs.read", "proven", rules.mode, undo=undo)
    if not fact.writable:
        return deny(subject, "fs.read-only", "this root is read-only")
    kind = "protected" if "protected" in protections or fact.repository else fact.access
    if kind == "write" and (guard := _find_write_guard(fact, fact.real)):
        return judge_by_mode(subject, guard[0], "protected", rules.mode, undo=undo, why=guard[1])
    return judge_by_mode(subject, f"fs.{kind}", kind, rules.mode, undo=undo)


def _find_write_guard(fact: PathFact, real: str) -> tuple[str, str] | None:
    """Rule and reason if writing asks although the name is not protected."""
    if fact.shared:
        return "fs.hard-link", _SHARED
    if fact.read_only:
        return "fs.read-only-file", "the file is read-only by its mode; a write would still replace it"
    return ("fs.lock", GIT_LOCK) if is_git_lock(real) else None


def _judge_outside(fact: PathFact, rules: PolicyConfig, subject: str) -> PartVerdict:
    """Asks only if the facts name a folder that may be opened."""
    if fact.outside is not None and find_protection(fact.outside) == "credential":
        return deny_credential(subject)
    if not rules.can_open(fact):
        return judge_by_mode(subject, "fs.outside", "outside", rules.mode, undo=False)
    leads_out = _REASONS["outside", "deny"]
    if fact.closed_reason:
        return deny(subject, "fs.outside", f"{leads_out}; {fact.closed_reason}", "OUTSIDE_WORKSPACE")
    return ask(subject, "fs.outside", f"{leads_out}, to {fact.folder}")


def restrict_path(
    verdict: PartVerdict, fact: PathFact, rules: PolicyConfig, restriction: RestrictedProfile
) -> PartVerdict:
    """The restricted profile allows in its folders what the mode would allow or ask, and nothing elsewhere."""
    subject = verdict.part.subject
    if verdict.part.decision == "deny":
        return verdict
    names = () if fact.real is None else (fact.real, fact.named or fact.real)
    roots = [folder.strip("/") for folder in restriction.folders]
    if not names or not all(any(is_in_folder(name, root) for root in roots) for name in names):
        folders = ", ".join(restriction.folders)
        return deny(subject, "restricted.path", f"the restricted profile uses files in {folders} only")
    if fact.access != "read" and (rules.mode == "plan" or find_protection(names[0]) is not None):
        return deny(subject, "restricted.path", "the restricted profile does not change this file")
    return allow(subject, "restricted.path", "the restricted profile uses files in this folder")


def build_change_refusal(decision: Decision, outcome: str, changes: str = "what it changed") -> ToolError:
    """The error of a command whose changes were denied. `outcome`: what happened to the changes."""
    details = {"rule": decision.rule, "reason": decision.reason}
    if decision.decision == "confirm" or decision.code == "PERMISSION_DENIED":
        needed = f"{changes.capitalize()} needs approval: {decision.reason}."
        return ToolError("PERMISSION_DENIED", f"{needed} {outcome} Do not repeat this call.", details=details)
    forbidden = f"Rule {decision.rule} forbids {changes}: {decision.reason}."
    return ToolError(decision.code or "POLICY_DENIED", f"{forbidden} {outcome} {REFUSAL_ADVICE}", details=details)
