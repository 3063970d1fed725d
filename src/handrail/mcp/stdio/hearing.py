"""Hears every event of the session, and has those told who asked for it. Loaded with the session: before that nothing
happens, and a client waits for what is loaded."""

from collections.abc import Callable

from handrail.mcp.stdio.telling import LONGEST, Telling
from handrail.protocol import event as events
from handrail.protocol.event import Event, Notice, ToolCallUpdate

KINDS = (ToolCallUpdate, events.Warning, Notice)
"""What is heard of."""


def hearing(telling: Telling) -> Callable[[Event], None]:
    """Takes an event of the session, in the thread that brought it about."""

    def hear(event: Event) -> None:
        if isinstance(event, ToolCallUpdate):
            if line := _line(event):
                telling.progress(event.tool_call_id, line)
                telling.log("info", {"text": line[:LONGEST]}, event.tool_call_id)
        elif isinstance(event, events.Warning):
            telling.log("warning", {"code": event.code, "text": event.text}, event.tool_call_id)
        elif isinstance(event, Notice):
            telling.log("notice", {"text": event.text})

    return hear


def _line(event: ToolCallUpdate) -> str:
    """What an update says, in one line: the last that was printed, else what the call does now."""
    printed = [line for line in (event.output or "").splitlines() if line.strip()]
    return printed[-1].strip() if printed else event.title or ""
