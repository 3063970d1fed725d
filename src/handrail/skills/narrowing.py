"""What a session may do while skills are active: what any of them names, and never more than without them.

Each names what its own work takes. Were only that left which all of them name, two skills would mostly leave nothing,
and nobody activates a second one for that. A skill that names no tools says nothing about them either way.
"""

from collections.abc import Collection, Sequence

from handrail.protocol.decisions import Narrowing
from handrail.skills.allowed import is_foreign
from handrail.store.transcript import ActiveSkill

ALWAYS = frozenset({"display", "question", "todo", "memory", "skill_list", "skill_control"})
"""They work on the conversation only; and a skill that took the last two away could never be ended."""


def collect_allowed_tools(active: Sequence[ActiveSkill], registered: Collection[str]) -> frozenset[str] | None:
    """The names that the active skills leave, of those that there are; None where they leave all."""
    narrowing = _narrowing_ones(active)
    if not narrowing:
        return None
    named = {tool for skill in narrowing for tool in skill.tools or ()}
    if "exec" in named:
        named.add("process")  # else a command that goes on could be neither looked at nor ended
    if any(skill.has_files for skill in narrowing):
        named.add("read")
    servers = tuple(f"{tool.removesuffix('*').rstrip('_')}__" for tool in named if _is_server(tool))
    return frozenset(name for name in registered if name in named or name in ALWAYS or name.startswith(servers))


def find_restriction(tool: str, active: Sequence[ActiveSkill]) -> Narrowing | None:
    """What the active skills leave of one tool; None where they leave all of it, or none names it."""
    narrowing = _narrowing_ones(active)
    if not narrowing or tool in ALWAYS:
        return None
    names = tuple(skill.name for skill in narrowing)
    named = "exec" if tool == "process" else tool  # what a program is sent is as good as a command
    patterns: dict[str, None] = {}
    for skill in narrowing:
        if named in (skill.tools or ()) and named not in skill.patterns:
            return None
        patterns |= dict.fromkeys(skill.patterns.get(named, ()))
        if tool == "read" and skill.has_files:
            patterns |= dict.fromkeys(f"{folder}/**" for folder in skill.folders)
    if not patterns and tool != "process":
        return None
    return Narrowing(skills=names, patterns=tuple(patterns))


def _narrowing_ones(active: Sequence[ActiveSkill]) -> list[ActiveSkill]:
    return [skill for skill in active if skill.tools is not None]


def _is_server(tool: str) -> bool:
    """`mcp__github` and `mcp__github__*` stand for all tools of a server."""
    return is_foreign(tool) and (tool.endswith("*") or tool.count("__") == 1)
