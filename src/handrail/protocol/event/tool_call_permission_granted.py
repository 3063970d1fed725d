"""tool_call.permission-granted: a person said yes."""

from handrail.protocol.event.header import PermissionEvent
from handrail.protocol.permission import Answer


class ToolCallPermissionGranted(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-granted"):
    """The answer and what it covers."""

    answer: Answer
