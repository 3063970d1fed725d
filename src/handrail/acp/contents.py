"""What a card holds: differences for the editor's own view of them, and text."""

from itertools import islice
from typing import Any

from acp.helpers import ToolCallContentVariant, image_block, text_block, tool_content, tool_diff_content
from acp.schema import ToolCallLocation

from handrail.acp.cards import format_code_block, to_absolute
from handrail.acp.diffs import DiffSegment, parse_diff_files
from handrail.protocol.results import ToolResult
from handrail.tools.text import truncate_middle

MAX_TEXT_CHARS = 16_000
"""Characters of a text on a card; the journal has all of it."""
_MAX_FILES = 40
_MAX_DIFFS_CHARS = 200_000
"""Characters of all differences of a card together."""
_LEFT_OUT = "\n… {} characters are not shown …\n"


class DiffContent:
    """A difference as contents and places, one of each for a file: editors link a card that is about one place."""

    def __init__(self, diff: str, workspace: str) -> None:
        files = list(islice(parse_diff_files(diff), _MAX_FILES + 1))
        kept = _within(files[:_MAX_FILES])
        self.is_complete = len(kept) == len(files)
        self.contents: list[ToolCallContentVariant] = [
            tool_diff_content(to_absolute(one.path, workspace), one.new, one.old) for one in kept
        ]
        there = [one for one in kept if one.line]
        self.places = [ToolCallLocation(path=to_absolute(one.path, workspace), line=one.line) for one in there]


def build_text_content(content: str) -> ToolCallContentVariant:
    """Markdown on a card."""
    return tool_content(text_block(content))


def build_verbatim_content(content: str) -> ToolCallContentVariant:
    """A text as it is, the beginning and the end of it where it is long."""
    return build_text_content(format_code_block(bound_text(content)))


def bound_text(content: str) -> str:
    """A text, or the beginning and the end of it."""
    return content if len(content) <= MAX_TEXT_CHARS else truncate_middle(content, MAX_TEXT_CHARS, _LEFT_OUT)


def build_result_contents(result: ToolResult[Any], shown: DiffContent | None) -> list[ToolCallContentVariant]:
    """What came of a call: what it changed, and what it said where the changes do not say it."""
    contents = list(shown.contents) if shown is not None else []
    told = result.error.message if result.error is not None else result.content
    if not contents or result.name in {"exec", "process"} or result.error is not None:
        contents = [*([build_verbatim_content(told)] if told.strip() else []), *contents]
    if shown is not None and not shown.is_complete:
        contents.append(build_text_content(f"There is more: `handrail diff {result.meta.undo}`"))
    pictures = [one for one in result.attachments if one.type == "image" and one.content is not None]
    contents += [tool_content(image_block(one.content or "", one.mime)) for one in pictures]
    return [*contents, *(build_verbatim_content(f"! {warning}") for warning in result.warnings)]


def build_raw_output(result: ToolResult[Any]) -> dict[str, Any]:
    """The result in a few facts, for clients that show it as data."""
    facts: dict[str, Any] = {"ok": result.ok, "summary": result.summary}
    facts |= {"undo": result.meta.undo} if result.meta.undo is not None else {}
    return facts | ({"code": result.error.code} if result.error is not None else {})


def _within(files: list[DiffSegment]) -> list[DiffSegment]:
    kept: list[DiffSegment] = []
    room = _MAX_DIFFS_CHARS
    for file in files:
        room -= len(file.old or "") + len(file.new)
        if room < 0:
            break
        kept.append(file)
    return kept
