"""What the model has to do, as it said last."""

from typing import Literal

from handrail.protocol.wire import Wire


class TodoItem(Wire, frozen=True, omit_defaults=False):
    """One thing to do."""

    text: str
    status: Literal["pending", "active", "done"]
