"""One question to the model: what it says is told as it comes, and written down when it is whole."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec.structs import replace

from handrail.agent.completing import normalize_answer
from handrail.agent.limits import TurnLimits
from handrail.agent.saying import EventBuffer
from handrail.agent.talk import Transcript, build_note
from handrail.async_rail import AsyncHandrail
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
from handrail.protocol.events import Usage
from handrail.protocol.messages import AssistantMessage, CallPart, Part, TextPart
from handrail.protocol.schema import get_input_schema
from handrail.store.state_dir import make_id

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
