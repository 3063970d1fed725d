"""Decides about a call. Pure: the same call, facts and rules give the same decision, today and in a replay."""

import msgspec

from handrail.policy.modes import by_mode
from handrail.policy.names import Protection, protection
from handrail.protocol.decision import Decision, DecisionPart, Facts, Mode, PathFact, Verdict
from handrail.protocol.error import ErrorCode
from handrail.protocol.permission import Permission
from handrail.protocol.tool import ToolSpec

_STRICTNESS: dict[Verdict, int] = {"allow": 0, "confirm": 1, "deny": 2}
_SUBJECTS: dict[Permission, str] = {
    "fs.read": "read",
    "fs.write": "write",
    "fs.delete": "delete",
    "git.write": "write",
    "proc.exec": "command",
    "net.connect": "network",
}


class Rules(msgspec.Struct, frozen=True):
    """The configuration a decision depends on."""

    mode: Mode
    unattended: bool = False


def decide(spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: Rules) -> Decision:
    """The strictest verdict over everything the call touches; no part can allow what another refuses."""
    parts = [_narrowed(spec, requested)] if requested is not None else []
    parts += [_judge_path(fact, rules.mode) for fact in facts.paths]
    # Paths speak for the file permissions only: a tool that reads a file may also reach the network.
    for permission in spec.permissions:
        if not facts.paths or not permission.startswith("fs."):
            parts.append(_judge_permission(permission, rules.mode))
    if spec.category != "builtin":
        parts.append(_judge_foreign(spec, rules.mode))
    if not parts:
        return Decision(decision="allow", rule="tool.harmless", reason="the tool needs no permission")
    part, code = max(parts, key=lambda judged: _STRICTNESS[judged[0].decision])
    if part.decision == "confirm" and rules.unattended:
        reason = f"{part.reason}, and nobody is here to ask"
        part = msgspec.structs.replace(part, decision="deny", reason=reason)
        code = "PERMISSION_DENIED"
    return Decision(
        decision=part.decision,
        rule=part.rule,
        reason=part.reason,
        subject=part.subject,
        code=code,
        parts=tuple(part for part, _ in parts) if len(parts) > 1 else (),
    )


_Judged = tuple[DecisionPart, ErrorCode | None]


def _narrowed(spec: ToolSpec, requested: tuple[Permission, ...]) -> _Judged:
    missing = [permission for permission in spec.permissions if permission not in requested]
    if not missing:
        return _part("call", "allow", "call.narrowed", "the call asks for every permission it needs"), None
    reason = f"the call's requested_permissions leave out {', '.join(missing)}"
    return _part("call", "deny", "call.narrowed", reason), "POLICY_DENIED"


def _judge_path(fact: PathFact, mode: Mode) -> _Judged:
    if fact.real is None:
        return _part(fact.path, "deny", "fs.outside", "the path leads outside the workspace"), "OUTSIDE_WORKSPACE"
    found = _protection(fact.real, fact.named)
    if found == "credential":
        return _part(fact.path, "deny", "fs.secret", "credentials are neither read nor written"), "POLICY_DENIED"
    if fact.access != "read" and not fact.writable:
        return _part(fact.path, "deny", "fs.read-only", "this root is read-only"), "POLICY_DENIED"
    return _judge_access(fact, mode, guarded=fact.access != "read" and found == "protected")


def _protection(real: str, named: str | None) -> Protection | None:
    """The strictest over both names where a link is on the way: it may lead elsewhere by the time it is used."""
    if named is None:
        return protection(real)
    found = (protection(real), protection(named))
    return "credential" if "credential" in found else found[0] or found[1]


def _judge_access(fact: PathFact, mode: Mode, *, guarded: bool) -> _Judged:
    subject = "protected" if guarded else fact.access
    verdict, reason = by_mode(subject, mode)
    return _part(fact.path, verdict, f"fs.{subject}", reason), "POLICY_DENIED" if verdict == "deny" else None


def _judge_permission(permission: Permission, mode: Mode) -> _Judged:
    verdict, reason = by_mode(_SUBJECTS[permission], mode)
    return _part(permission, verdict, f"tool.{permission}", reason), "POLICY_DENIED" if verdict == "deny" else None


def _judge_foreign(spec: ToolSpec, mode: Mode) -> _Judged:
    """A tool we did not write: unasked only when it says it has no effects and may run by itself."""
    if not spec.side_effects and spec.auto_execute:
        return _part(spec.name, "allow", "tool.read-only", "the tool has no effects"), None
    verdict, reason = by_mode("command" if spec.side_effects else "foreign", mode)
    return _part(spec.name, verdict, "tool.custom", reason), "POLICY_DENIED" if verdict == "deny" else None


def _part(subject: str, verdict: Verdict, rule: str, reason: str) -> DecisionPart:
    return DecisionPart(subject=subject, decision=verdict, rule=rule, reason=reason)
