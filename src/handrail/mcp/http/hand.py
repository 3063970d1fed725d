"""What a request has in hand: a call that waited for a person, or what came of one, on its way to the client."""

from typing import Any, TypeVar

from handrail.mcp.calling import ClientCalls
from handrail.mcp.outcomes import Outcome, UnansweredCall
from handrail.protocol.results import ToolResult

Found = TypeVar("Found", bound="Outcome | dict[str, Any]")


class HeldCall:
    """At most one call. However a request ends, it does not keep it: the same call finds it again."""

    def __init__(self, calls: ClientCalls, connection: str = "") -> None:
        self._calls, self.connection = calls, connection
        self._held: ToolResult[Any] | UnansweredCall | None = None
        self.offered = False
        """Whether the client is answered with what is in hand."""

    @property
    def is_empty(self) -> bool:
        """Whether there is none: most calls ask nobody."""
        return self._held is None

    def hold(self, found: Found) -> Found:
        """Remembers what came of some work, in the thread that did it: nobody else may hear of it. One that was left,
        and an answer that is ready, are in no hand."""
        self._held = None
        if isinstance(found, UnansweredCall) or (
            isinstance(found, ToolResult) and self._calls.has_claimed(found.tool_call_id)
        ):
            self._held = found
        return found

    def settle(self, reached: bool) -> None:
        """The request is over: with what was in hand at the client, or not."""
        if isinstance(self._held, UnansweredCall):
            self._calls.release(self._held.call_id)
        elif self._held is not None:
            self._calls.settle_delivery(self._held, reached=reached and self.offered)
