"""A question of the model to the person, and the reply. It is a call that has no result until the reply is there."""

from handrail.protocol.wire import Wire


class Question(Wire, frozen=True):
    """What the model wants to know."""

    tool_call_id: str
    """What the reply names."""
    question: str
    options: tuple[str, ...] = ()
    """Replies to choose from."""
    multiple: bool = False
    """Several may be chosen."""
    custom: bool = False
    """A reply in the person's own words is welcome."""


class Reply(Wire, frozen=True):
    """What the person said to it: options, own words, or both."""

    chosen: tuple[str, ...] = ()
    text: str | None = None
