"""What came of a turn."""

from typing import Literal

import msgspec

from handrail.protocol.permissions import PermissionRequest, Question

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
