"""The cards by which an editor shows tool calls."""

import os
import re
from collections.abc import Iterator
from itertools import groupby, islice, pairwise
from typing import Any, cast

import msgspec
from acp.helpers import ToolCallContentVariant, image_block, text_block, tool_content, tool_diff_content
from acp.schema import ToolCallLocation, ToolKind
from msgspec.structs import replace

from handrail import parse_diff
from handrail.protocol.results import ToolResult
from handrail.protocol.text import to_one_line, truncate, truncate_middle

MAX_TEXT_CHARS = 16_000
"""Characters of a text on a card. The journal has all of it."""
_MAX_TITLE_CHARS, _MAX_SESSION_TITLE_CHARS = 200, 80
_MAX_FILES = 40
_MAX_DIFFS_CHARS = 200_000
"""Characters of all diffs of a card together."""
_KINDS: dict[str, ToolKind] = {
    "read": "read",
    "ls": "read",
    "code_outline": "read",
    "code_analyze": "read",
    "code_symbols": "read",
    "find": "search",
    "grep": "search",
    "write": "edit",
    "edit": "edit",
    "multi_edit": "edit",
    "apply_patch": "edit",
    "undo": "edit",
    "code_format": "edit",
    "delete": "delete",
    "exec": "execute",
    "process": "execute",
    "code_lint": "execute",
    "todo": "think",
}
_SUBJECTS = ("path", "name", "question", "title", "pattern", "action")
"""Arguments that name the subject of a call, the best first."""


# Titles


def get_tool_kind(tool: str) -> ToolKind:
    """The kind by which an editor chooses an icon."""
    return _KINDS.get(tool, "other")


def render_call_title(tool: str, args: object) -> str:
    """A call in one line."""
    command, path, pattern = (_get_text(args, name) for name in ("command", "path", "pattern"))
    if tool == "exec" and command.strip():
        return truncate(to_one_line(command), _MAX_TITLE_CHARS)
    if tool in {"grep", "find"} and pattern:
        return f"{tool} {format_code(pattern)}" + (f" in {format_code(path)}" if path not in {"", "."} else "")
    subject = next(filter(None, (_get_text(args, name) for name in _SUBJECTS)), "")
    return f"{to_one_line(tool)} {format_title(get_tool_kind(tool), subject)}" if subject else to_one_line(tool)


def format_title(kind: ToolKind, text: str) -> str:
    """A text as a title. Titles are plain text by the protocol. Editors show commands and edits like that, but other
    kinds as Markdown, which must not find a link in them."""
    return truncate(to_one_line(text), _MAX_TITLE_CHARS) if kind in {"execute", "edit"} else format_code(text)


def build_session_title(prompt: str) -> str:
    """The title of a session, from its first prompt."""
    return truncate(to_one_line(prompt.strip().split("\n", 1)[0]), _MAX_SESSION_TITLE_CHARS)


def format_code(text: str) -> str:
    """A text as Markdown code in one line."""
    line = truncate(to_one_line(text), _MAX_TITLE_CHARS)
    ticks, gap = _build_ticks(line, 1), " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{gap}{line}{gap}{ticks}"


def format_code_block(text: str) -> str:
    """A text as a Markdown code block. A long text is truncated in the middle."""
    if len(text) > MAX_TEXT_CHARS:
        text = truncate_middle(text, MAX_TEXT_CHARS, "\n… {} characters are not shown …\n")
    ticks = _build_ticks(text, 3)
    return "\n".join((ticks, text.rstrip("\n"), ticks))


def _build_ticks(text: str, least: int) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _get_text(args: object, name: str) -> str:
    value = cast("dict[str, Any]", args).get(name) if isinstance(args, dict) else None
    return value if isinstance(value, str) else ""


# Locations


def list_locations(tool: str, args: object, workspace: str) -> list[ToolCallLocation]:
    """The file that a call names, so that the editor can follow."""
    path = _get_text(args, "path")
    if not path or tool in {"grep", "find", "ls"} or path.startswith("@"):
        return []
    line = cast("dict[str, Any]", args).get("offset") if tool == "read" else None
    known = line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None
    return [build_location(path, workspace, known)]


def build_location(path: str, workspace: str, line: int | None = None) -> ToolCallLocation:
    return ToolCallLocation(path=_to_absolute(path, workspace), line=line)


def _to_absolute(path: str, workspace: str) -> str:
    return os.path.normpath(os.path.join(workspace, path))


# Contents


def build_verbatim_content(text: str) -> ToolCallContentVariant:
    return tool_content(text_block(format_code_block(text)))


def build_result_contents(result: ToolResult[Any], diff: "DiffContent | None") -> list[ToolCallContentVariant]:
    """The outcome of a call: its changes, and its text if the changes do not say it."""
    contents = list(diff.contents) if diff is not None else []
    text = result.error.message if result.error is not None else result.content
    if text.strip() and (not contents or result.name in {"exec", "process"} or result.error is not None):
        contents.insert(0, build_verbatim_content(text))
    if diff is not None and not diff.is_complete:
        contents.append(tool_content(text_block(f"There is more: `handrail diff {result.meta.undo}`")))
    pictures = [one for one in result.attachments if one.type == "image" and one.content is not None]
    contents += [tool_content(image_block(one.content or "", one.mime)) for one in pictures]
    return [*contents, *(build_verbatim_content(f"! {warning}") for warning in result.warnings)]


def build_raw_output(result: ToolResult[Any]) -> dict[str, Any]:
    """The result as a few fields, for clients that show data."""
    fields: dict[str, Any] = {"ok": result.ok, "summary": result.summary}
    fields |= {"undo": result.meta.undo} if result.meta.undo is not None else {}
    return fields | ({"code": result.error.code} if result.error is not None else {})


class DiffContent:
    """A diff as contents and locations, one of each for a file: editors link a card that has one location."""

    def __init__(self, diff: str, workspace: str) -> None:
        files = list(islice(parse_diff_files(diff), _MAX_FILES + 1))
        shown = _select_fitting(files[:_MAX_FILES])
        self.is_complete = len(shown) == len(files)
        self.contents: list[ToolCallContentVariant] = [
            tool_diff_content(_to_absolute(one.path, workspace), one.new, one.old) for one in shown
        ]
        self.locations = [build_location(one.path, workspace, one.line) for one in shown if one.line]


class _DiffSegment(msgspec.Struct, frozen=True):
    """A hunk of a file, or all hunks of it joined."""

    path: str
    line: int
    """The first changed line. 0 in a deleted file."""
    old: str | None
    """None if the file is new."""
    new: str
    start: int
    """The first line of `new`."""
    file: int
    """Number of its file in the diff, from 1. A path that is deleted and created again is two files."""


def parse_diff_files(diff: str) -> Iterator[_DiffSegment]:
    """The files of a diff in order, each with all its hunks, because some editors show only the first diff of a call.

    A line between two hunks says how many lines are left out, the same before and after.
    """
    for _, hunks in groupby(parse_diff_hunks(diff), lambda hunk: hunk.file):
        yield _join_hunks(list(hunks))


def parse_diff_hunks(diff: str) -> Iterator[_DiffSegment]:
    """The hunks of a diff. A truncated hunk has as many lines as there are."""
    for hunk in parse_diff(diff)[0]:
        old, new = None if hunk.creates_file else "".join(hunk.old), "".join(hunk.new)
        start = hunk.range.new_line
        changed = min(start + hunk.unchanged, start + max(0, new.count("\n") - 1))
        yield _DiffSegment(hunk.path, changed, old, new, start, hunk.file)


def _join_hunks(hunks: list[_DiffSegment]) -> _DiffSegment:
    first = hunks[0]
    old, new = first.old or "", first.new
    for before, hunk in pairwise(hunks):
        lines = before.new.count("\n")
        gap = f"⋯ {hunk.start - before.start - lines} lines ⋯\n"
        old, new = f"{old}{gap}{hunk.old}", f"{new}{gap}{hunk.new}"
    return replace(first, old=None if first.old is None else old, new=new)


def _select_fitting(files: list[_DiffSegment]) -> list[_DiffSegment]:
    room = _MAX_DIFFS_CHARS
    for at, file in enumerate(files):
        room -= len(file.old or "") + len(file.new)
        if room < 0:
            return files[:at]
    return files
