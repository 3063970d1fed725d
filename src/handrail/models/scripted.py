"""A model that plays a script: for tests, and for showing the loop at work without a key."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from handrail.models.model import (
    CallPiece,
    Completion,
    ModelError,
    ModelRequest,
    ReasoningPiece,
    StreamPiece,
    TextPiece,
    TokenUsage,
)
from handrail.protocol.messages import AssistantMessage, CallPart, Detail, Finish, Part, ReasoningPart, TextPart

_PROVIDER = "scripted"


class ScriptedReply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Name and arguments of each."""
    finish: Finish | None = None
    spent: TokenUsage = TokenUsage()
    fails: ModelError | tuple[ModelError, ...] | None = None
    """Raised in the place of the whole answer: one every time, several one after the other and then no more."""
    fails_after: int | None = None
    """How many pieces are said before that; all of them where nothing is set."""
    waits: Callable[[int], Awaitable[None]] | None = None
    """Awaited before each piece with its number, and once more before the end: a test can hold the model there."""


Script = Sequence[ScriptedReply | Callable[[ModelRequest], ScriptedReply]]


class ScriptedModel:
    """Answers with one line after the other. It goes by the transcript it is sent, so it goes on after a restart."""

    def __init__(
        self, script: Script, *, name: str = "script", window: int = 200_000, summary: ScriptedReply | None = None
    ) -> None:
        self._script = script
        self._failed: Counter[int] = Counter()
        self.name = f"{_PROVIDER}:{name}"
        self.window = window
        self._summary = summary
        """What it answers where it is to sum up the transcript; without it, it cannot."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        """The next line of the script, piece by piece."""
        if request.purpose == "summary":
            yield _summed_up(self._summary)
            return
        number = _lines_played(request)
        if number >= len(self._script):
            raise ModelError("UNAVAILABLE", f"The script has {len(self._script)} lines, and all of them were played.")
        given = self._script[number]
        line = given(request) if callable(given) else given
        failure = self._next_failure(line, number)
        pieces = _pieces(line)
        for place, piece in enumerate(pieces if failure is None else pieces[: line.fails_after]):
            await _wait(line, place)
            yield piece
        await _wait(line, len(pieces))
        if failure is not None:
            raise failure
        yield _answer(line, number)

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _next_failure(self, line: ScriptedReply, number: int) -> ModelError | None:
        if not isinstance(line.fails, tuple):
            return line.fails
        tried = self._failed[number]
        self._failed[number] += 1
        return line.fails[tried] if tried < len(line.fails) else None


async def _wait(line: ScriptedReply, place: int) -> None:
    if line.waits is not None:
        await line.waits(place)


def _summed_up(line: ScriptedReply | None) -> Completion:
    if line is None:
        raise ModelError("UNAVAILABLE", "The script has no line that sums the transcript up.")
    if isinstance(line.fails, ModelError):
        raise line.fails
    return Completion(parts=(TextPart(text=line.text),), finish="stop", spent=line.spent)


def _pieces(line: ScriptedReply) -> list[StreamPiece]:
    pieces: list[StreamPiece] = [ReasoningPiece(word) for word in _words(line.reasoning)]
    pieces += [TextPiece(word) for word in _words(line.text)]
    return pieces + [CallPiece(name) for name, _ in line.calls]


def _words(text: str) -> list[str]:
    """The text in pieces, as a model would send it; joined they are the text."""
    return text.replace(" ", " \0").split("\0") if text else []


def _answer(line: ScriptedReply, number: int) -> Completion:
    detail = Detail(provider=_PROVIDER, values={"line": number})
    parts: list[Part] = []
    if line.reasoning:
        parts.append(ReasoningPart(text=line.reasoning))
    parts.append(TextPart(text=line.text, detail=detail))
    parts += [CallPart(tool_call_id="", name=name, args=args) for name, args in line.calls]
    finish = line.finish or ("calls" if line.calls else "stop")
    return Completion(parts=tuple(parts), finish=finish, spent=line.spent)


def _lines_played(request: ModelRequest) -> int:
    said = [message for message in request.messages if isinstance(message, AssistantMessage)]
    details = [part.detail for message in said for part in message.parts if part.detail is not None]
    played = [int(detail.values["line"]) for detail in details if detail.provider == _PROVIDER]
    return max(played, default=-1) + 1
