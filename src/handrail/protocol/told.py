"""What a model is told of a result."""

from typing import Any

from handrail.protocol.result import ToolResult


def render_for_model(result: ToolResult[Any]) -> str:
    """Its content, and what there is to know of that besides: where the next page begins, and what is not as it should
    be. A model that is not told takes a page for the file. Most contents are all, and come as they are."""
    following = result.meta.next_offset
    if following is None and not result.warnings:
        return result.content
    page = () if following is None else (f"{result.summary}. Go on with offset {following}.",)
    notes = [f"[{note}]\n" for note in (*page, *result.warnings) if note not in result.content]
    return _on_lines_of_their_own(result.content, notes) if notes else result.content


def _on_lines_of_their_own(content: str, notes: list[str]) -> str:
    return content + ("" if not content or content.endswith("\n") else "\n") + "".join(notes)
