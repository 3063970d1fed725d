"""Decides about a call. Pure: the same call, facts and rules give the same decision, today and in a replay."""

from collections.abc import Sequence

from handrail.policy.configuration import PolicyConfig, RestrictedProfile
from handrail.policy.judging.deciding import combine
from handrail.policy.judging.judged import PartVerdict, allow, deny, judge_by_mode, judge_by_rule
from handrail.policy.judging.paths import judge_path
from handrail.policy.modes import Subject
from handrail.policy.permissions import list_permissions, list_possible_permissions
from handrail.protocol.decision import Decision, Facts, ForeignFact, PathFact
from handrail.protocol.permission import Permission
from handrail.protocol.tool import ToolSpec

__all__ = ["PolicyConfig", "RestrictedProfile", "decide"]

_SUBJECTS: dict[Permission, Subject] = {
    "fs.read": "proven",
    "fs.write": "write",
    "fs.delete": "delete",
    "git.write": "write",
    "proc.exec": "unproven",
    "net.connect": "network",
}


def decide(spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: PolicyConfig) -> Decision:
    """The strictest verdict over everything the call touches; no part can allow what another refuses."""
    judged = _judged(spec, requested, facts, rules)
    if not judged:
        return Decision(decision="allow", rule="tool.harmless", reason="the tool needs no permission")
    return combine(judged, rules)


def _judged(
    spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: PolicyConfig
) -> list[PartVerdict]:
    judged = _without_permission(spec, requested, facts, rules) if requested is not None or rules.denied else []
    if facts.command is not None:
        from handrail.policy.judging.commands import judge_command  # noqa: PLC0415  the tables are only for commands

        judged += judge_command(facts.command, facts, rules)
    elif facts.process is not None:
        from handrail.policy.judging.processes import judge_process  # noqa: PLC0415  as above

        judged.append(judge_process(facts.process, rules))
    else:
        judged += [_judge_path(spec, fact, rules) for fact in facts.paths]
        judged += _bulk(facts.paths, rules)
    judged += _judge_tool(spec, facts, rules)
    if facts.narrowed is not None:
        from handrail.policy.judging.narrowing import deny_outside_skills  # noqa: PLC0415  few have skills that narrow

        judged += deny_outside_skills(spec, facts.narrowed, facts)
    return judged


def _judge_tool(spec: ToolSpec, facts: Facts, rules: PolicyConfig) -> list[PartVerdict]:
    """What the tool needs and its paths do not speak for. A tool without paths is about the workspace as a whole."""
    judged = [
        _judge_permission(permission, spec, rules)
        for permission in spec.permissions
        if not _is_spoken_for(permission, facts)
    ]
    if facts.memory is not None:
        from handrail.policy.judging.memories import judge_memory  # noqa: PLC0415  few calls are about notes

        judged.append(judge_memory(facts.memory, rules))
    if spec.category == "mcp":
        from handrail.policy.judging.foreign import judge_foreign  # noqa: PLC0415  few have tools of other servers

        fact = facts.foreign or ForeignFact(server=spec.server, tool=spec.own_name)
        judged += judge_foreign(spec.name, fact, rules)
    elif spec.category == "custom":
        judged.append(_judge_custom(spec, rules))
    if not rules.rules or facts.paths or facts.command is not None:
        return judged
    whole = _by_path_rule(spec.name, spec.name, (".",), rules)
    if whole is None:
        return judged
    return [*(one for one in judged if one.final or whole.part.decision != "allow"), whole]


def _is_spoken_for(permission: Permission, facts: Facts) -> bool:
    """Paths speak for the file permissions only, and a command for all but the network that a tool says it needs."""
    if facts.command is not None or facts.process is not None:
        return permission != "net.connect"
    return bool(facts.paths) and permission.startswith("fs.")


def _without_permission(
    spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: PolicyConfig
) -> list[PartVerdict]:
    """What a call may not do, since the session denies it or the call itself leaves it out."""
    possible = list_possible_permissions(spec, facts)
    unproven = [one for one in possible if one not in list_permissions(spec, facts)]
    judged: list[PartVerdict] = []
    if shut := [one for one in possible if one in rules.denied]:
        are = f"{' and '.join(shut)} {'are' if len(shut) > 1 else 'is'} denied here"
        judged.append(deny(_subject(spec, facts), "call.denied", are + _because(shut, unproven)))
    if requested is not None and (missing := [one for one in possible if one not in requested]):
        out = f"the call's requested_permissions leave out {', '.join(missing)}"
        judged.append(deny("call", "call.narrowed", out + _because(missing, unproven)))
    elif requested is not None:
        judged.append(allow("call", "call.narrowed", "the call asks for every permission it needs"))
    return judged


def _subject(spec: ToolSpec, facts: Facts) -> str:
    if facts.command is not None:
        return facts.command.text
    if facts.process is not None:
        return facts.process.command
    return facts.paths[0].path if facts.paths else spec.label


def _because(refused: Sequence[str], unproven: Sequence[str]) -> str:
    """Why a permission is needed that nothing in the call names."""
    return "; handrail cannot prove that the call does without" if any(one in unproven for one in refused) else ""


def _judge_path(spec: ToolSpec, fact: PathFact, rules: PolicyConfig) -> PartVerdict:
    judged = judge_path(fact, rules, undo=spec.category == "builtin")
    if rules.rules and judged.code is None:
        paths = tuple(path for path in (fact.real or fact.outside, fact.named) if path is not None)
        said = _by_path_rule(spec.name, fact.path, paths, rules)
        judged = said if said is not None and _counts(said, fact) else judged
    if rules.restriction is not None:
        from handrail.policy.judging.restricted import restrict_path  # noqa: PLC0415  few sessions are restricted

        judged = restrict_path(judged, fact, rules, rules.restriction)
    return judged


def _counts(said: PartVerdict, fact: PathFact) -> bool:
    """No name tells that a file steers a repository, has other names or is read-only, or that somebody would have to
    open its folder: a rule about names does not allow that, and of what is outside it can only say no."""
    if fact.real is None:
        return said.part.decision == "deny"
    unnamed = fact.repository or ((fact.shared or fact.read_only) and fact.access == "write")
    return not (unnamed and said.part.decision == "allow")


def _by_path_rule(tool: str, subject: str, paths: tuple[str, ...], rules: PolicyConfig) -> PartVerdict | None:
    from handrail.policy.rules.book import build_rulebook  # noqa: PLC0415  few write rules

    rule = build_rulebook(rules.rules).path(tool, paths)
    return None if rule is None else judge_by_rule(subject, rule)


def _bulk(paths: tuple[PathFact, ...], rules: PolicyConfig) -> list[PartVerdict]:
    if len(paths) <= min(rules.bulk_deleted, rules.bulk_changed):
        return []
    deleted = sum(fact.access == "delete" for fact in paths)
    changed = sum(fact.access != "read" for fact in paths)
    if deleted <= rules.bulk_deleted and changed <= rules.bulk_changed:
        return []
    why = f"it changes {changed} files at once, of which it deletes {deleted}"
    return [judge_by_mode("files", "fs.bulk", "bulk", rules.mode, undo=True, why=why)]


def _judge_permission(permission: Permission, spec: ToolSpec, rules: PolicyConfig) -> PartVerdict:
    rule, kind = f"tool.{permission}", _SUBJECTS[permission]
    if rules.restriction is not None and kind != "proven":
        return deny(permission, "restricted.tool", "the restricted profile uses files and listed commands only")
    return judge_by_mode(permission, rule, kind, rules.mode, undo=spec.category == "builtin")


def _judge_custom(spec: ToolSpec, rules: PolicyConfig) -> PartVerdict:
    """A tool we did not write: unasked only when it says it has no effects and may run by itself."""
    if not spec.side_effects and spec.auto_execute:
        return allow(spec.name, "tool.read-only", "the tool has no effects")
    if rules.restriction is not None:
        return deny(spec.name, "restricted.tool", "the restricted profile runs no custom tool")
    return judge_by_mode(spec.name, "tool.custom", "unproven", rules.mode, undo=not spec.side_effects)
