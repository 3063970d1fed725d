"""Restricts tools to those that the active skills allow (`allowed-tools`)."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from handrail.policy.config import MCP_PREFIX
from handrail.policy.skills import parse_skill_command
from handrail.protocol.decisions import Narrowing
from handrail.store.conversation_state import ActiveSkill

ALWAYS = frozenset({"display", "question", "todo", "memory", "skill_list", "skill_control"})
"""These tools work on the conversation only. A skill without the last two could never be deactivated."""
_NAMES: dict[str, str] = {
    "Read": "read",
    "Write": "write",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Glob": "find",
    "Grep": "grep",
    "LS": "ls",
    "Bash": "exec",
    "BashOutput": "process",
    "KillShell": "process",
    "KillBash": "process",
    "TodoWrite": "todo",
    "AskUserQuestion": "question",
    "Skill": "skill_control",
}
"""Names of tools in the system that most skills are written for, and ours."""
_PATH_TOOLS = frozenset({"read", "write", "edit", "find", "grep", "ls", "apply_patch", "multi_edit", "delete"})
_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9_.*-]{1,200})(?:\((?P<argument>.*)\))?", re.DOTALL)
_EVERYTHING = frozenset({"", "*", ":*", "**"})
_MAX_TOOLS = 200


class AllowedToolsError(ValueError):
    """Why a value of `allowed-tools` cannot be used."""


class AllowedTools(msgspec.Struct, frozen=True):
    tools: tuple[str, ...]
    """In the order of the skill."""
    patterns: dict[str, tuple[str, ...]] = {}
    """A tool in here is allowed only for these patterns."""
    warnings: tuple[str, ...] = ()


def parse_allowed_tools(value: Any) -> AllowedTools | None:
    """Parse `allowed-tools`: a list, or a text with names separated by commas or spaces. None: no restriction."""
    if value is None or value == "":
        return None
    entries = _list_entries(value)
    if "*" in entries:
        return None
    found, warnings = dict[str, list[str] | None](), list[str]()
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise AllowedToolsError(f"allowed-tools names {entry[:80]!r}, which is not a tool")
        tool = _NAMES.get(match["name"], match["name"])
        pattern = _normalize_pattern(tool, match["argument"])
        if pattern is None:
            found[tool] = None
        elif (patterns := found.setdefault(tool, [])) is not None and pattern not in patterns:
            patterns.append(pattern)
            if not _is_supported(tool, pattern):
                unread = "an unsupported pattern, which allows nothing"
                warnings.append(f"allowed-tools has {entry[:80]}, {unread}")
    limited = {tool: tuple(patterns) for tool, patterns in found.items() if patterns is not None}
    return AllowedTools(tuple(found), limited, tuple(warnings))


def format_allowed_tools(tools: tuple[str, ...] | None, patterns: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The tools with their patterns: `read`, `exec(git add:*)`."""
    if tools is None:
        return None
    entries = [[f"{tool}({one})" for one in patterns[tool]] if tool in patterns else [tool] for tool in tools]
    return tuple(entry for group in entries for entry in group)


def is_foreign(tool: str) -> bool:
    """Whether it names a tool of another server, or a whole server. Such tools are not known beforehand."""
    return tool.startswith(MCP_PREFIX)


def collect_allowed_tools(active: Sequence[ActiveSkill], registered: Collection[str]) -> frozenset[str] | None:
    """The registered tools that the active skills allow together. None: no skill restricts tools.

    Active skills combine as a union. An intersection would leave two skills with almost no tools."""
    restricting = _list_restricting(active)
    if not restricting:
        return None
    named = {tool for skill in restricting for tool in skill.tools or ()}
    if "exec" in named:
        named.add("process")  # to read and end a command in the background
    if any(skill.has_files for skill in restricting):
        named.add("read")
    servers = tuple(f"{tool.removesuffix('*').rstrip('_')}__" for tool in named if _is_whole_server(tool))
    return frozenset(name for name in registered if name in named or name in ALWAYS or name.startswith(servers))


def find_restriction(tool: str, active: Sequence[ActiveSkill]) -> Narrowing | None:
    """The patterns that the active skills restrict a tool to. None: no skill restricts or names it."""
    restricting = _list_restricting(active)
    if not restricting or tool in ALWAYS:
        return None
    named = "exec" if tool == "process" else tool  # input for a program is as powerful as a command
    patterns: dict[str, None] = {}
    for skill in restricting:
        if named in (skill.tools or ()) and named not in skill.patterns:
            return None
        patterns |= dict.fromkeys(skill.patterns.get(named, ()))
        if tool == "read" and skill.has_files:
            patterns |= dict.fromkeys(f"{folder}/**" for folder in skill.folders)
    if not patterns and tool != "process":
        return None
    return Narrowing(skills=tuple(skill.name for skill in restricting), patterns=tuple(patterns))


def _list_restricting(active: Sequence[ActiveSkill]) -> list[ActiveSkill]:
    return [skill for skill in active if skill.tools is not None]


def _is_whole_server(tool: str) -> bool:
    """`mcp__github` and `mcp__github__*` name all tools of a server."""
    return is_foreign(tool) and (tool.endswith("*") or tool.count("__") == 1)


def _list_entries(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    entries: list[str] = []
    for text in texts:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(text, str):
            raise AllowedToolsError("allowed-tools is neither a text nor a list of strings")
        entries += _split_entries(text)
    if len(entries) > _MAX_TOOLS:
        raise AllowedToolsError(f"allowed-tools names more than {_MAX_TOOLS} tools")
    return entries


def _split_entries(text: str) -> list[str]:
    """Split at commas and white space outside of brackets."""
    entries, entry, depth = list[str](), "", 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if depth == 0 and (character == "," or character.isspace()):
            entries.append(entry)
            entry = ""
        else:
            entry += character
    if depth != 0:
        raise AllowedToolsError(f"allowed-tools has a bracket too many or too few: {text[:80]!r}")
    return [one for one in (*entries, entry) if one]


def _normalize_pattern(tool: str, argument: str | None) -> str | None:
    """The pattern as our rules write it. None: everything.

    In skills a path with one leading slash is in the workspace, and one with two is absolute."""
    if argument is None or (pattern := argument.strip()) in _EVERYTHING:
        return None
    if tool not in _PATH_TOOLS or not pattern.startswith("/"):
        return pattern
    return pattern[1:] if pattern.startswith("//") else f"./{pattern.lstrip('/')}"


def _is_supported(tool: str, pattern: str) -> bool:
    if tool == "exec":
        return parse_skill_command(pattern) is not None
    return not (tool in _PATH_TOOLS and pattern.startswith(("~", "!")))
