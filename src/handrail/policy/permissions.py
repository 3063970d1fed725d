"""The permissions that a call needs: those of its tool, and what policy reads in its command."""

from collections.abc import Iterator

from handrail.policy.configuration import PolicyConfig
from handrail.policy.spelling import normalize_name
from handrail.protocol.decision import CommandFact, Facts, PathFact
from handrail.protocol.permission import PERMISSIONS, Permission
from handrail.protocol.tool import ToolSpec

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
    from handrail.policy.commands.reader import classify  # noqa: PLC0415  the tables are only for commands
    from handrail.policy.script import build_simple_command, expand_inner_commands, parse_steps  # noqa: PLC0415  as above

    steps = parse_steps(fact.text, fact.cwd, fact.there)
    found = [*expand_inner_commands(fact.seen or ())]
    readings = [classify(build_simple_command(one.words)) for one in found if one.words]
    for step in steps if isinstance(steps, tuple) else ():
        readings += (step.reading, *(classify(build_simple_command(one.words)) for one in step.inner if one.words))
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
    from handrail.policy.script import parse_steps  # noqa: PLC0415  as above

    steps = parse_steps(fact.text, fact.cwd, fact.there)
    return not isinstance(steps, tuple) or any(step.reading.effect in {"unproven", "network"} for step in steps)


def _is_in_repository(fact: PathFact) -> bool:
    """Whether a path is in git's own folder, or steers a repository that has another name."""
    names = (fact.real or fact.path, fact.named or "")
    return fact.repository or any(".git" in map(normalize_name, name.split("/")) for name in names)
