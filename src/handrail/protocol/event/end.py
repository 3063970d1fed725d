"""end: a turn is over."""

from typing import ClassVar, Literal

from handrail.protocol.event.header import Channel, Event


class End(Event, frozen=True, kw_only=True, tag="end"):
    """Why it ended, and what it left."""

    channel: ClassVar[Channel] = "end"

    reason: Literal["done", "cancelled", "limit", "parked", "question"]
    calls: int = 0
    """How many calls the turn made."""
    files_changed: tuple[str, ...] = ()
    """The files that are different now."""
    text: str = ""
    """The model's last words."""
