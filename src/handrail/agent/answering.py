"""One question to the model: what it says is told as it comes, and written down when it is whole."""

from typing import Any

from msgspec.structs import replace

from handrail.agent.talk import Talk
from handrail.async_rail import AsyncHandrail
from handrail.models.model import Answered, Model, ModelError, ModelRequest, Offered, ReasoningPiece, TextPiece
from handrail.protocol.event import Reasoning, Text, Usage
from handrail.protocol.message import AssistantMessage, CallPart, Part
from handrail.protocol.tool import describe
from handrail.store.identity import new_id


async def ask_model(rail: AsyncHandrail, model: Model, talk: Talk) -> AssistantMessage:
    """Asks the model to go on; its whole answer. ModelError where there is none."""
    request = ModelRequest(
        system=talk.system.text if talk.system else "",
        messages=talk.shown(),
        tools=tuple(
            Offered(name=spec.name, description=spec.description, schema=describe(spec).input_schema)
            for spec in rail.specs()
        ),
    )
    message_id = new_id("m")
    async for piece in model.stream(request):
        if isinstance(piece, TextPiece | ReasoningPiece):
            kind = Text if isinstance(piece, TextPiece) else Reasoning
            rail.conversation.tell((kind, {"message_id": message_id, "text": piece.text}))
        elif isinstance(piece, Answered):
            return _write_down(rail, model, talk, message_id, piece)
    raise ModelError("UNAVAILABLE", f"{model.name} ended its answer in the middle.", retryable=True)


def _write_down(rail: AsyncHandrail, model: Model, talk: Talk, message_id: str, answer: Answered) -> AssistantMessage:
    parts = tuple(_with_id(rail, part) for part in answer.parts)
    message = AssistantMessage(message_id=message_id, model=model.name, parts=parts, finish=answer.finish)
    spent = answer.spent
    used: dict[str, Any] = {
        "model": model.name,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cached_tokens": spent.cached_tokens,
        "cost": spent.cost,
    }
    talk.add(message, (Usage, used))
    return message


def _with_id(rail: AsyncHandrail, part: Part) -> Part:
    return replace(part, tool_call_id=rail.conversation.new_call_id()) if isinstance(part, CallPart) else part
