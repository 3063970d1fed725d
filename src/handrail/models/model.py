"""What a model is to the loop: it is sent a transcript and a list of tools, and answers piece by piece."""

from collections.abc import AsyncIterator
from typing import Literal, Protocol

import msgspec

from handrail.protocol.errors import HandrailError
from handrail.protocol.messages import Finish, Message, Part
from handrail.protocol.wire import Json


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model hears of it."""

    name: str
    description: str
    schema: dict[str, Json]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model."""

    system: str
    messages: tuple[Message, ...]
    """Those that it shall see, oldest first; none of kind system."""
    tools: tuple[ToolOffer, ...] = ()
    most_tokens: int | None = None
    """Of the answer."""
    purpose: Literal["work", "summary"] = "work"
    """`summary`: the answer is no part of the transcript; it replaces an older part of it."""


class TextPiece(msgspec.Struct, frozen=True):
    """More words for the person."""

    text: str


class ReasoningPiece(msgspec.Struct, frozen=True):
    """More words of the model for itself."""

    text: str


class CallPiece(msgspec.Struct, frozen=True):
    """A call takes shape: it has a name by now. Its arguments are known when the answer is whole."""

    name: str


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer cost."""

    input_tokens: int = 0
    """All of the question, what was cached included."""
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    """In US dollars, where the price is known."""


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer; nothing comes after it. The calls in it have no ids of ours yet: `tool_call_id` is empty."""

    parts: tuple[Part, ...]
    finish: Finish
    spent: TokenUsage = TokenUsage()


StreamPiece = TextPiece | ReasoningPiece | CallPiece | Completion


class Model(Protocol):
    """Somebody who answers."""

    @property
    def name(self) -> str:
        """Provider and model: `anthropic:claude-…`."""
        ...

    @property
    def window(self) -> int:
        """How many tokens question and answer may have together."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        """The answer, piece by piece; the last is `Completion`. ModelError where there is none, or not all of it.

        Whoever stops listening closes the iterator (`listening` does it): that ends the question at once."""
        ...

    async def close(self) -> None:
        """Lets go of connections; whoever found the model does that at the end. A later question is still answered."""


class ModelError(HandrailError):
    """No answer, or only a part of one. The words are for a person: what failed, and what to do next."""

    def __init__(self, code: str, message: str, *, retryable: bool = False, after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        """Whether the same question may be answered later."""
        self.after = after
        """Seconds to wait, where the provider said so."""
