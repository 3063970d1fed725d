"""What a card holds: differences for the editor's own view of them, and text."""

from itertools import islice
from typing import Any

from acp.helpers import ToolCallContentVariant, image_block, text_block, tool_content, tool_diff_content
from acp.schema import ToolCallLocation

from handrail.acp.cards import absolute, block
from handrail.acp.diffs import Piece, files_of
from handrail.protocol.result import ToolResult
from handrail.tools.preview import both_ends

MOST_TEXT = 16_000
"""Characters of a text on a card; the journal has all of it."""
_MOST_FILES = 40
_MOST_OF_DIFFS = 200_000
"""Characters of all differences of a card together."""
_LEFT_OUT = "\n… {} characters are not shown …\n"


class Shown:
    """A difference as contents and places, one of each for a file: editors link a card that is about one place."""

    def __init__(self, diff: str, workspace: str) -> None:
        files = list(islice(files_of(diff), _MOST_FILES + 1))
        kept = _within(files[:_MOST_FILES])
        self.all = len(kept) == len(files)
        self.contents: list[ToolCallContentVariant] = [
            tool_diff_content(absolute(one.path, workspace), one.new, one.old) for one in kept
        ]
        there = [one for one in kept if one.line]
        self.places = [ToolCallLocation(path=absolute(one.path, workspace), line=one.line) for one in there]


def text(content: str) -> ToolCallContentVariant:
    """Markdown on a card."""
    return tool_content(text_block(content))


def verbatim(content: str) -> ToolCallContentVariant:
    """A text as it is, the beginning and the end of it where it is long."""
    return text(block(bounded(content)))


def bounded(content: str) -> str:
    """A text, or the beginning and the end of it."""
    return content if len(content) <= MOST_TEXT else both_ends(content, MOST_TEXT, _LEFT_OUT)


def of_result(result: ToolResult[Any], shown: Shown | None) -> list[ToolCallContentVariant]:
    """What came of a call: what it changed, and what it said where the changes do not say it."""
    contents = list(shown.contents) if shown is not None else []
    told = result.error.message if result.error is not None else result.content
    if not contents or result.name in {"exec", "process"} or result.error is not None:
        contents = [*([verbatim(told)] if told.strip() else []), *contents]
    if shown is not None and not shown.all:
        contents.append(text(f"There is more: `handrail diff {result.meta.undo}`"))
    pictures = [one for one in result.attachments if one.type == "image" and one.content is not None]
    contents += [tool_content(image_block(one.content or "", one.mime)) for one in pictures]
    return [*contents, *(verbatim(f"! {warning}") for warning in result.warnings)]


def raw_output(result: ToolResult[Any]) -> dict[str, Any]:
    """The result in a few facts, for clients that show it as data."""
    facts: dict[str, Any] = {"ok": result.ok, "summary": result.summary}
    facts |= {"undo": result.meta.undo} if result.meta.undo is not None else {}
    return facts | ({"code": result.error.code} if result.error is not None else {})


def _within(files: list[Piece]) -> list[Piece]:
    kept: list[Piece] = []
    room = _MOST_OF_DIFFS
    for file in files:
        room -= len(file.old or "") + len(file.new)
        if room < 0:
            break
        kept.append(file)
    return kept
