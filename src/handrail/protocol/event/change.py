"""change: files are different now."""

from handrail.protocol.change import ChangeSet
from handrail.protocol.event.header import ToolEvent


class Change(ToolEvent, frozen=True, kw_only=True, tag="change"):
    """The change set of one call."""

    change: ChangeSet
