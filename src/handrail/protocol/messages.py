"""Messages between the loop and a model."""

from typing import Literal

import msgspec

from handrail.protocol.results import Attachment
from handrail.protocol.wire import Json

Finish = Literal["stop", "calls", "length", "filtered", "other"]


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """One line of the transcript."""


class Detail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a provider wants to have back with a part as it gave it: signatures, ids. Nobody else can read it."""

    provider: str
    values: dict[str, Json]


class TextPart(_Message, frozen=True, kw_only=True, tag="text"):
    """Words of the model for the person."""

    text: str
    detail: Detail | None = None


class ReasoningPart(_Message, frozen=True, kw_only=True, tag="reasoning"):
    """Words of the model for itself."""

    text: str
    detail: Detail | None = None


class CallPart(_Message, frozen=True, kw_only=True, tag="call"):
    """A call that the model wants to be made."""

    tool_call_id: str
    """Made by the runtime."""
    name: str
    args: Json
    """As the model gave them; a text where they were no JSON: the tool then says what is wrong with it."""
    provider_call_id: str | None = None
    detail: Detail | None = None


Part = TextPart | ReasoningPart | CallPart


class SystemMessage(_Message, frozen=True, kw_only=True, tag="system"):
    """The system prompt from here on."""

    text: str
    tools: tuple[str, ...]
    """The tools that it speaks of."""
    skills: tuple[str, ...] = ()
    """The skills that were active."""


class UserMessage(_Message, frozen=True, kw_only=True, tag="user"):
    """What the person said, or what the loop has to tell the model in the person's place."""

    message_id: str
    text: str
    by_loop: bool = False
    """Whether it is not the person's."""
    attachments: tuple[Attachment, ...] = ()
    """Pictures that they put beside it."""


class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant"):
    """What the model said, whole."""

    message_id: str
    model: str
    parts: tuple[Part, ...]
    finish: Finish
    input_tokens: int = 0
    """Of the question that it answers, all of it: so full the model's window was."""
    output_tokens: int = 0

    @property
    def calls(self) -> tuple[CallPart, ...]:
        """The calls that it wants to be made, in order."""
        return tuple(part for part in self.parts if isinstance(part, CallPart))

    @property
    def text(self) -> str:
        """Its words for the person."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


class CallResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As much of a result as the model sees."""

    tool_call_id: str
    name: str
    ok: bool
    content: str
    attachments: tuple[Attachment, ...] = ()
    files_changed: tuple[str, ...] = ()
    """Not for the model, which reads of it in `content`: for who tells what a turn left."""


class ResultsMessage(_Message, frozen=True, kw_only=True, tag="results"):
    """What came of all calls of the assistant message before it."""

    results: tuple[CallResult, ...]


class SummaryMessage(_Message, frozen=True, kw_only=True, tag="summary"):
    """From here on the model sees this in the place of what came before; the journal keeps all of it."""

    text: str
    kept_from: int
    """The number of the first message before this one that the model still sees as it was."""
    cut: int | None = None
    """Of the results before this one, the model sees at most so many characters each, and no pictures: they would not
    have fitted. None where they are as they were."""
    notes: str = ""
    """The part of it that a model wrote."""


Message = SystemMessage | UserMessage | AssistantMessage | ResultsMessage | SummaryMessage
