"""How much one turn may use."""

import msgspec


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What ends a turn that would go on for ever, or would cost too much."""

    calls: int = 200
    """Tool calls of one turn."""
    tokens: int | None = None
    """Input and output of all questions of one turn together."""
    repeats: int = 4
    """How often the same calls may come to the same results, one after the other, before the model is told. Once more,
    and the turn ends."""
    cut_off: int = 3
    """How often in a row an answer may be cut off by its length with no call in it."""
    attempts: int = 5
    """How often a question is put that the provider could not answer just then."""
    patience: float = 120.0
    """Seconds: a provider that wants to be left alone for longer is not waited for."""
    full: float = 0.8
    """From which part of the model's window on the transcript is made shorter."""
