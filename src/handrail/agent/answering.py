"""One question to the model: what it says is told as it comes, and written down when it is whole."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec.structs import replace

from handrail.agent.completing import completed
from handrail.agent.limits import TurnLimits
from handrail.agent.saying import Saying
from handrail.agent.talk import Talk, note
from handrail.async_rail import AsyncHandrail
from handrail.models.listening import listening
from handrail.models.model import (
    Answered,
    CallPiece,
    Model,
    ModelError,
    ModelRequest,
    Offered,
    Piece,
    ReasoningPiece,
    TextPiece,
)
from handrail.protocol.event import Usage
from handrail.protocol.message import AssistantMessage, CallPart, Part, TextPart
from handrail.protocol.tool import input_schema
from handrail.store.identity import new_id

OnPiece = Callable[[Piece], None]
"""Is told of every piece as it comes, calls that only take shape included."""
_STOPPED = "The person stopped you here: your last words may be cut off."


async def ask_model(
    rail: AsyncHandrail, model: Model, talk: Talk, limits: TurnLimits, on_piece: OnPiece | None = None
) -> AssistantMessage | None:
    """Asks the model to go on; its whole answer, or None where that was none and it is to be asked once more.
    ModelError where nothing came, or not all of it."""
    from asyncio import CancelledError  # noqa: PLC0415  who is here has it

    message_id = new_id("m")
    saying = Saying(rail.conversation, message_id)
    try:
        async with listening(model, _request(rail, talk)) as pieces:
            answer = await _listen(pieces, saying, on_piece)
    except CancelledError:
        saying.flush()
        _keep_words(model, talk, message_id, saying.text)
        raise
    finally:
        saying.flush()
    if answer is None:
        raise ModelError("UNAVAILABLE", f"{model.name} ended its answer in the middle.", retryable=True)
    return _write_down(rail, model, talk, message_id, answer, limits)


async def _listen(pieces: AsyncIterator[Piece], saying: Saying, on_piece: OnPiece | None) -> Answered | None:
    async for piece in pieces:
        if isinstance(piece, CallPiece):
            saying.flush()  # whoever hears of the call has been told what was said before it
        if on_piece is not None:
            on_piece(piece)
        if isinstance(piece, TextPiece | ReasoningPiece):
            saying.add(piece)
        elif isinstance(piece, Answered):
            return piece
    return None


def _request(rail: AsyncHandrail, talk: Talk) -> ModelRequest:
    return ModelRequest(
        system=talk.system.text if talk.system else "",
        messages=talk.shown(),
        tools=tuple(
            Offered(name=spec.name, description=spec.description, schema=input_schema(spec)) for spec in rail.specs()
        ),
    )


def _write_down(
    rail: AsyncHandrail, model: Model, talk: Talk, message_id: str, answer: Answered, limits: TurnLimits
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
        whole = completed(answer, talk, limits, model.name)
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
    talk.add_all((message, *whole.notes), (Usage, used), *whole.drafts)
    return None if whole.notes else message


def _with_id(rail: AsyncHandrail, part: Part) -> Part:
    return replace(part, tool_call_id=rail.conversation.new_call_id()) if isinstance(part, CallPart) else part


def _keep_words(model: Model, talk: Talk, message_id: str, text: str) -> None:
    """What the person heard stays said. Thoughts and calls that were not whole do not: no provider takes them back."""
    if text.strip():
        parts = (TextPart(text=text.rstrip()),)
        said = AssistantMessage(message_id=message_id, model=model.name, parts=parts, finish="other")
        talk.add_all((said, note(_STOPPED)))
