"""usage: what a model call cost."""

from handrail.protocol.event.header import Event


class Usage(Event, frozen=True, kw_only=True, tag="usage"):
    """Tokens of one request to a model."""

    model: str
    """Provider and model."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """Of the input, what the provider had in its cache."""
    cost: float | None = None
    """In US dollars, where the price is known."""
