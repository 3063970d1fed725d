"""reasoning: the model thinks."""

from handrail.protocol.event.header import Event


class Reasoning(Event, frozen=True, kw_only=True, tag="reasoning"):
    """A piece of the model's reasoning, where the provider shows it."""

    message_id: str
    """The assistant message it belongs to."""
    text: str
