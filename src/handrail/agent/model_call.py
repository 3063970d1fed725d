"""One request to a model."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from handrail.agent.transcript import Transcript, build_note
from handrail.agent.turn import TurnLimits
from handrail.async_api import AsyncHandrail
from handrail.models.listening import open_stream
from handrail.models.model import (
    CallPiece,
    Completion,
    Model,
    ModelError,
    ModelRequest,
    ReasoningPiece,
    StreamPiece,
    TextPiece,
    ToolOffer,
)
from handrail.protocol.events import Event, Notice, Reasoning, Text, Usage
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.messages import AssistantMessage, CallPart, Part, TextPart, UserMessage
from handrail.protocol.schema import get_input_schema
from handrail.protocol.wire import encode, escape_surrogates, sanitize_json
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent
from handrail.store.state_dir import make_id

# § [agent.completing] What becomes of a whole answer: cut-off calls are none, and an answer that is no answer is
# § asked for again.

CUT_OFF = "Your answer was cut off by its length. Go on where it ended."
_CUT_OFF_CALL = (
    "Your answer was cut off by its length in the middle of a call to {name}. That call was not made. "
    "Make it anew with less in it: write a large file in several steps."
)
_BLANK = "Your answer was empty. Make a call, or say in words what you found or did."


class NormalizedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it is written down."""

    parts: tuple[Part, ...]
    notes: tuple[UserMessage, ...] = ()
    """What the model is told of it at once; then it is asked again."""
    drafts: tuple[PendingEvent, ...] = ()


def normalize_answer(answer: Completion, transcript: Transcript, limits: TurnLimits, model: str) -> NormalizedAnswer:
    """Takes from an answer what can be counted on. ModelError where that is nothing, again."""
    parts = tuple(_readable(part) for part in answer.parts)
    if answer.finish == "length":
        return _cut_off(parts, transcript, limits)
    if _is_blank(parts):
        return _blank(parts, answer, transcript, model)
    return NormalizedAnswer(parts=parts)


def _cut_off(parts: tuple[Part, ...], transcript: Transcript, limits: TurnLimits) -> NormalizedAnswer:
    lost = parts[-1] if parts and isinstance(parts[-1], CallPart) else None
    kept = parts[:-1] if lost is not None else parts
    drafts: tuple[PendingEvent, ...] = ()
    text = CUT_OFF
    if lost is not None:
        text = _CUT_OFF_CALL.format(name=lost.name[:80])
        told = f"The model's answer was cut off in the middle of a call to {lost.name[:80]}. The call was not made."
        drafts = ((WarningEvent, {"code": "LIMIT_EXCEEDED", "text": told}),)
    goes_on = any(isinstance(part, CallPart) for part in kept) or _cut_off_before(transcript) + 1 >= limits.cut_off
    return NormalizedAnswer(parts=kept, notes=() if goes_on else (build_note(text),), drafts=drafts)


def _cut_off_before(transcript: Transcript) -> int:
    """How many answers in a row were cut off and had no call."""
    count = 0
    for message in reversed(transcript.turn_messages):
        if isinstance(message, AssistantMessage):
            if message.finish != "length" or message.calls:
                break
            count += 1
    return count


def _blank(parts: tuple[Part, ...], answer: Completion, transcript: Transcript, model: str) -> NormalizedAnswer:
    if answer.finish == "filtered":
        raise ModelError("UNAVAILABLE", f"The provider of {model} withheld the answer. Say it in other words.")
    before = next((one for one in reversed(transcript.turn_messages) if isinstance(one, AssistantMessage)), None)
    if before is not None and _is_blank(before.parts):
        raise ModelError("UNAVAILABLE", f"{model} answered with nothing, twice. Try again, or choose another model.")
    return NormalizedAnswer(parts=parts, notes=(build_note(_BLANK),))


def _is_blank(parts: tuple[Part, ...]) -> bool:
    """Nothing for the person and no call; what it thought for itself does not count."""
    return not any(isinstance(part, CallPart) or (isinstance(part, TextPart) and part.text.strip()) for part in parts)


def _readable(part: Part) -> Part:
    """The part as the journal can hold it. Arguments that are no JSON become a text: nothing is run by them."""
    if not isinstance(part, CallPart):
        return msgspec.structs.replace(part, text=escape_surrogates(part.text))
    args, are_json = sanitize_json(part.args)
    given: Any = args if are_json else encode(args).decode()
    return msgspec.structs.replace(part, name=escape_surrogates(part.name), args=given)


# § [agent.saying] What a model says while it says it: the first words are told at once, those after them a few at a
# § time, so that a fast model does not cost a transaction a word.

_GATHER_SECONDS = 0.025
"""Seconds: nobody reads faster."""


class EventBuffer:
    """The words of one message on their way to the journal and its listeners."""

    def __init__(self, conversation: Conversation, message_id: str) -> None:
        import asyncio  # noqa: PLC0415  who is here has it

        self._loop = asyncio.get_running_loop()
        self._conversation = conversation
        self._message_id = message_id
        self._kind: type[Event] | None = None
        self._gathered: list[str] = []
        self._since = 0.0
        self._timer: Callable[[], None] | None = None
        self._failure: Exception | None = None
        self._words: list[str] = []

    @property
    def text(self) -> str:
        """The words for the person, as far as they were said."""
        return "".join(self._words)

    def add(self, piece: TextPiece | ReasoningPiece) -> None:
        """Takes a piece."""
        kind, text = (Text if isinstance(piece, TextPiece) else Reasoning), escape_surrogates(piece.text)
        if not text:
            return
        if kind is Text:
            self._words.append(text)
        first = kind is not self._kind
        if first:
            self.flush()
            self._kind = kind
        self._gathered.append(text)
        if first or "\n" in text or (len(self._gathered) > 1 and self._loop.time() - self._since >= _GATHER_SECONDS):
            self.flush()
        elif self._timer is None:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(_GATHER_SECONDS, self._flush_later).cancel

    def flush(self) -> None:
        """Tells what was gathered. Nothing is left behind."""
        if self._timer is not None:
            self._timer()
            self._timer = None
        if self._failure is not None:
            raise self._failure
        text, self._gathered = "".join(self._gathered), []
        if text and self._kind is not None:
            self._conversation.tell((self._kind, {"message_id": self._message_id, "text": text}))

    def _flush_later(self) -> None:
        """A model that is slow now: what it said is not kept waiting. A failure is for whoever takes the next piece."""
        try:
            self._timer = None
            self.flush()
        except Exception as error:  # the loop's own handler would only print it
            self._failure = error


# § [agent.answering] One question to the model: what it says is told as it comes, and written down when it is
# § whole.

OnPiece = Callable[[StreamPiece], None]
"""Is told of every piece as it comes, calls that only take shape included."""
_STOPPED = "The person stopped you here: your last words may be cut off."


async def ask_model(
    rail: AsyncHandrail, model: Model, transcript: Transcript, limits: TurnLimits, on_piece: OnPiece | None = None
) -> AssistantMessage | None:
    """Asks the model to go on; its whole answer, or None where that was none and it is to be asked once more.
    ModelError where nothing came, or not all of it."""
    from asyncio import CancelledError  # noqa: PLC0415  who is here has it

    message_id = make_id("m")
    saying = EventBuffer(rail.conversation, message_id)
    try:
        async with open_stream(model, _request(rail, transcript)) as pieces:
            answer = await _listen(pieces, saying, on_piece)
    except CancelledError:
        saying.flush()
        _keep_words(model, transcript, message_id, saying.text)
        raise
    finally:
        saying.flush()
    if answer is None:
        raise ModelError("UNAVAILABLE", f"{model.name} ended its answer in the middle.", retryable=True)
    return _write_down(rail, model, transcript, message_id, answer, limits)


async def _listen(
    pieces: AsyncIterator[StreamPiece], saying: EventBuffer, on_piece: OnPiece | None
) -> Completion | None:
    async for piece in pieces:
        if isinstance(piece, CallPiece):
            saying.flush()  # whoever hears of the call has been told what was said before it
        if on_piece is not None:
            on_piece(piece)
        if isinstance(piece, TextPiece | ReasoningPiece):
            saying.add(piece)
        elif isinstance(piece, Completion):
            return piece
    return None


def _request(rail: AsyncHandrail, transcript: Transcript) -> ModelRequest:
    return ModelRequest(
        system=transcript.system.text if transcript.system else "",
        messages=transcript.context_messages(),
        tools=tuple(
            ToolOffer(name=spec.name, description=spec.description, schema=get_input_schema(spec))
            for spec in rail.specs()
        ),
    )


def _write_down(
    rail: AsyncHandrail, model: Model, transcript: Transcript, message_id: str, answer: Completion, limits: TurnLimits
) -> AssistantMessage | None:
    spent = answer.spent
    used: dict[str, Any] = {
        "model": model.name,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cached_tokens": spent.cached_tokens,
        "cost": spent.cost,
    }
    try:
        whole = normalize_answer(answer, transcript, limits, model.name)
    except ModelError:
        rail.conversation.tell((Usage, used))
        raise
    message = AssistantMessage(
        message_id=message_id,
        model=model.name,
        parts=tuple(_with_id(rail, part) for part in whole.parts),
        finish=answer.finish,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
    )
    transcript.add_all((message, *whole.notes), (Usage, used), *whole.drafts)
    return None if whole.notes else message


def _with_id(rail: AsyncHandrail, part: Part) -> Part:
    return replace(part, tool_call_id=rail.conversation.new_call_id()) if isinstance(part, CallPart) else part


def _keep_words(model: Model, transcript: Transcript, message_id: str, text: str) -> None:
    """What the person heard stays said. Thoughts and calls that were not whole do not: no provider takes them back."""
    if text.strip():
        parts = (TextPart(text=text.rstrip()),)
        said = AssistantMessage(message_id=message_id, model=model.name, parts=parts, finish="other")
        transcript.add_all((said, build_note(_STOPPED)))


# § [agent.retrying] Patience with a provider: asked again after a while, and said so each time.

Answer = TypeVar("Answer")
Sleep = Callable[[float], Awaitable[object]]
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 60.0


async def ask_with_retries(
    ask: Callable[[], Awaitable[Answer]], conversation: Conversation, limits: TurnLimits, sleep: Sleep | None = None
) -> Answer:
    """Asks until there is an answer; ModelError where waiting does not help, or did not. `sleep`: how to wait."""
    attempt = 1
    while True:
        try:
            return await ask()
        except ModelError as error:
            seconds = _pause(error, attempt)
            if not error.retryable or attempt >= limits.attempts or seconds > limits.patience:
                raise
            attempt += 1
            told = f"{_trying_again(error.message)} in {_format_pause(seconds)} ({attempt} of {limits.attempts})"
            conversation.tell((Notice, {"code": error.code, "text": told}))
        await (sleep or _sleep)(seconds)


def _pause(error: ModelError, attempt: int) -> float:
    """What the provider said, else longer each time; with chance in it, so that many do not come back together."""
    if error.after is not None:
        return max(0.0, error.after)
    return min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt) * random.uniform(0.5, 1.0)  # noqa: S311  no secret


def _trying_again(message: str) -> str:
    told = message.rstrip(". ")
    return f"{told} Trying again" if told.endswith("?") else f"{told}; trying again"


def _format_pause(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else "a moment"


async def _sleep(seconds: float) -> None:
    import asyncio  # noqa: PLC0415  who is here has it

    await asyncio.sleep(seconds)
