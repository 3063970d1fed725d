"""The calls of a transcript with what came of them."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from handrail.protocol.messages import AssistantMessage, CallPart, CallResult, Message, ResultsMessage

_TELLING = ("path", "pattern", "command", "question", "name", "title", "sessionId", "action", "content", "patch")
"""Of the arguments, the one that says most about a call: the first that is there."""


class CallExchange(msgspec.Struct, frozen=True):
    """A call and its result."""

    call: CallPart
    result: CallResult

    def argument(self, name: str) -> Any:
        """What the call was given under a name; None where it was given nothing."""
        given: Any = self.call.args
        return given.get(name) if isinstance(given, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    @property
    def subject(self) -> str:
        """What the call was about, as its arguments name it."""
        if not isinstance(self.call.args, dict):
            return "(arguments that were no JSON)"
        found = next((self.argument(name) for name in _TELLING if isinstance(self.argument(name), str)), "")
        action = self.argument("action")
        return f"{action} {found}" if isinstance(action, str) and found != action else str(found)


def collect_exchanges(messages: Iterable[Message]) -> Iterator[CallExchange]:
    """Every call that has a result, in order."""
    asked: dict[str, CallPart] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            asked = {call.tool_call_id: call for call in message.calls}
        elif isinstance(message, ResultsMessage):
            for result in message.results:
                if result.tool_call_id in asked:
                    yield CallExchange(asked[result.tool_call_id], result)
