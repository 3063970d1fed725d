"""The protocol of a model."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, Protocol

import msgspec

from handrail.protocol.errors import HandrailError
from handrail.protocol.messages import Finish, Message, Part
from handrail.protocol.wire import Json


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool in a request."""

    name: str
    description: str
    schema: dict[str, Json]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    system: str
    messages: tuple[Message, ...]
    """The transcript, oldest first, without system messages."""
    tools: tuple[ToolOffer, ...] = ()
    most_tokens: int | None = None
    """Limit of the response."""
    purpose: Literal["work", "summary"] = "work"
    """`summary`: the response is not part of the transcript. It replaces an older part of it."""


class TextPiece(msgspec.Struct, frozen=True):
    text: str


class ReasoningPiece(msgspec.Struct, frozen=True):
    text: str


class CallPiece(msgspec.Struct, frozen=True):
    """The start of a tool call. Its arguments come with the completion."""

    name: str


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    input_tokens: int = 0
    """The whole request, with its cached part."""
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    """In US dollars, if the price is known."""


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """The whole response, and the last piece of a stream. The `tool_call_id` of its calls is empty."""

    parts: tuple[Part, ...]
    finish: Finish
    spent: TokenUsage = TokenUsage()


StreamPiece = TextPiece | ReasoningPiece | CallPiece | Completion


class Model(Protocol):
    @property
    def name(self) -> str:
        """Provider and model: `anthropic:claude-…`."""
        ...

    @property
    def window(self) -> int:
        """The limit of tokens for request and response together."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        """Stream the response. The last piece is a `Completion`. ModelError if there is none, or only a part.

        Closing the iterator ends the request at once. `open_stream` does that."""
        ...

    async def close(self) -> None:
        """Close the connections. The owner of the model calls this at the end. A later request opens them again."""


class ModelError(HandrailError):
    """A request without a complete response. The message is for a person: what failed, and what to do next."""

    def __init__(self, code: str, message: str, *, retryable: bool = False, after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        """Whether the same request may succeed later."""
        self.after = after
        """Seconds to wait, if the provider named them."""


@asynccontextmanager
async def open_stream(model: Model, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamPiece]]:
    """Stream a response, and close the stream at the end of the block."""
    stream = model.stream(request)
    try:
        yield stream
    finally:
        if close := getattr(stream, "aclose", None):
            await close()
