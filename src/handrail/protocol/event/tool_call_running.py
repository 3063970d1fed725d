"""tool_call.running: a call that may have effects begins."""

from handrail.protocol.event.header import ToolEvent


class ToolCallRunning(ToolEvent, frozen=True, kw_only=True, tag="tool_call.running"):
    """Written before the first effect; without an end after it, the call was interrupted."""
