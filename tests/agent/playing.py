"""A model that plays its lines one after the other, whatever it is sent, and keeps what it was sent."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from handrail.models.base import Completion, ModelError, ModelRequest, StreamPiece, TokenUsage
from handrail.protocol.messages import CallPart, Part, TextPart

Answer = str | Sequence[tuple[str, dict[str, Any]]] | ModelError | Callable[[], str]


class Playing:
    """Its lines are words, calls, or an error; `notes` is what it answers where it is to sum up."""

    name = "playing:lines"

    def __init__(self, *lines: Answer, window: int, notes: Answer = "My notes.") -> None:
        self.lines = list(lines)
        self.window = window
        self.notes = notes
        self.asked: list[ModelRequest] = []
        self.summed_up: list[ModelRequest] = []
        self.looks: list[Callable[[ModelRequest], None]] = []
        """Called with each question, before it is answered."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        if request.purpose == "summary":
            self.summed_up.append(request)
            yield self._answer(self.notes, request)
            return
        self.asked.append(request)
        for look in self.looks:
            look(request)
        yield self._answer(self.lines.pop(0), request)

    def _answer(self, line: Answer, request: ModelRequest) -> Completion:
        said = line() if callable(line) else line
        if isinstance(said, ModelError):
            raise said
        parts: tuple[Part, ...] = (TextPart(text=said),) if isinstance(said, str) else tuple(map(_call, said))
        return Completion(
            parts=parts, finish="stop" if isinstance(said, str) else "calls", spent=TokenUsage(output_tokens=1)
        )


def _call(given: tuple[str, dict[str, Any]]) -> CallPart:
    return CallPart(tool_call_id="", name=given[0], args=given[1])
