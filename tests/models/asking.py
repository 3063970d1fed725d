"""Puts questions to models, and what they are made of."""

import asyncio
import base64
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from tests.wires.server import WireServer

from handrail.models.base import Completion, Model, ModelError, ModelRequest, StreamPiece, TextPiece, ToolOffer
from handrail.models.providers import Timeouts
from handrail.models.registry import find_model
from handrail.protocol.messages import (
    AssistantMessage,
    CallPart,
    CallResult,
    Message,
    Part,
    ResultsMessage,
    TextPart,
    UserMessage,
)
from handrail.protocol.results import Attachment

PICTURE = Attachment(type="image", path="a.png", mime="image/png", content=base64.b64encode(b"\x89PNG").decode())
READ = ToolOffer(
    name="read",
    description="Reads a file.",
    schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def question(
    *messages: Message, system: str = "You are careful.", tools: Iterable[ToolOffer] = (READ,)
) -> ModelRequest:
    """A question; "hello" where nothing else is said."""
    return ModelRequest(system=system, messages=messages or (user("hello"),), tools=tuple(tools))


def user(text: str, **given: Any) -> UserMessage:
    return UserMessage(message_id=f"m-{text[:8]}", text=text, **given)


def assistant(*parts: Part, model: str = "openai:gpt-4o") -> AssistantMessage:
    called = any(isinstance(part, CallPart) for part in parts)
    return AssistantMessage(message_id="m-a", model=model, parts=parts, finish="calls" if called else "stop")


def text(words: str, **given: Any) -> TextPart:
    return TextPart(text=words, **given)


def call(number: int, args: Any = None, **given: Any) -> CallPart:
    chosen = {"path": "a"} if args is None else args
    return CallPart(tool_call_id=f"call-{number:x}-00", name="read", args=chosen, **given)


def results(*numbers: int, ok: bool = True, content: str = "one\n", attachments: Any = ()) -> ResultsMessage:
    return ResultsMessage(
        results=tuple(
            CallResult(tool_call_id=f"call-{number:x}-00", name="read", ok=ok, content=content, attachments=attachments)
            for number in numbers
        )
    )


def found(wire: WireServer, **given: Any) -> Model:
    """The model behind a wire."""
    return find_model(wire.model, wire.environment, **given)


def pieces(wire: WireServer, request: ModelRequest | None = None, *, silence: float = 60) -> list[StreamPiece]:
    """Everything that comes of one question."""
    return next(many(wire, request or question(), silence=silence))


def many(wire: WireServer, *requests: ModelRequest, silence: float = 60) -> Iterator[list[StreamPiece]]:
    """What comes of questions that are put one after the other through one connection."""
    model = found(wire, patience=Timeouts(connect=5, silence=silence))

    async def ask() -> list[list[StreamPiece]]:
        try:
            return [await heard(model, request) for request in requests]
        finally:
            await model.close()

    return iter(asyncio.run(ask()))


async def heard(model: Model, request: ModelRequest) -> list[StreamPiece]:
    async with aclosing(model.stream(request)) as stream:  # pyright: ignore[reportArgumentType]
        return [piece async for piece in stream]


def answered(wire: WireServer, request: ModelRequest | None = None) -> Completion:
    """The whole answer to one question."""
    last = pieces(wire, request)[-1]
    assert isinstance(last, Completion)
    return last


def failure(wire: WireServer, request: ModelRequest | None = None, *, silence: float = 60) -> ModelError:
    """How a question fails: in one line, without the key, and without what it came of."""
    with pytest.raises(ModelError) as raised:
        pieces(wire, request, silence=silence)
    error = raised.value
    assert "\n" not in error.message
    assert "secret" not in f"{error!r} {error.message}"
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    return error


def words(said: Iterable[StreamPiece]) -> str:
    """The text of all pieces."""
    return "".join(piece.text for piece in said if isinstance(piece, TextPiece))
