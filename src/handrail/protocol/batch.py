"""What comes of the calls of one assistant message: results, or questions first."""

from typing import Any

from handrail.protocol.permission import PermissionRequest
from handrail.protocol.question import Question
from handrail.protocol.result import ToolResult
from handrail.protocol.wire import Envelope


class Done(Envelope, frozen=True, tag_field="state", tag="done"):
    """Every call has its result, in the order of the calls."""

    results: tuple[ToolResult[Any], ...]


class Parked(Envelope, frozen=True, tag_field="state", tag="parked"):
    """Nothing of what waits is done, and nothing is kept yet. The batch goes on when every request is answered."""

    batch_id: str
    """What the requests have in common."""
    requests: tuple[PermissionRequest, ...]
    """The questions that have no answer yet."""
    questions: tuple[Question, ...] = ()
    """What the model asks the person."""
