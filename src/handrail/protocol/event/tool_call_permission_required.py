"""tool_call.permission-required: a call waits for a person."""

from handrail.protocol.event.header import PermissionEvent


class ToolCallPermissionRequired(PermissionEvent, frozen=True, kw_only=True, tag="tool_call.permission-required"):
    """Nothing of the call's batch runs until every request of it is answered."""
