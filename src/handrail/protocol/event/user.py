"""user: the person said something."""

from handrail.protocol.event.header import Event


class User(Event, frozen=True, kw_only=True, tag="user"):
    """A prompt or a queued message."""

    message_id: str
    text: str
