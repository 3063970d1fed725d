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
_PLAIN = frozenset[ToolKind]({"execute", "edit"})
_LONGEST, _LONGEST_NAME = 200, 80
_NAMED = ("path", "name", "question", "title", "pattern", "action")
"""The arguments that say what a call is about, the most telling first."""


def kind_of(tool: str) -> ToolKind:
    """The kind by which an editor chooses an icon."""
    return _KINDS.get(tool, "other")


def title_of(tool: str, args: object) -> str:
    """A call in one line."""
    given = _given(args)
    if tool == "exec" and _text(given, "command").strip():
        return shortened(_text(given, "command"))
    where = f" in {code(_text(given, 'path'))}" if _text(given, "path") not in {"", "."} else ""
    if tool in {"grep", "find"} and _text(given, "pattern"):
        return f"{tool} {code(_text(given, 'pattern'))}{where}"
    subject = next(filter(None, (_text(given, name) for name in _NAMED)), "")
    return f"{one_line(tool)} {titled(kind_of(tool), subject)}" if subject else one_line(tool)


def titled(kind: ToolKind, text: str) -> str:
    """A text as a title shows it character for character. Titles are plain text by the protocol, and so they are shown
    for commands and edits; editors that take the others for Markdown must not find a link in them."""
    return shortened(text) if kind in _PLAIN else code(text)


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
    line = shortened(text)
    return _between(line, _ticks(line, 1), "" if not line.startswith("`") and not line.endswith("`") else " ")


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text in one line, or the beginning of it."""
    line = one_line(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def first_line(text: str) -> str:
    """What a session is called by what the person said first."""
    return shortened(text.strip().split("\n", 1)[0], _LONGEST_NAME)


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
