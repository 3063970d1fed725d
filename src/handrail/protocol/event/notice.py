"""notice: the runtime tells what it did on its own."""

from handrail.protocol.event.header import Event


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """For example: a call that a crash cut off was sealed as interrupted."""

    text: str
    code: str | None = None
    """The error code it has to do with, if any."""
