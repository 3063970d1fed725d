"""The cards of calls: what they are about, what they print while they run, and what came of them."""

from typing import Any

from acp.helpers import start_tool_call, update_tool_call
from acp.schema import ToolCallProgress, ToolCallStart

from handrail.acp.cards import get_tool_kind, list_locations, render_call_title
from handrail.acp.contents import (
    MAX_TEXT_CHARS,
    DiffContent,
    build_raw_output,
    build_result_contents,
    build_verbatim_content,
)
from handrail.async_api import AsyncHandrail
from handrail.protocol import events
from handrail.protocol.errors import HandrailError, ToolError
from handrail.protocol.results import ToolResult
from handrail.protocol.text import to_one_line

Card = ToolCallStart | ToolCallProgress
_NO_CARD = frozenset({"display", "todo"})
"""What they do is shown by itself."""


class CallUpdates:
    """Turns the events of calls into updates. It remembers what a call printed, which later events do not say again."""

    def __init__(self, rail: AsyncHandrail, folder: str) -> None:
        """`folder`: the workspace as the editor calls it."""
        self._rail, self._folder = rail, folder
        self._printed: dict[str, str] = {}
        """The last of what running calls printed."""

    def render_progress(
        self, event: events.ToolCallStart | events.ToolCallRunning | events.ToolCallUpdate
    ) -> list[Card]:
        """A call that was made, runs, or prints something."""
        call = event.tool_call_id
        if event.tool_call_name in _NO_CARD:
            return []
        if isinstance(event, events.ToolCallStart):
            return [self._begun(event)]
        if isinstance(event, events.ToolCallRunning) or not event.output:
            return [update_tool_call(call, status="in_progress")]
        printed = (self._printed.get(call, "") + event.output)[-MAX_TEXT_CHARS:]
        self._printed[call] = printed
        return [update_tool_call(call, status="in_progress", content=[build_verbatim_content(printed)])]

    async def render_end(self, result: ToolResult[Any]) -> list[Card]:
        """What came of a call."""
        self._printed.pop(result.tool_call_id, None)
        if result.name in _NO_CARD and result.ok:
            return []
        shown = await self._changed(result.meta.undo)
        update = update_tool_call(
            result.tool_call_id,
            status="completed" if result.ok else "failed",
            content=build_result_contents(result, shown),
            locations=shown.places if shown is not None and shown.places else None,
            raw_output=build_raw_output(result),
        )
        if result.name not in _NO_CARD:
            return [update]
        # A card after all, since it failed.
        return [start_tool_call(result.tool_call_id, to_one_line(result.name), kind=get_tool_kind(result.name)), update]

    def _begun(self, event: events.ToolCallStart) -> ToolCallStart:
        tool = event.tool_call_name
        return start_tool_call(
            event.tool_call_id,
            render_call_title(tool, event.args),
            kind=get_tool_kind(tool),
            status="pending",
            locations=list_locations(tool, event.args, self._folder),
            raw_input=event.args,
        )

    async def _changed(self, number: int | None) -> DiffContent | None:
        if number is None:
            return None
        try:
            return DiffContent(await self._rail.diff(number), self._folder)
        except (ToolError, HandrailError):
            return None  # older than changes are kept for
