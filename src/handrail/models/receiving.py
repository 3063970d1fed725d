"""What a provider answered, in our words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.models.characters import SurrogateJoiner, fix_json_surrogates, fix_surrogates
from handrail.models.model import CallPiece, Completion, ReasoningPiece, StreamPiece, TextPiece, TokenUsage
from handrail.protocol.messages import CallPart, Detail, Finish, Part, ReasoningPart, TextPart

if TYPE_CHECKING:
    from pydantic_ai import messages as wire

_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "tool_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}
_MADE_UP = "pyd_ai_"
"""How ids begin that the server did not give."""
_KEPT = ("id", "signature", "provider_details")


class PieceBuilder:
    """Turns the events of a stream into pieces, each made of whole characters."""

    def __init__(self) -> None:
        self._joined: dict[type, SurrogateJoiner] = {TextPiece: SurrogateJoiner(), ReasoningPiece: SurrogateJoiner()}

    def build(self, event: Any) -> Iterator[StreamPiece]:
        """The pieces that an event brings."""
        from pydantic_ai import messages as wire  # noqa: PLC0415

        if isinstance(event, wire.PartStartEvent):
            if isinstance(event.part, wire.ToolCallPart):
                yield CallPiece(fix_surrogates(event.part.tool_name))
            elif isinstance(event.part, wire.TextPart):
                yield from self._more(TextPiece, event.part.content)
            elif isinstance(event.part, wire.ThinkingPart):
                yield from self._more(ReasoningPiece, event.part.content)
        elif isinstance(event, wire.PartDeltaEvent):
            if isinstance(event.delta, wire.TextPartDelta):
                yield from self._more(TextPiece, event.delta.content_delta)
            elif isinstance(event.delta, wire.ThinkingPartDelta):
                yield from self._more(ReasoningPiece, event.delta.content_delta)

    def rest(self) -> Iterator[StreamPiece]:
        """What is left at the end."""
        for kind, joined in self._joined.items():
            if left := joined.rest():
                yield kind(left)

    def _more(self, kind: type[TextPiece] | type[ReasoningPiece], text: str | None) -> Iterator[StreamPiece]:
        if ready := self._joined[kind].add(text or ""):
            yield kind(ready)


def from_wire(response: "wire.ModelResponse", provider: str, cost: float | None) -> Completion:
    """The whole answer."""
    parts = tuple(_parts(response, provider))
    called = any(isinstance(part, CallPart) for part in parts)
    finish = _FINISHES.get(response.finish_reason, "other")
    usage = response.usage
    return Completion(
        parts=parts,
        finish="calls" if called and finish == "stop" else finish,
        spent=TokenUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cache_read_tokens,
            cost=cost,
        ),
    )


def _parts(response: "wire.ModelResponse", provider: str) -> Iterator[Part]:
    from pydantic_ai import messages as wire  # noqa: PLC0415

    for part in response.parts:
        if isinstance(part, wire.TextPart):
            if part.content:
                yield TextPart(text=fix_surrogates(part.content), detail=_detail(part, provider))
        elif isinstance(part, wire.ThinkingPart):
            if part.content or part.signature:
                yield ReasoningPart(text=fix_surrogates(part.content), detail=_reasoning_detail(part, provider))
        elif isinstance(part, wire.ToolCallPart):
            yield _call(part, provider)


def _call(part: "wire.ToolCallPart[Any]", provider: str) -> CallPart:
    given = part.tool_call_id
    return CallPart(
        tool_call_id="",
        name=fix_surrogates(part.tool_name),
        args=_arguments(part.args),
        provider_call_id=fix_surrogates(given) if given and not given.startswith(_MADE_UP) else None,
        detail=_detail(part, provider),
    )


def _arguments(args: Any) -> Any:
    """As JSON says it; the text itself where it is none. No text at all is no arguments."""
    if not isinstance(args, str):
        return fix_json_surrogates(args) if args is not None else {}
    if not args.strip():
        return {}
    try:
        return msgspec.json.decode(args.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return fix_surrogates(args)


def _reasoning_detail(part: "wire.ThinkingPart", provider: str) -> Detail | None:
    """None where it came as plain text between tags: models are not to see such thoughts again."""
    if part.signature is None and part.id in {None, "content"} and not part.provider_details:
        return None
    return _detail(part, provider)


def _detail(part: Any, provider: str) -> Detail | None:
    values = {name: value for name in _KEPT if (value := getattr(part, name, None))}
    return Detail(provider=provider, values=_plain(values)) if values else None


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """As JSON can keep them."""
    return fix_json_surrogates(msgspec.to_builtins(values, enc_hook=str, str_keys=True))
