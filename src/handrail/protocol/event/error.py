"""error: a turn failed."""

from typing import ClassVar

from handrail.protocol.event.header import Channel, Event


class Error(Event, frozen=True, kw_only=True, tag="error"):
    """A failure outside any call: the provider, the store, the loop."""

    channel: ClassVar[Channel] = "error"

    code: str
    """An error code."""
    message: str
    """What happened and what to do next: written for people."""
    retryable: bool = False
    """Whether the same prompt may succeed later."""
