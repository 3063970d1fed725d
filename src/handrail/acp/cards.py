"""What a tool call is to an editor: a card with a title, a kind, and the places that it is about."""

import os
import re
from typing import Any, cast

from acp.schema import ToolCallLocation, ToolKind

from handrail.terminal.visible import one_line

_KINDS: dict[str, ToolKind] = {
    "read": "read",
    "ls": "read",
    "find": "search",
    "grep": "search",
    "write": "edit",
    "edit": "edit",
    "multi_edit": "edit",
    "apply_patch": "edit",
    "undo": "edit",
    "delete": "delete",
    "exec": "execute",
    "process": "execute",
    "todo": "think",
}
_LONGEST = 200
_NAMED = ("path", "name", "question", "title", "pattern", "action")
"""The arguments that say what a call is about, the most telling first."""


def kind_of(tool: str) -> ToolKind:
    """The kind by which an editor chooses an icon."""
    return _KINDS.get(tool, "other")


def title_of(tool: str, args: object) -> str:
    """A call in one line of Markdown."""
    given = _given(args)
    if tool == "exec":
        return code(_text(given, "command"))
    where = f" in {code(_text(given, 'path'))}" if _text(given, "path") not in {"", "."} else ""
    if tool in {"grep", "find"}:
        return f"{tool} {code(_text(given, 'pattern'))}{where}"
    subject = next(filter(None, (_text(given, name) for name in _NAMED)), "")
    return f"{one_line(tool)} {code(subject)}" if subject else one_line(tool)


def places_of(tool: str, args: object, workspace: str) -> list[ToolCallLocation]:
    """The file that a call names, so that the editor can follow."""
    given = _given(args)
    path = _text(given, "path")
    if not path or tool in {"grep", "find", "ls"} or path.startswith("@"):
        return []
    line = given.get("offset") if tool == "read" else None
    known = line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None
    return [ToolCallLocation(path=absolute(path, workspace), line=known)]


def absolute(path: str, workspace: str) -> str:
    """A path as an editor wants it."""
    return os.path.normpath(os.path.join(workspace, path))


def code(text: str) -> str:
    """A text as Markdown shows it character for character, in one line."""
    line = one_line(text)
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return _between(line, _ticks(line, 1), "" if not line.startswith("`") and not line.endswith("`") else " ")


def block(text: str) -> str:
    """A text of several lines as Markdown shows it character for character."""
    return _between(text.rstrip("\n"), _ticks(text, 3), "\n")


def _ticks(text: str, least: int) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _between(text: str, ticks: str, gap: str) -> str:
    return f"{ticks}{gap}{text}{gap}{ticks}"


def _given(args: object) -> dict[str, Any]:
    return cast("dict[str, Any]", args) if isinstance(args, dict) else {}


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""
