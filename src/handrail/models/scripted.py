"""Plays a script as a model."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple

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


class ScriptedCall(NamedTuple):
    """A call of a tool in a reply."""

    name: str
    args: Any


def call(name: str, /, **args: Any) -> ScriptedCall:
    """A call as a step of a script: `call("read", path="a.txt")`."""
    return ScriptedCall(name, args)


class ScriptedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply with all that it can have."""

    text: str = ""
    pieces: tuple[str, ...] = ()
    """The text as it is streamed, instead of `text`."""
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


_PlainStep = ScriptedReply | ScriptedCall | str | Sequence[ScriptedCall | str]
ScriptedStep = _PlainStep | Callable[[ModelRequest], _PlainStep]
"""A reply: a text, a call, a list of texts and calls, or all the details. Or a function of the request."""


class ScriptedModel:
    """A model that answers with one step of a script after the other: `ScriptedModel([call("ls", path="."), "Done."])`.

    It counts its replies in the transcript, so it survives a restart.
    """

    def __init__(
        self,
        script: Sequence[ScriptedStep],
        *,
        name: str = "script",
        window: int = 200_000,
        summary: ScriptedReply | None = None,
    ) -> None:
        self._script = script
        self._failures: Counter[int] = Counter()
        self.name = f"{_PROVIDER}:{name}"
        self.window = window
        self._summary = summary
        """The reply to a request for a summary."""
        self.requests: list[ModelRequest] = []
        """The requests to it, in order."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        self.requests.append(request)
        if request.purpose == "summary":
            yield _build_summary(self._summary)
            return
        number = _count_replies(request)
        if number >= len(self._script):
            raise ModelError("UNAVAILABLE", f"The script has {len(self._script)} lines, and all were used.")
        given = self._script[number]
        reply = _build_reply(given(request) if callable(given) else given)
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


def _build_reply(step: _PlainStep) -> ScriptedReply:
    if isinstance(step, ScriptedReply):
        return msgspec.structs.replace(step, text="".join(step.pieces)) if step.pieces else step
    parts = [step] if isinstance(step, str | ScriptedCall) else step
    texts = tuple(part for part in parts if isinstance(part, str))
    calls = tuple(part for part in parts if isinstance(part, ScriptedCall))
    return ScriptedReply(text="".join(texts), pieces=texts if len(texts) > 1 else (), calls=calls)


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
    pieces += [TextPiece(word) for word in reply.pieces or _split_words(reply.text)]
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
