"""`allowed-tools` of a skill: which tools it may use, and for what, in our own names."""

import re
from typing import Any

import msgspec

from handrail.policy.config import MCP_PREFIX
from handrail.policy.skills import parse_skill_command

NAMES: dict[str, str] = {
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
"""What tools are called where most skills were written for, and here."""
OF_PATHS = frozenset({"read", "write", "edit", "find", "grep", "ls", "apply_patch", "multi_edit", "delete"})
_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9_.*-]{1,200})(?:\((?P<argument>.*)\))?", re.DOTALL)
_EVERYTHING = frozenset({"", "*", ":*", "**"})
_MAX_TOOLS = 200


class AllowedToolsError(ValueError):
    """Why a list of tools cannot be used, in words."""


class AllowedTools(msgspec.Struct, frozen=True):
    """The tools that a skill names, in order, and for some of them what it names them for."""

    tools: tuple[str, ...]
    patterns: dict[str, tuple[str, ...]] = {}
    """Of a tool that is here, only what one of these covers; of one that is not, all."""
    warnings: tuple[str, ...] = ()


def parse_allowed_tools(value: Any) -> AllowedTools | None:
    """What a value of `allowed-tools` means: a list, or a text with commas or spaces between the names. None where it
    says nothing, or everything; AllowedError where nobody can tell."""
    if value is None or value == "":
        return None
    entries = _entries(value)
    if "*" in entries:
        return None
    found, warnings = dict[str, list[str] | None](), list[str]()
    for entry in entries:
        name, argument = _taken_apart(entry)
        tool = NAMES.get(name, name)
        pattern = _pattern(tool, argument)
        if pattern is None:
            found[tool] = None
        elif (patterns := found.setdefault(tool, [])) is not None and pattern not in patterns:
            patterns.append(pattern)
            warnings += [_unread(entry)] if not _can_be_read(tool, pattern) else ()
    limited = {tool: tuple(patterns) for tool, patterns in found.items() if patterns is not None}
    return AllowedTools(tuple(found), limited, tuple(warnings))


def format_allowed_tools(tools: tuple[str, ...] | None, patterns: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Tools with what they are for: `read`, `exec(git add:*)`."""
    if tools is None:
        return None
    entries = [[f"{tool}({one})" for one in patterns[tool]] if tool in patterns else [tool] for tool in tools]
    return tuple(entry for those in entries for entry in those)


def is_foreign(tool: str) -> bool:
    """Whether it is a tool of another server, or all of one: who offers them is not known beforehand."""
    return tool.startswith(MCP_PREFIX)


def _entries(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    entries: list[str] = []
    for text in texts:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(text, str):
            raise AllowedToolsError("allowed-tools is neither a text nor a list of texts")
        entries += _split(text)
    if len(entries) > _MAX_TOOLS:
        raise AllowedToolsError(f"allowed-tools names more than {_MAX_TOOLS} tools")
    return entries


def _split(text: str) -> list[str]:
    """At commas and white space, but not inside of brackets."""
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


def _taken_apart(entry: str) -> tuple[str, str | None]:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise AllowedToolsError(f"allowed-tools names {entry[:80]!r}, which is no tool's name")
    return found["name"], found["argument"]


def _pattern(tool: str, argument: str | None) -> str | None:
    """What a tool is named for; None where that is everything."""
    if argument is None or (pattern := argument.strip()) in _EVERYTHING:
        return None
    return _path(pattern) if tool in OF_PATHS else pattern


def _path(pattern: str) -> str:
    """As the rules spell it: one slash in front means the workspace there, and two the whole disk."""
    if pattern.startswith("//"):
        return pattern[1:]
    return f"./{pattern.lstrip('/')}" if pattern.startswith("/") else pattern


def _can_be_read(tool: str, pattern: str) -> bool:
    if tool == "exec":
        return parse_skill_command(pattern) is not None
    return not (tool in OF_PATHS and pattern.startswith(("~", "!")))


def _unread(entry: str) -> str:
    return f"allowed-tools has {entry[:80]}, a pattern that is not read here: nothing is covered by it"
