"""A model that plays a script: for tests, and for showing the loop at work without a key."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from handrail.models.model import Answered, CallPiece, ModelError, ModelRequest, Piece, ReasoningPiece, Spent, TextPiece
from handrail.protocol.message import AssistantMessage, CallPart, Detail, Finish, Part, ReasoningPart, TextPart

_PROVIDER = "scripted"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Name and arguments of each."""
    finish: Finish | None = None
    spent: Spent = Spent()
    fails: ModelError | None = None
    """Raised when the words were said, in the place of the whole answer."""


Script = Sequence[Line | Callable[[ModelRequest], Line]]


class Scripted:
    """Answers with one line after the other. It goes by the talk it is sent, so it goes on after a restart."""

    def __init__(
        self, script: Script, *, name: str = "script", window: int = 200_000, summary: Line | None = None
    ) -> None:
        self._script = script
        self._summary = summary
        """What it answers where it is to sum up the talk; without it, it cannot."""
        self.name = f"{_PROVIDER}:{name}"
        self.window = window

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """The next line of the script, piece by piece."""
        if request.purpose == "summary":
            yield _summed_up(self._summary)
            return
        number = _lines_played(request)
        if number >= len(self._script):
            raise ModelError("UNAVAILABLE", f"The script has {len(self._script)} lines, and all of them were played.")
        given = self._script[number]
        line = given(request) if callable(given) else given
        for piece in _pieces(line):
            yield piece
        if line.fails is not None:
            raise line.fails
        yield _answer(line, number)


def _summed_up(line: Line | None) -> Answered:
    if line is None:
        raise ModelError("UNAVAILABLE", "The script has no line that sums the talk up.")
    if line.fails is not None:
        raise line.fails
    return Answered(parts=(TextPart(text=line.text),), finish="stop", spent=line.spent)


def _pieces(line: Line) -> list[Piece]:
    pieces: list[Piece] = [ReasoningPiece(word) for word in _words(line.reasoning)]
    pieces += [TextPiece(word) for word in _words(line.text)]
    return pieces + [CallPiece(name) for name, _ in line.calls]


def _words(text: str) -> list[str]:
    """The text in pieces, as a model would send it; joined they are the text."""
    return text.replace(" ", " \0").split("\0") if text else []


def _answer(line: Line, number: int) -> Answered:
    detail = Detail(provider=_PROVIDER, values={"line": number})
    parts: list[Part] = []
    if line.reasoning:
        parts.append(ReasoningPart(text=line.reasoning))
    parts.append(TextPart(text=line.text, detail=detail))
    parts += [CallPart(tool_call_id="", name=name, args=args) for name, args in line.calls]
    finish = line.finish or ("calls" if line.calls else "stop")
    return Answered(parts=tuple(parts), finish=finish, spent=line.spent)


def _lines_played(request: ModelRequest) -> int:
    said = [message for message in request.messages if isinstance(message, AssistantMessage)]
    details = [part.detail for message in said for part in message.parts if part.detail is not None]
    played = [int(detail.values["line"]) for detail in details if detail.provider == _PROVIDER]
    return max(played, default=-1) + 1
