"""One request to a model: streamed, recorded, retried."""

import asyncio
import random
from asyncio import CancelledError
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from handrail.agent.transcript import Transcript, build_note
from handrail.agent.turn import CUT_OFF, TurnLimits
from handrail.async_api import AsyncHandrail
from handrail.models.base import (
    CallPiece,
    Completion,
    Model,
    ModelError,
    ModelRequest,
    ReasoningPiece,
    StreamPiece,
    TextPiece,
    ToolOffer,
    open_stream,
)
from handrail.protocol.events import Event, Notice, Reasoning, Text, Usage
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.messages import AssistantMessage, CallPart, Part, TextPart, UserMessage
from handrail.protocol.schema import get_input_schema
from handrail.protocol.wire import encode, escape_surrogates, sanitize_json
from handrail.runtime.conversation import Conversation
from handrail.store.journal import PendingEvent
from handrail.store.state_dir import make_id

Answer = TypeVar("Answer")
Sleep = Callable[[float], Awaitable[object]]
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 60.0
OnPiece = Callable[[StreamPiece], None]
"""Receives every piece as it arrives, also those of unfinished calls."""
_STOPPED = "The user stopped you here. Your last words may be cut off."
_CUT_OFF_CALL = (
    "Your answer was cut off by its length in the middle of a call to {name}. That call was not made. "
    "Make a shorter call: write a large file in several steps."
)
_BLANK = "Your answer was empty. Make a call, or report what you found or did."
_GATHER_SECONDS = 0.025
"""Text is recorded at most this often: a fast model would cost a transaction a word."""


async def ask_with_retries(
    ask: Callable[[], Awaitable[Answer]], conversation: Conversation, limits: TurnLimits, sleep: Sleep | None = None
) -> Answer:
    """Asks until there is an answer, with growing pauses. ModelError if waiting does not help."""
    attempt = 1
    while True:
        try:
            return await ask()
        except ModelError as error:
            seconds = _choose_pause(error, attempt)
            if not error.retryable or attempt >= limits.attempts or seconds > limits.patience:
                raise
            attempt += 1
            pause = f"{seconds:.0f} s" if seconds >= 1 else "a moment"
            text = f"{_announce_retry(error.message)} in {pause} ({attempt} of {limits.attempts})"
            conversation.tell((Notice, {"code": error.code, "text": text}))
        await (sleep or asyncio.sleep)(seconds)


def _choose_pause(error: ModelError, attempt: int) -> float:
    """Seconds: as the provider says, or longer each time. Random, so that many clients do not come back together."""
    if error.after is not None:
        return max(0.0, error.after)
    return min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt) * random.uniform(0.5, 1.0)  # noqa: S311  no secret


def _announce_retry(message: str) -> str:
    text = message.rstrip(". ")
    return f"{text} Trying again" if text.endswith("?") else f"{text}; trying again"


async def ask_model(
    rail: AsyncHandrail, model: Model, transcript: Transcript, limits: TurnLimits, on_piece: OnPiece | None = None
) -> AssistantMessage | None:
    """The answer of the model, recorded. None if it was unusable and the model has to be asked again. ModelError if the
    answer did not arrive or is incomplete."""
    message_id = make_id("m")
    buffer = _EventBuffer(rail.conversation, message_id)
    try:
        async with open_stream(model, _build_request(rail, transcript)) as pieces:
            answer = await _listen(pieces, buffer, on_piece)
    except CancelledError:
        buffer.flush()
        _store_partial(model, transcript, message_id, buffer.text)
        raise
    finally:
        buffer.flush()
    if answer is None:
        raise ModelError("UNAVAILABLE", f"{model.name} ended its answer early.", retryable=True)
    return _store_answer(rail, model, transcript, message_id, answer, limits)


async def _listen(
    pieces: AsyncIterator[StreamPiece], buffer: "_EventBuffer", on_piece: OnPiece | None
) -> Completion | None:
    async for piece in pieces:
        if isinstance(piece, CallPiece):
            buffer.flush()  # the text before the call comes first
        if on_piece is not None:
            on_piece(piece)
        if isinstance(piece, TextPiece | ReasoningPiece):
            buffer.add(piece)
        elif isinstance(piece, Completion):
            return piece
    return None


def _build_request(rail: AsyncHandrail, transcript: Transcript) -> ModelRequest:
    return ModelRequest(
        system=transcript.system.text if transcript.system else "",
        messages=transcript.context_messages(),
        tools=tuple(
            ToolOffer(name=spec.name, description=spec.description, schema=get_input_schema(spec))
            for spec in rail.specs()
        ),
    )


def _store_answer(
    rail: AsyncHandrail, model: Model, transcript: Transcript, message_id: str, answer: Completion, limits: TurnLimits
) -> AssistantMessage | None:
    spent = answer.spent
    usage: dict[str, Any] = {"model": model.name, **msgspec.structs.asdict(spent)}
    try:
        normalized = _normalize_answer(answer, transcript, limits, model.name)
    except ModelError:
        rail.conversation.tell((Usage, usage))
        raise
    message = AssistantMessage(
        message_id=message_id,
        model=model.name,
        parts=tuple(_with_id(rail, part) for part in normalized.parts),
        finish=answer.finish,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
    )
    transcript.add_all((message, *normalized.notes), (Usage, usage), *normalized.events)
    return None if normalized.notes else message


def _with_id(rail: AsyncHandrail, part: Part) -> Part:
    return replace(part, tool_call_id=rail.conversation.new_call_id()) if isinstance(part, CallPart) else part


def _store_partial(model: Model, transcript: Transcript, message_id: str, text: str) -> None:
    """Stores the text of a cancelled answer. Its reasoning and calls are dropped: no provider takes them back."""
    if text.strip():
        parts = (TextPart(text=text.rstrip()),)
        message = AssistantMessage(message_id=message_id, model=model.name, parts=parts, finish="other")
        transcript.add_all((message, build_note(_STOPPED)))


class _NormalizedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as the transcript stores it."""

    parts: tuple[Part, ...]
    notes: tuple[UserMessage, ...] = ()
    """Notes to the model; it is asked again."""
    events: tuple[PendingEvent, ...] = ()


def _normalize_answer(answer: Completion, transcript: Transcript, limits: TurnLimits, model: str) -> _NormalizedAnswer:
    """Drops a cut-off call, and asks again for an empty answer. ModelError if that is empty too."""
    parts = tuple(_to_storable(part) for part in answer.parts)
    if answer.finish == "length":
        return _handle_cut_off(parts, transcript, limits)
    if _is_blank(parts):
        return _handle_blank(parts, answer, transcript, model)
    return _NormalizedAnswer(parts=parts)


def _handle_cut_off(parts: tuple[Part, ...], transcript: Transcript, limits: TurnLimits) -> _NormalizedAnswer:
    lost = parts[-1] if parts and isinstance(parts[-1], CallPart) else None
    kept = parts[:-1] if lost is not None else parts
    events: tuple[PendingEvent, ...] = ()
    text = CUT_OFF
    if lost is not None:
        text = _CUT_OFF_CALL.format(name=lost.name[:80])
        warning = f"The model's answer was cut off in the middle of a call to {lost.name[:80]}. The call was not made."
        events = ((WarningEvent, {"code": "LIMIT_EXCEEDED", "text": warning}),)
    goes_on = any(isinstance(part, CallPart) for part in kept) or _count_cut_off(transcript) + 1 >= limits.cut_off
    return _NormalizedAnswer(parts=kept, notes=() if goes_on else (build_note(text),), events=events)


def _count_cut_off(transcript: Transcript) -> int:
    """How many answers in a row were cut off without a call."""
    count = 0
    for message in reversed(transcript.turn_messages):
        if isinstance(message, AssistantMessage):
            if message.finish != "length" or message.calls:
                break
            count += 1
    return count


def _handle_blank(parts: tuple[Part, ...], answer: Completion, transcript: Transcript, model: str) -> _NormalizedAnswer:
    if answer.finish == "filtered":
        raise ModelError("UNAVAILABLE", f"The provider of {model} withheld the answer. Rephrase the prompt.")
    before = next((one for one in reversed(transcript.turn_messages) if isinstance(one, AssistantMessage)), None)
    if before is not None and _is_blank(before.parts):
        raise ModelError("UNAVAILABLE", f"{model} sent an empty answer twice. Try again, or choose another model.")
    return _NormalizedAnswer(parts=parts, notes=(build_note(_BLANK),))


def _is_blank(parts: tuple[Part, ...]) -> bool:
    """Whether there is neither text nor a call. Reasoning does not count."""
    return not any(isinstance(part, CallPart) or (isinstance(part, TextPart) and part.text.strip()) for part in parts)


def _to_storable(part: Part) -> Part:
    """The part as the journal can store it. Arguments that are no JSON become text, and the call fails."""
    if not isinstance(part, CallPart):
        return msgspec.structs.replace(part, text=escape_surrogates(part.text))
    args, are_json = sanitize_json(part.args)
    given: Any = args if are_json else encode(args).decode()
    return msgspec.structs.replace(part, name=escape_surrogates(part.name), args=given)


class _EventBuffer:
    """Gathers the text of one message into events: the first piece at once, then by line or time."""

    def __init__(self, conversation: Conversation, message_id: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._conversation = conversation
        self._message_id = message_id
        self._kind: type[Event] | None = None
        self._gathered: list[str] = []
        self._since = 0.0
        self._timer: Callable[[], None] | None = None
        self._failure: Exception | None = None
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def add(self, piece: TextPiece | ReasoningPiece) -> None:
        kind, text = (Text if isinstance(piece, TextPiece) else Reasoning), escape_surrogates(piece.text)
        if not text:
            return
        if kind is Text:
            self._texts.append(text)
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
        if self._timer is not None:
            self._timer()
            self._timer = None
        if self._failure is not None:
            raise self._failure
        text, self._gathered = "".join(self._gathered), []
        if text and self._kind is not None:
            self._conversation.tell((self._kind, {"message_id": self._message_id, "text": text}))

    def _flush_later(self) -> None:
        """Flushes when the model pauses. An error is raised with the next piece."""
        try:
            self._timer = None
            self.flush()
        except Exception as error:  # asyncio would only print it
            self._failure = error
