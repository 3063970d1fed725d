"""What a tool call is to an editor: a card with a title, a kind, and the places that it is about."""

import os
import re
from typing import Any, cast

from acp.schema import ToolCallLocation, ToolKind

from handrail.protocol.text import to_one_line, truncate

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
_PLAIN = frozenset[ToolKind]({"execute", "edit"})
_MAX_TITLE_CHARS, _MAX_SESSION_TITLE_CHARS = 200, 80
_NAMED = ("path", "name", "question", "title", "pattern", "action")
"""The arguments that say what a call is about, the most telling first."""


def get_tool_kind(tool: str) -> ToolKind:
    """The kind by which an editor chooses an icon."""
    return _KINDS.get(tool, "other")


def render_call_title(tool: str, args: object) -> str:
    """A call in one line."""
    given = _given(args)
    if tool == "exec" and _text(given, "command").strip():
        return truncate(to_one_line(_text(given, "command")), _MAX_TITLE_CHARS)
    where = f" in {format_code(_text(given, 'path'))}" if _text(given, "path") not in {"", "."} else ""
    if tool in {"grep", "find"} and _text(given, "pattern"):
        return f"{tool} {format_code(_text(given, 'pattern'))}{where}"
    subject = next(filter(None, (_text(given, name) for name in _NAMED)), "")
    return f"{to_one_line(tool)} {format_title(get_tool_kind(tool), subject)}" if subject else to_one_line(tool)


def format_title(kind: ToolKind, text: str) -> str:
    """A text as a title shows it character for character. Titles are plain text by the protocol, and so they are shown
    for commands and edits; editors that take the others for Markdown must not find a link in them."""
    return truncate(to_one_line(text), _MAX_TITLE_CHARS) if kind in _PLAIN else format_code(text)


def list_locations(tool: str, args: object, workspace: str) -> list[ToolCallLocation]:
    """The file that a call names, so that the editor can follow."""
    given = _given(args)
    path = _text(given, "path")
    if not path or tool in {"grep", "find", "ls"} or path.startswith("@"):
        return []
    line = given.get("offset") if tool == "read" else None
    known = line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None
    return [ToolCallLocation(path=to_absolute(path, workspace), line=known)]


def to_absolute(path: str, workspace: str) -> str:
    """A path as an editor wants it."""
    return os.path.normpath(os.path.join(workspace, path))


def format_code(text: str) -> str:
    """A text as Markdown shows it character for character, in one line."""
    line = truncate(to_one_line(text), _MAX_TITLE_CHARS)
    return _between(line, _ticks(line, 1), "" if not line.startswith("`") and not line.endswith("`") else " ")


def build_session_title(text: str) -> str:
    """What a session is called by what the person said first."""
    return truncate(to_one_line(text.strip().split("\n", 1)[0]), _MAX_SESSION_TITLE_CHARS)


def format_code_block(text: str) -> str:
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
