"""Decides a call: allow, ask or deny.

Pure: the same call, facts and configuration always give the same decision, also in a replay.
"""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec.structs import replace

from handrail.policy.config import GRANTED, PolicyConfig, TrustedServer, find_grant
from handrail.policy.names import normalize_name
from handrail.policy.verdict import (
    PartKind,
    PartVerdict,
    allow,
    ask,
    combine,
    deny,
    judge_by_mode,
    judge_by_rule,
    judge_path,
    restrict_path,
)
from handrail.protocol.calls import Confirm
from handrail.protocol.decisions import (
    CommandFact,
    Decision,
    Facts,
    ForeignFact,
    MemoryFact,
    PathFact,
    ProcessFact,
)
from handrail.protocol.permissions import PERMISSIONS, Permission, StandingGrant
from handrail.protocol.tool_spec import ToolSpec

_PART_KINDS: dict[Permission, PartKind] = {
    "fs.read": "proven",
    "fs.write": "write",
    "fs.delete": "delete",
    "git.write": "write",
    "proc.exec": "unproven",
    "net.connect": "network",
}


def decide(spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: PolicyConfig) -> Decision:
    """The strictest verdict over everything the call touches. No part can allow what another denies."""
    is_small = len(facts.paths) == 1 and facts.command is None and spec.category == "builtin"
    return (_decide_once if is_small else _decide)(spec, requested, facts, rules)


def require_approval(
    decision: Decision, confirm: Confirm, decide_by: Callable[[PolicyConfig], Decision], rules: PolicyConfig
) -> Decision:
    """The decision about a call that wants a person to be asked. A denial stays one.

    `decide_by`: decides about the call by other rules. The grants of a request are those of the mode `ask`.
    """
    if decision.decision != "allow":
        return decision
    asked = combine([ask(decision.subject, "call.confirm", "the model asks for approval")], rules)
    if confirm != "unless-granted":
        return asked
    by_ask = decide_by(replace(rules, mode="ask"))
    if by_ask.decision == "allow" and by_ask.rule.startswith(GRANTED):
        return decision
    return replace(asked, grants=by_ask.grants) if asked.decision == "confirm" else asked


def _decide(spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: PolicyConfig) -> Decision:
    verdicts = _deny_missing_permissions(spec, requested, facts, rules) if requested is not None or rules.denied else []
    if facts.command is not None:
        from handrail.policy.commands import judge_command  # noqa: PLC0415  only commands need the program tables

        verdicts += judge_command(facts.command, facts, rules)
    elif facts.process is not None:
        verdicts.append(_judge_process(facts.process, rules))
    else:
        verdicts += [_judge_tool_path(spec, fact, rules) for fact in facts.paths]
        verdicts += _judge_bulk(facts.paths, rules)
    verdicts += _judge_tool(spec, facts, rules)
    if facts.narrowed is not None:
        from handrail.policy.skills import deny_outside_skills  # noqa: PLC0415  few skills narrow a tool

        verdicts += deny_outside_skills(spec, facts.narrowed, facts)
    if not verdicts:
        return Decision(decision="allow", rule="tool.harmless", reason="the tool needs no permission")
    decision = combine(verdicts, rules)
    if decision.decision != "confirm" or not rules.can_grant_edits or spec.category != "builtin":
        return decision
    return _apply_edits(decision, verdicts, facts, rules)


_decide_once = lru_cache(maxsize=256)(_decide)
"""Equal calls have the same decision, and programs read a file again and again."""


def _apply_edits(decision: Decision, verdicts: list[PartVerdict], facts: Facts, rules: PolicyConfig) -> Decision:
    """The grant for plain edits allows a file tool. A command runs in its preview first."""
    from handrail.policy.granted_changes import may_be_edits  # noqa: PLC0415  few calls ask

    if not may_be_edits(facts, verdicts) or (facts.command is not None and rules.restricts_reads):
        return decision
    grant = find_grant(rules.grants, StandingGrant.EDITS) if facts.command is None else None
    if grant is None:
        return replace(decision, edits=True)
    return combine([allow(verdict.part.subject, f"{GRANTED}{grant.id}", EDITS_ALLOWED) for verdict in verdicts], rules)


EDITS_ALLOWED = "a person allowed plain edits in this session"


def is_default_prompt(
    spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: PolicyConfig
) -> bool:
    """Whether only the mode `ask` asks: no rule of a person or of managed settings does, and no host is named."""
    if rules.mode != "ask" or rules.unattended or rules.restriction is not None or rules.restricts_reads:
        return False
    if "net.connect" in list_permissions(spec, facts):
        return False
    return decide(spec, requested, facts, replace(rules, mode="full")).decision == "allow"


def _judge_tool(spec: ToolSpec, facts: Facts, rules: PolicyConfig) -> list[PartVerdict]:
    """The verdict on a tool apart from its paths or command. A tool without paths is about the whole workspace."""
    verdicts = [
        _judge_permission(permission, spec, rules)
        for permission in spec.permissions
        if not _is_judged_by_facts(permission, facts)
    ]
    if facts.memory is not None:
        verdicts.append(_judge_memory(facts.memory, rules))
    if spec.category == "mcp":
        fact = facts.foreign or ForeignFact(server=spec.server, tool=spec.own_name)
        verdicts += _judge_mcp_tool(spec.name, fact, rules)
    elif spec.category == "custom":
        verdicts.append(_judge_custom(spec, rules))
    if not rules.rules or facts.paths or facts.command is not None:
        return verdicts
    by_rule = _apply_path_rule(spec.name, spec.name, (".",), rules)
    if by_rule is None:
        return verdicts
    return [*(verdict for verdict in verdicts if verdict.final or by_rule.part.decision != "allow"), by_rule]


def _is_judged_by_facts(permission: Permission, facts: Facts) -> bool:
    """Paths cover the file permissions. A command covers all but the network that its tool needs."""
    if facts.command is not None or facts.process is not None:
        return permission != "net.connect"
    return bool(facts.paths) and permission.startswith("fs.")


def _judge_permission(permission: Permission, spec: ToolSpec, rules: PolicyConfig) -> PartVerdict:
    kind = _PART_KINDS[permission]
    if rules.restriction is not None and kind != "proven":
        return deny(permission, "restricted.tool", "the restricted profile uses files and listed commands only")
    return judge_by_mode(permission, f"tool.{permission}", kind, rules.mode, undo=spec.category == "builtin")


def _judge_custom(spec: ToolSpec, rules: PolicyConfig) -> PartVerdict:
    """A third-party tool runs without approval only if it declares no effects and `auto_execute`."""
    if not spec.side_effects and spec.auto_execute:
        return allow(spec.name, "tool.read-only", "the tool has no effects")
    if rules.restriction is not None:
        return deny(spec.name, "restricted.tool", "the restricted profile runs no custom tool")
    return judge_by_mode(spec.name, "tool.custom", "unproven", rules.mode, undo=not spec.side_effects)


def _judge_tool_path(spec: ToolSpec, fact: PathFact, rules: PolicyConfig) -> PartVerdict:
    verdict = judge_path(fact, rules, undo=spec.category == "builtin")
    if rules.rules and verdict.code is None:
        paths = tuple(path for path in (fact.real or fact.outside, fact.named) if path is not None)
        by_rule = _apply_path_rule(spec.name, fact.path, paths, rules)
        verdict = by_rule if by_rule is not None and _can_decide(by_rule, fact) else verdict
    return verdict if rules.restriction is None else restrict_path(verdict, fact, rules, rules.restriction)


def _apply_path_rule(tool: str, subject: str, paths: tuple[str, ...], rules: PolicyConfig) -> PartVerdict | None:
    from handrail.policy.rules.rulebook import build_rulebook  # noqa: PLC0415  few people write rules

    rule = build_rulebook(rules.rules).find_path_rule(tool, paths)
    return None if rule is None else judge_by_rule(subject, rule)


def _can_decide(by_rule: PartVerdict, fact: PathFact) -> bool:
    """A rule cannot allow what names do not show, such as hard links. Outside the roots it can only deny."""
    if fact.real is None:
        return by_rule.part.decision == "deny"
    is_guarded = fact.repository or ((fact.shared or fact.read_only) and fact.access == "write")
    return not (is_guarded and by_rule.part.decision == "allow")


def _judge_bulk(paths: tuple[PathFact, ...], rules: PolicyConfig) -> list[PartVerdict]:
    if len(paths) <= min(rules.bulk_deleted, rules.bulk_changed):
        return []
    deleted = sum(fact.access == "delete" for fact in paths)
    changed = sum(fact.access != "read" for fact in paths)
    bulk = rules.describe_bulk(changed, deleted)
    return [judge_by_mode("files", "fs.bulk", "bulk", rules.mode, undo=True, why=f"it {bulk}")] if bulk else []


def _judge_process(fact: ProcessFact, rules: PolicyConfig) -> PartVerdict:
    """Looking and ending are always allowed. No rule or grant covers input, because later input is unknown."""
    if fact.action in {"list", "poll", "log"}:
        return allow(fact.action, "process.look", "looking at what runs changes nothing")
    if fact.action != "write":
        return allow(f"{fact.action} {fact.command}", "process.stop", "a session may end its own processes")
    subject = f"write to {fact.command}"
    if rules.restriction is not None:
        return deny(subject, "restricted.tool", "the restricted profile does not write to programs")
    if fact.looks:
        return judge_by_mode(subject, "process.write", "proven", rules.mode, undo=False, why="the program only reads")
    why = "the program may use the input to change something"
    verdict = judge_by_mode(subject, "process.write", "unproven", rules.mode, undo=fact.layered, why=why)
    return ask(subject, "process.write", verdict.part.reason) if verdict.part.decision == "confirm" else verdict


def _judge_memory(fact: MemoryFact, rules: PolicyConfig) -> PartVerdict:
    """A note outlives the session and undo. A false one would mislead every later session, so writing one asks."""
    if fact.action == "list":
        return allow("notes", "memory.read", "reading notes changes nothing")
    subject = f"{fact.action} {fact.note}".strip()
    if rules.restriction is not None:
        return deny(subject, "restricted.tool", "the restricted profile stores no notes")
    why = "every later session reads the note"
    return judge_by_mode(subject, "memory.write", "write", rules.mode, undo=False, why=why)


def _judge_mcp_tool(name: str, fact: ForeignFact, rules: PolicyConfig) -> list[PartVerdict]:
    """`name`: the name of the tool here. A changed description asks again."""
    subject = f"{fact.tool} ({fact.server})"
    if rules.restriction is not None:
        return [deny(subject, "restricted.tool", "the restricted profile calls no other servers")]
    if is_read_only_tool(fact, rules.servers):
        verdict = allow(subject, "tool.vouched", f"the settings declare the tool read-only ({fact.server})")
    else:
        why = f"it runs on the server {fact.server}, and undo does not cover its effects"
        verdict = judge_by_mode(subject, "tool.mcp", "foreign", rules.mode, undo=False, why=why)
    verdicts = [_apply_grant(name, verdict, rules)]
    if fact.changed:
        why = f"{fact.server} changed the description of this tool since its last approval"
        verdicts.append(ask(subject, "tool.changed", why).with_grant(name))
    return verdicts


def _apply_grant(name: str, verdict: PartVerdict, rules: PolicyConfig) -> PartVerdict:
    if verdict.part.decision != "confirm":
        return verdict
    grant = find_grant(rules.grants, name)
    if grant is None:
        return verdict.with_grant(name)
    return allow(verdict.part.subject, f"{GRANTED}{grant.id}", f"a person allowed {name} for good")


def is_read_only_tool(fact: ForeignFact, servers: tuple[TrustedServer, ...]) -> bool:
    vouching = [server for server in servers if server.server == fact.server]
    is_listed = any(fnmatchcase(fact.tool, pattern) for server in vouching for pattern in server.read_only)
    return is_listed or (fact.read_only and any(server.hints for server in vouching))


_UNPROVEN: tuple[Permission, ...] = ("fs.write", "fs.delete", "git.write")
"""The permissions of an unproven command. The sandbox keeps the network closed."""


def list_permissions(spec: ToolSpec, facts: Facts) -> tuple[Permission, ...]:
    """Permissions that a call surely needs: those of its tool, and those that its command shows."""
    needed: set[Permission] = set()
    changed = [fact for fact in facts.paths if fact.access != "read"]
    if facts.command is not None:
        needed.update("fs.delete" if fact.access == "delete" else "fs.write" for fact in changed)
        needed.update(_list_command_permissions(facts.command))
    if any(map(_is_in_repository, changed)):
        needed.add("git.write")
    return (*spec.permissions, *(name for name in PERMISSIONS if name in needed.difference(spec.permissions)))


def list_possible_permissions(spec: ToolSpec, facts: Facts) -> tuple[Permission, ...]:
    """Permissions that a call needs or may need. An MCP server or an unproven command may do more than it shows."""
    if spec.foreign is not None:
        return spec.foreign.reach
    needed = list_permissions(spec, facts)
    return (*needed, *(permission for permission in _list_unproven_permissions(facts) if permission not in needed))


def is_network_closed(requested: tuple[Permission, ...] | None, rules: PolicyConfig) -> bool:
    """Whether the network stays closed, despite listed hosts and approvals."""
    return "net.connect" in rules.denied or (requested is not None and "net.connect" not in requested)


def _deny_missing_permissions(
    spec: ToolSpec, requested: tuple[Permission, ...] | None, facts: Facts, rules: PolicyConfig
) -> list[PartVerdict]:
    """Denies what the session forbids, or what the call itself did not request."""
    possible = list_possible_permissions(spec, facts)
    unproven = set[str](possible).difference(list_permissions(spec, facts))
    verdicts: list[PartVerdict] = []
    if denied := [permission for permission in possible if permission in rules.denied]:
        why = f"{' and '.join(denied)} {'are' if len(denied) > 1 else 'is'} denied here"
        verdicts.append(deny(_find_subject(spec, facts), "call.denied", why + _explain_unproven(unproven, denied)))
    if requested is not None and (missing := [permission for permission in possible if permission not in requested]):
        why = f"the call's requested_permissions leave out {', '.join(missing)}"
        verdicts.append(deny("call", "call.narrowed", why + _explain_unproven(unproven, missing)))
    elif requested is not None:
        verdicts.append(allow("call", "call.narrowed", "the call asks for every permission it needs"))
    return verdicts


def _find_subject(spec: ToolSpec, facts: Facts) -> str:
    if facts.command is not None:
        return facts.command.text
    if facts.process is not None:
        return facts.process.command
    return facts.paths[0].path if facts.paths else spec.label


def _explain_unproven(unproven: set[str], missing: Iterable[str]) -> str:
    return "" if unproven.isdisjoint(missing) else "; handrail cannot prove that the call does without"


def _list_command_permissions(fact: CommandFact) -> Iterator[Permission]:
    from handrail.policy.network.needs import reaches_only_loopback  # noqa: PLC0415  as above
    from handrail.policy.parse import expand_inner_commands, parse_fact  # noqa: PLC0415  as above
    from handrail.policy.programs.registry import classify_words  # noqa: PLC0415  as above

    steps = parse_fact(fact).steps
    inner = [*expand_inner_commands(fact.seen or ()), *(command for step in steps for command in step.inner)]
    read = [(step.words, step.classification) for step in steps]
    read += [(one.words, classify_words(one.words, loopback=fact.loopback)) for one in inner if one.words]
    readings = [reading for _, reading in read]
    effects = {reading.effect for reading in readings}
    connecting = [words for words, reading in read if reading.effect == "network"]
    is_local = not connecting or (fact.loopback and all(map(reaches_only_loopback, connecting)))
    if fact.hosts or fact.unopened or not is_local:
        yield "net.connect"
    if "write" in effects:
        yield "fs.write"
    if "delete" in effects:
        yield "fs.delete"
    if any(reading.rule.startswith("git.") for reading in readings):
        yield "git.write"


def _list_unproven_permissions(facts: Facts) -> tuple[Permission, ...]:
    """Further permissions of an unproven command, or of input to a running program."""
    command, process = facts.command, facts.process
    if process is not None:
        is_unproven, is_connected = process.action == "write" and not process.looks, process.connected
    else:
        is_unproven = command is not None and _is_unproven(command)
        is_connected = command is not None and command.tier == 0
    return (*_UNPROVEN, *(("net.connect",) if is_connected else ())) if is_unproven else ()


def _is_unproven(fact: CommandFact) -> bool:
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  as above

    command = parse_fact(fact)
    return command.unparsed is not None or any(step.has_unknown_effect for step in command.steps)


def _is_in_repository(fact: PathFact) -> bool:
    """Whether a path is in a `.git` folder, or steers a repository of another name."""
    names = (fact.real or fact.path, fact.named or "")
    return fact.repository or any(".git" in map(normalize_name, name.split("/")) for name in names)
