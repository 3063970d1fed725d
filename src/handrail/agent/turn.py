"""A turn."""

from typing import Literal

import msgspec

from handrail.protocol.permissions import PermissionRequest, Question

# § [agent.turn] What came of a turn.

Reason = Literal["done", "cancelled", "limit", "parked", "question", "error"]


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Why it ended, and what it left."""

    reason: Reason
    text: str = ""
    """The model's last words."""
    calls: int = 0
    """How many calls it made."""
    files_changed: tuple[str, ...] = ()
    """By its calls, in the order they were first changed."""
    tokens: int = 0
    """Input and output of all its questions to the model."""
    requests: tuple[PermissionRequest, ...] = ()
    """What waits for a yes."""
    questions: tuple[Question, ...] = ()
    """What the model wants to know."""
    code: str | None = None
    """The error code of what ended it early."""
    message: str | None = None
    """The same in words, for a person."""


# § [agent.limits] How much one turn may use.


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
