"""The messages of a transcript."""

from typing import Literal

import msgspec

from handrail.protocol.results import Attachment
from handrail.protocol.wire import Json

Finish = Literal["stop", "calls", "length", "filtered", "other"]


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A part of the transcript."""


class Detail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Opaque data of a provider, such as signatures, that must be sent back with its part."""

    provider: str
    values: dict[str, Json]


class TextPart(_Message, frozen=True, kw_only=True, tag="text"):
    """Text of the model for the user."""

    text: str
    detail: Detail | None = None


class ReasoningPart(_Message, frozen=True, kw_only=True, tag="reasoning"):
    """Reasoning of the model."""

    text: str
    detail: Detail | None = None


class CallPart(_Message, frozen=True, kw_only=True, tag="call"):
    """A tool call of the model."""

    tool_call_id: str
    name: str
    args: Json
    """As the model gave them. A text: the arguments were invalid JSON, which the tool reports."""
    provider_call_id: str | None = None
    detail: Detail | None = None


Part = TextPart | ReasoningPart | CallPart


class SystemMessage(_Message, frozen=True, kw_only=True, tag="system"):
    """The system prompt from here on."""

    text: str
    tools: tuple[str, ...]
    """The tools that it describes."""
    skills: tuple[str, ...] = ()


class UserMessage(_Message, frozen=True, kw_only=True, tag="user"):
    """A message of the user, or of the loop in the role of the user."""

    message_id: str
    text: str
    by_loop: bool = False
    """Whether the loop wrote it."""
    attachments: tuple[Attachment, ...] = ()


class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant"):
    """A complete response of the model."""

    message_id: str
    model: str
    parts: tuple[Part, ...]
    finish: Finish
    input_tokens: int = 0
    """Tokens of the whole request: how full the model's window was."""
    output_tokens: int = 0

    @property
    def calls(self) -> tuple[CallPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, CallPart))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


class CallResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a result that the model sees."""

    tool_call_id: str
    name: str
    ok: bool
    content: str
    attachments: tuple[Attachment, ...] = ()
    files_changed: tuple[str, ...] = ()
    """Not sent to the model: for the summary of a turn."""


class ResultsMessage(_Message, frozen=True, kw_only=True, tag="results"):
    """The results of all calls of the assistant message before it."""

    results: tuple[CallResult, ...]


class SummaryMessage(_Message, frozen=True, kw_only=True, tag="summary"):
    """From here on the model sees this summary instead of the messages before. The journal keeps them."""

    text: str
    kept_from: int
    """The number of the first message that the model still sees in full."""
    cut: int | None = None
    """The model sees at most so many characters of each earlier result, and no images. None: results are complete."""
    notes: str = ""
    """The part that a model wrote."""


Message = SystemMessage | UserMessage | AssistantMessage | ResultsMessage | SummaryMessage
