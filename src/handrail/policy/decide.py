"""Decides a call."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from handrail.policy.config import PolicyConfig, RestrictedProfile, TrustedServer, find_grant
from handrail.policy.names import normalize_name
from handrail.policy.verdict import (
    GRANTED,
    PartVerdict,
    Subject,
    allow,
    ask,
    combine,
    deny,
    judge_by_mode,
    judge_by_rule,
    judge_path,
)
from handrail.protocol.decisions import CommandFact, Decision, Facts, ForeignFact, MemoryFact, PathFact, ProcessFact
from handrail.protocol.permissions import PERMISSIONS, Permission
from handrail.protocol.tool_spec import ToolSpec

__all__ = ["PolicyConfig", "RestrictedProfile", "decide"]


# § [policy.permissions] The permissions that a call needs: those of its tool, and what policy reads in its command.

_UNPROVEN: tuple[Permission, ...] = ("fs.write", "fs.delete", "git.write")
"""What a command may do that handrail cannot analyse. The sandbox keeps the network shut."""


def list_permissions(spec: ToolSpec, facts: Facts) -> tuple[Permission, ...]:
    """What a call needs, as far as its words tell. A permission request names it."""
    found: set[Permission] = set()
    changed = [fact for fact in facts.paths if fact.access != "read"]
    if facts.command is not None:
        found.update("fs.delete" if fact.access == "delete" else "fs.write" for fact in changed)
        found.update(_read_in(facts.command))
    if any(map(_is_in_repository, changed)):
        found.add("git.write")
    return (*spec.permissions, *(one for one in PERMISSIONS if one in found.difference(spec.permissions)))


def list_possible_permissions(spec: ToolSpec, facts: Facts) -> tuple[Permission, ...]:
    """What a call needs, and what it might do besides: nobody can look into another server or an unproven command."""
    if spec.foreign is not None:
        return spec.foreign.reach
    needed = list_permissions(spec, facts)
    return (*needed, *(one for one in _unproven(facts) if one not in needed))


def is_network_closed(requested: tuple[Permission, ...] | None, rules: PolicyConfig) -> bool:
    """Whether the network stays shut, whatever the settings list and a person would answer."""
    return "net.connect" in rules.denied or (requested is not None and "net.connect" not in requested)


def _read_in(fact: CommandFact) -> Iterator[Permission]:
    from handrail.policy.parse import expand_inner_commands, parse_fact  # noqa: PLC0415  as above
    from handrail.policy.programs.registry import classify_words  # noqa: PLC0415  the tables are only for commands

    found = [*expand_inner_commands(fact.seen or ())]
    readings = [classify_words(one.words) for one in found if one.words]
    for step in parse_fact(fact).steps:
        readings += (step.classification, *(classify_words(one.words) for one in step.inner if one.words))
    effects = {reading.effect for reading in readings}
    if fact.hosts or fact.unopened or "network" in effects:
        yield "net.connect"
    if "write" in effects:
        yield "fs.write"
    if "delete" in effects:
        yield "fs.delete"
    if any(reading.rule.startswith("git.") for reading in readings):
        yield "git.write"


def _unproven(facts: Facts) -> tuple[Permission, ...]:
    """What a command might do that nobody can analyse, or a running program with what it is sent."""
    command, process = facts.command, facts.process
    if process is not None:
        may_do, connected = process.action == "write" and not process.looks, process.connected
    else:
        may_do, connected = command is not None and _is_unproven(command), command is not None and command.tier == 0
    return (*_UNPROVEN, *(("net.connect",) if connected else ())) if may_do else ()


def _is_unproven(fact: CommandFact) -> bool:
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  as above

    command = parse_fact(fact)
    return command.unparsed is not None or any(step.has_unknown_effect for step in command.steps)


def _is_in_repository(fact: PathFact) -> bool:
    """Whether a path is in git's own folder, or steers a repository that has another name."""
    names = (fact.real or fact.path, fact.named or "")
    return fact.repository or any(".git" in map(normalize_name, name.split("/")) for name in names)


# § [policy.verdict] Decides about a call. Pure: the same call, facts and rules give the same decision, today and in
# § a replay.

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
        from handrail.policy.commands import judge_command  # noqa: PLC0415  the tables are only for commands

        judged += judge_command(facts.command, facts, rules)
    elif facts.process is not None:
        judged.append(judge_process(facts.process, rules))
    else:
        judged += [_judge_path(spec, fact, rules) for fact in facts.paths]
        judged += _bulk(facts.paths, rules)
    judged += _judge_tool(spec, facts, rules)
    if facts.narrowed is not None:
        from handrail.policy.skills import deny_outside_skills  # noqa: PLC0415  few have skills that narrow

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
        judged.append(judge_memory(facts.memory, rules))
    if spec.category == "mcp":
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
        from handrail.policy.verdict import restrict_path  # noqa: PLC0415  few sessions are restricted

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
    from handrail.policy.rules.rulebook import build_rulebook  # noqa: PLC0415  few write rules

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


# § [policy.judging.processes] Judges what a call wants with a process session.

_LOOKS = frozenset({"list", "poll", "log"})


def judge_process(fact: ProcessFact, rules: PolicyConfig) -> PartVerdict:
    """Looking and ending are always allowed. Writing is running something, unless the program does nothing but look:
    what a shell is sent, it does. Nobody can say of it beforehand what may be sent, so that no rule and no grant
    speaks for it."""
    if fact.action in _LOOKS:
        return allow(fact.action, "process.look", "looking at what runs changes nothing")
    subject = f"{fact.action} to {fact.command}" if fact.action == "write" else f"{fact.action} {fact.command}"
    if fact.action != "write":
        return allow(subject, "process.stop", "what this session has started it may end")
    if rules.restriction is not None:
        return deny(subject, "restricted.tool", "the restricted profile writes to no program")
    if fact.looks:
        return judge_by_mode(subject, "process.write", "proven", rules.mode, undo=False, why="the program only looks")
    why = "what the program does with it is not proven harmless"
    judged = judge_by_mode(subject, "process.write", "unproven", rules.mode, undo=fact.layered, why=why)
    return ask(subject, "process.write", judged.part.reason) if judged.part.decision == "confirm" else judged


# § [policy.judging.memories] Judges what a call wants with the notes of a workspace.

_WHY = "every later session reads what is noted"


def judge_memory(fact: MemoryFact, rules: PolicyConfig) -> PartVerdict:
    """Reading is always allowed. What is noted lasts, and undo does not cover it: who got a model to note a lie once
    would speak to every later session. So it asks wherever somebody can be asked, and files do not speak for it."""
    if fact.action == "list":
        return allow("notes", "memory.read", "reading notes changes nothing")
    subject = f"{fact.action} {fact.note}".strip()
    if rules.restriction is not None:
        return deny(subject, "restricted.tool", "the restricted profile notes nothing that lasts")
    return judge_by_mode(subject, "memory.write", "write", rules.mode, undo=False, why=_WHY)


# § [policy.judging.foreign] Judges a call of another server's tool. What the server says of it is a stranger's
# § word, unless somebody vouches for it; and what the tool does, undo does not cover.


def judge_foreign(name: str, fact: ForeignFact, rules: PolicyConfig) -> list[PartVerdict]:
    """The parts of a call: what the mode says of the tool, and that it is another than it was. `name`: what it is
    called here."""
    subject = f"{fact.tool} ({fact.server})"
    if rules.restriction is not None:
        return [deny(subject, "restricted.tool", "the restricted profile calls no other server")]
    judged = [_by_grant(name, _by_mode(subject, fact, rules), rules)]
    if fact.changed:
        why = f"{fact.server} describes this tool otherwise than when it was last approved"
        judged.append(_grantable(name, ask(subject, "tool.changed", why)))
    return judged


def is_read_only_tool(fact: ForeignFact, servers: tuple[TrustedServer, ...]) -> bool:
    """Whether somebody vouches that the tool changes nothing."""
    return any(_vouches(one, fact) for one in servers if one.server == fact.server)


def _vouches(one: TrustedServer, fact: ForeignFact) -> bool:
    listed = any(fnmatchcase(fact.tool, pattern) for pattern in one.read_only)
    return listed or (one.hints and fact.read_only)


def _by_mode(subject: str, fact: ForeignFact, rules: PolicyConfig) -> PartVerdict:
    if is_read_only_tool(fact, rules.servers):
        return allow(subject, "tool.vouched", f"the settings vouch that it only looks ({fact.server})")
    why = f"it runs on the server {fact.server}, and undo does not cover what it does"
    return judge_by_mode(subject, "tool.mcp", "foreign", rules.mode, undo=False, why=why)


def _by_grant(name: str, judged: PartVerdict, rules: PolicyConfig) -> PartVerdict:
    if judged.part.decision != "confirm":
        return judged
    grant = find_grant(rules.grants, name)
    if grant is not None:
        return allow(judged.part.subject, f"{GRANTED}{grant.id}", f"a person allowed {name} for good")
    return _grantable(name, judged)


def _grantable(name: str, judged: PartVerdict) -> PartVerdict:
    """A yes may be for the calls after it too. That of a tool which was changed is first of all to what it is now."""
    return PartVerdict(msgspec.structs.replace(judged.part, grant=name), judged.code, judged.final)
