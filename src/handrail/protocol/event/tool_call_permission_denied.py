"""tool_call.permission-denied: a person said no."""

from handrail.protocol.event.header import PermissionEvent
from handrail.protocol.permission import Answer


class ToolCallPermissionDenied(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-denied"):
    """The answer with the reason the model will read."""

    answer: Answer
