"""text: the model writes."""

from handrail.protocol.event.header import Event


class Text(Event, frozen=True, kw_only=True, tag="text"):
    """A piece of the model's answer, in order."""

    message_id: str
    """The assistant message it is a piece of."""
    text: str
