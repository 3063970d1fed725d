"""Plays a script as a model."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from handrail.models.base import (
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
from handrail.protocol.wire import decode_json

_PROVIDER = "scripted"


class ScriptedReply(msgspec.Struct, frozen=True, kw_only=True):
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Name and arguments of each."""
    finish: Finish | None = None
    spent: TokenUsage = TokenUsage()
    fails: ModelError | tuple[ModelError, ...] | None = None
    """Raised instead of the completion. Of several, each is raised once."""
    fails_after: int | None = None
    """The number of pieces before the failure. None: all of them."""
    waits: Callable[[int], Awaitable[None]] | None = None
    """Awaited with a number before each piece, and before the end."""


Script = Sequence[ScriptedReply | Callable[[ModelRequest], ScriptedReply]]


class ScriptedModel:
    """Answers with one reply after the other. It counts them in the transcript, so it survives a restart."""

    def __init__(
        self, script: Script, *, name: str = "script", window: int = 200_000, summary: ScriptedReply | None = None
    ) -> None:
        self._script = script
        self._failures: Counter[int] = Counter()
        self.name = f"{_PROVIDER}:{name}"
        self.window = window
        self._summary = summary
        """The reply to a request for a summary."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        if request.purpose == "summary":
            yield _build_summary(self._summary)
            return
        number = _count_replies(request)
        if number >= len(self._script):
            raise ModelError("UNAVAILABLE", f"The script has {len(self._script)} lines, and all were used.")
        given = self._script[number]
        reply = given(request) if callable(given) else given
        failure = self._next_failure(reply, number)
        pieces = _split_pieces(reply)
        for at, piece in enumerate(pieces if failure is None else pieces[: reply.fails_after]):
            await _wait(reply, at)
            yield piece
        await _wait(reply, len(pieces))
        if failure is not None:
            raise failure
        yield _build_completion(reply, number)

    async def close(self) -> None:
        """There are no connections."""

    def _next_failure(self, reply: ScriptedReply, number: int) -> ModelError | None:
        if not isinstance(reply.fails, tuple):
            return reply.fails
        tried = self._failures[number]
        self._failures[number] += 1
        return reply.fails[tried] if tried < len(reply.fails) else None


class _StoredReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply in a JSON file."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    finish: Finish | None = None
    spent: TokenUsage = TokenUsage()
    fails: tuple[str, str] | None = None
    """Code and message of the error."""


def parse_script(data: bytes) -> list[ScriptedReply]:
    """Parse `[{"text": …, "calls": [["read", {"path": …}]]}, …]`. Raises the error of msgspec."""
    return [
        ScriptedReply(
            text=one.text,
            reasoning=one.reasoning,
            calls=one.calls,
            finish=one.finish,
            spent=one.spent,
            fails=ModelError(*one.fails) if one.fails else None,
        )
        for one in decode_json(data, list[_StoredReply])
    ]


async def _wait(reply: ScriptedReply, at: int) -> None:
    if reply.waits is not None:
        await reply.waits(at)


def _build_summary(reply: ScriptedReply | None) -> Completion:
    if reply is None:
        raise ModelError("UNAVAILABLE", "The script has no line for a summary of the transcript.")
    if isinstance(reply.fails, ModelError):
        raise reply.fails
    return Completion(parts=(TextPart(text=reply.text),), finish="stop", spent=reply.spent)


def _split_pieces(reply: ScriptedReply) -> list[StreamPiece]:
    pieces: list[StreamPiece] = [ReasoningPiece(word) for word in _split_words(reply.reasoning)]
    pieces += [TextPiece(word) for word in _split_words(reply.text)]
    return pieces + [CallPiece(name) for name, _ in reply.calls]


def _split_words(text: str) -> list[str]:
    """Split a text behind its spaces."""
    return text.replace(" ", " \0").split("\0") if text else []


def _build_completion(reply: ScriptedReply, number: int) -> Completion:
    detail = Detail(provider=_PROVIDER, values={"line": number})
    parts: list[Part] = []
    if reply.reasoning:
        parts.append(ReasoningPart(text=reply.reasoning))
    parts.append(TextPart(text=reply.text, detail=detail))
    parts += [CallPart(tool_call_id="", name=name, args=args) for name, args in reply.calls]
    finish = reply.finish or ("calls" if reply.calls else "stop")
    return Completion(parts=tuple(parts), finish=finish, spent=reply.spent)


def _count_replies(request: ModelRequest) -> int:
    said = [message for message in request.messages if isinstance(message, AssistantMessage)]
    details = [part.detail for message in said for part in message.parts if part.detail is not None]
    played = [int(detail.values["line"]) for detail in details if detail.provider == _PROVIDER]
    return max(played, default=-1) + 1
