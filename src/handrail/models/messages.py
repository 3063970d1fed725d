"""Converts our messages to those of pydantic-ai.

pydantic-ai is optional, so only code that connects imports this module.
"""

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace
from pydantic_ai import messages as wire
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from handrail.models.base import (
    CallPiece,
    Completion,
    ModelRequest,
    ReasoningPiece,
    StreamPiece,
    TextPiece,
    TokenUsage,
)
from handrail.models.providers import ModelConnection
from handrail.protocol.messages import (
    AssistantMessage,
    CallPart,
    CallResult,
    Detail,
    Finish,
    Message,
    Part,
    ReasoningPart,
    ResultsMessage,
    SystemMessage,
    TextPart,
    UserMessage,
)
from handrail.protocol.results import Attachment

_NOTHING = "(nothing)"
"""Wires refuse an empty text."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64
_PICTURE_TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""Every wire takes these."""
_NO_PICTURE = "[a picture was left out; this model accepts none]"
_FINISHES: dict[str | None, Finish] = {
    "stop": "stop",
    "tool_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}
_GENERATED_ID = "pyd_ai_"
"""Prefix of ids that pydantic-ai made, because the server gave none."""
_DETAILS = ("id", "signature", "provider_details")


# Requests. The same messages give the same bytes, so that the cache of the provider holds.


def to_wire(request: ModelRequest, provider: str, connection: ModelConnection) -> list[wire.ModelMessage]:
    """The messages of a request.

    Consecutive messages of the person, the loop and the tools become one, since most wires want both sides to take
    turns. Details of parts go only to the provider that gave them."""
    ids, system = _WireIds(provider), connection.model.system
    sent: list[wire.ModelMessage] = []
    for is_assistant, run in groupby(filter(_is_sent, request.messages), lambda one: isinstance(one, AssistantMessage)):
        if is_assistant:
            replies = (message for message in run if isinstance(message, AssistantMessage))
            sent += [
                wire.ModelResponse(parts=list(_convert_reply(reply, ids, system)), provider_name=system)
                for reply in replies
            ]
        else:
            sent.append(wire.ModelRequest(parts=list(_convert_inputs(run, ids, connection.rich_results))))
    return sent


def to_parameters(request: ModelRequest) -> ModelRequestParameters:
    """The system prompt and the tools of a request, with unchanged schemas."""
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.schema, strict=False
            )
            for tool in request.tools
        ],
        instruction_parts=[wire.InstructionPart(content=fix_surrogates(request.system))] if request.system else None,
    )


class _WireIds:
    """The ids of calls on the wire: the provider's own if the request goes to the same provider, else ours.

    Small servers give every call the same id. Only the first call keeps it."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def choose(self, call: CallPart, model: str) -> str:
        theirs = call.provider_call_id if model.partition(":")[0] == self.provider else None
        chosen = theirs if theirs and theirs not in self._taken else call.tool_call_id
        self._taken.add(chosen)
        self._ids[call.tool_call_id] = chosen
        return chosen

    def get(self, result: CallResult) -> str:
        return self._ids.get(result.tool_call_id, result.tool_call_id)


def _is_sent(message: Message) -> bool:
    """Not a system message, and not a reply that only holds reasoning."""
    if isinstance(message, AssistantMessage):
        return any(map(_is_visible, message.parts))
    return not isinstance(message, SystemMessage)


def _is_visible(part: Part) -> bool:
    return isinstance(part, CallPart) or (isinstance(part, TextPart) and bool(part.text.strip()))


def _convert_reply(message: AssistantMessage, ids: _WireIds, system: str) -> Iterator[wire.ModelResponsePart]:
    for part in message.parts:
        is_same_provider = part.detail is not None and part.detail.provider == ids.provider
        if not (is_same_provider if isinstance(part, ReasoningPart) else _is_visible(part)):
            continue
        detail: dict[str, Any] = {}
        if part.detail is not None and is_same_provider:
            detail = {"provider_name": system, **part.detail.values}
        if isinstance(part, TextPart):
            yield wire.TextPart(content=fix_surrogates(part.text), **detail)
        elif isinstance(part, ReasoningPart):
            yield wire.ThinkingPart(content=fix_surrogates(part.text), **detail)
        else:
            name, args, wire_id = _to_name(part.name), _to_object(part.args), ids.choose(part, message.model)
            yield wire.ToolCallPart(tool_name=name, args=args, tool_call_id=wire_id, **detail)


def _to_name(called: str) -> str:
    """A name that every wire takes. A model may invent others, and a wire refuses a transcript that has one."""
    return _NOT_IN_NAMES.sub("_", called)[:_MAX_NAME_CHARS] or "_"


def _to_object(args: Any) -> dict[str, Any]:
    """The arguments as an object. Anything else is wrapped, since wires take only objects."""
    if isinstance(args, dict):
        return fix_json_surrogates(args)
    text = args if isinstance(args, str) else msgspec.json.encode(args).decode()
    return {"INVALID_JSON": fix_surrogates(text)}


def _convert_inputs(messages: Iterable[Message], ids: _WireIds, rich: bool) -> Iterator[wire.ModelRequestPart]:
    pictures: list[wire.UserContent] = []
    for are_results, run in groupby(messages, lambda message: isinstance(message, ResultsMessage)):
        if are_results:
            results = [one for message in run if isinstance(message, ResultsMessage) for one in message.results]
            yield from (_convert_result(result, ids, rich) for result in results)
            pictures += [] if rich else [part for result in results for part in _caption_pictures(result)]
        else:
            spoken = list(run)
            texts = [fix_surrogates(getattr(message, "text", "")) for message in spoken]
            text = "\n\n".join(text for text in texts if text.strip()) or _NOTHING
            attached = (_list_pictures(message) for message in spoken if isinstance(message, UserMessage))
            pictures += [_convert_picture(one) for shown in attached for one in shown]
            yield wire.UserPromptPart(content=[*pictures, text] if pictures else text)
            pictures = []
    if pictures:
        yield wire.UserPromptPart(content=pictures)


def _convert_result(result: CallResult, ids: _WireIds, rich: bool) -> "wire.ToolReturnPart[Any]":
    text = fix_surrogates(result.content) if result.content.strip() else _NOTHING
    pictures = [_convert_picture(one) for one in _list_pictures(result)] if rich else []
    return wire.ToolReturnPart(
        tool_name=_to_name(result.name),
        content=[text, *pictures] if pictures else text,
        tool_call_id=ids.get(result),
        outcome="failed" if rich and not result.ok else "success",
    )


# Pictures.


def has_pictures(request: ModelRequest) -> bool:
    return any(_list_pictures(one) for message in request.messages for one in _list_holders(message))


def drop_pictures(request: ModelRequest) -> ModelRequest:
    """The request with a line of text instead of each picture."""
    return replace(request, messages=tuple(map(_drop_message_pictures, request.messages)))


def _drop_message_pictures(message: Message) -> Message:
    if isinstance(message, UserMessage) and _list_pictures(message):
        return replace(message, text=f"{message.text}\n{_NO_PICTURE}", attachments=())
    if not isinstance(message, ResultsMessage):
        return message
    results = (
        replace(result, content=f"{result.content}\n{_NO_PICTURE}", attachments=())
        if _list_pictures(result)
        else result
        for result in message.results
    )
    return ResultsMessage(results=tuple(results))


def _list_holders(message: Message) -> tuple[CallResult | UserMessage, ...]:
    if isinstance(message, ResultsMessage):
        return message.results
    return (message,) if isinstance(message, UserMessage) else ()


def _list_pictures(holder: CallResult | UserMessage) -> list[Attachment]:
    return [one for one in holder.attachments if one.mime in _PICTURE_TYPES and one.content]


def _convert_picture(attachment: Attachment) -> wire.BinaryContent:
    return wire.BinaryContent(data=b64decode(attachment.content or ""), media_type=attachment.mime)


def _caption_pictures(result: CallResult) -> Iterator[wire.UserContent]:
    for one in _list_pictures(result):
        yield f"{fix_surrogates(one.path)}, from {result.name}:"
        yield _convert_picture(one)


# Responses.


class PieceBuilder:
    """Builds pieces of whole characters from the events of a stream."""

    def __init__(self) -> None:
        self._joiners: dict[type, SurrogateJoiner] = {TextPiece: SurrogateJoiner(), ReasoningPiece: SurrogateJoiner()}

    def build(self, event: Any) -> Iterator[StreamPiece]:
        match event:
            case wire.PartStartEvent(part=wire.ToolCallPart(tool_name=name)):
                yield CallPiece(fix_surrogates(name))
            case wire.PartStartEvent(part=wire.TextPart(content=text)):
                yield from self._add(TextPiece, text)
            case wire.PartStartEvent(part=wire.ThinkingPart(content=text)):
                yield from self._add(ReasoningPiece, text)
            case wire.PartDeltaEvent(delta=wire.TextPartDelta(content_delta=text)):
                yield from self._add(TextPiece, text)
            case wire.PartDeltaEvent(delta=wire.ThinkingPartDelta(content_delta=text)):
                yield from self._add(ReasoningPiece, text)
            case _:
                pass

    def rest(self) -> Iterator[StreamPiece]:
        """The pieces that are left at the end."""
        for kind, joiner in self._joiners.items():
            if left := joiner.rest():
                yield kind(left)

    def _add(self, kind: type[TextPiece] | type[ReasoningPiece], text: str | None) -> Iterator[StreamPiece]:
        if ready := self._joiners[kind].add(text or ""):
            yield kind(ready)


def from_wire(response: wire.ModelResponse, provider: str, cost: float | None) -> Completion:
    parts = tuple(_convert_parts(response, provider))
    has_calls = any(isinstance(part, CallPart) for part in parts)
    finish, usage = _FINISHES.get(response.finish_reason, "other"), response.usage
    return Completion(
        parts=parts,
        finish="calls" if has_calls and finish == "stop" else finish,
        spent=TokenUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cache_read_tokens,
            cost=cost,
        ),
    )


def _convert_parts(response: wire.ModelResponse, provider: str) -> Iterator[Part]:
    for part in response.parts:
        if isinstance(part, wire.TextPart):
            if part.content:
                yield TextPart(text=fix_surrogates(part.content), detail=_build_detail(part, provider))
        elif isinstance(part, wire.ThinkingPart):
            if part.content or part.signature:
                # Plain text between tags has no detail: models are not to see such reasoning again.
                is_plain = part.signature is None and part.id in {None, "content"} and not part.provider_details
                detail = None if is_plain else _build_detail(part, provider)
                yield ReasoningPart(text=fix_surrogates(part.content), detail=detail)
        elif isinstance(part, wire.ToolCallPart):
            given = part.tool_call_id
            yield CallPart(
                tool_call_id="",
                name=fix_surrogates(part.tool_name),
                args=_parse_arguments(part.args),
                provider_call_id=fix_surrogates(given) if given and not given.startswith(_GENERATED_ID) else None,
                detail=_build_detail(part, provider),
            )


def _parse_arguments(args: Any) -> Any:
    """The arguments as JSON. Text that is not JSON stays text. An empty text means no arguments."""
    if not isinstance(args, str):
        return fix_json_surrogates(args) if args is not None else {}
    if not args.strip():
        return {}
    try:
        return msgspec.json.decode(args.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return fix_surrogates(args)


def _build_detail(part: Any, provider: str) -> Detail | None:
    values = {name: value for name in _DETAILS if (value := getattr(part, name, None))}
    if not values:
        return None
    return Detail(
        provider=provider, values=fix_json_surrogates(msgspec.to_builtins(values, enc_hook=str, str_keys=True))
    )


# Surrogates: neither the journal nor a wire can hold half a character.


def fix_surrogates(text: str) -> str:
    """Join surrogate pairs, and replace single surrogates by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def fix_json_surrogates(value: Any) -> Any:
    """Fix every text in a JSON value."""
    if isinstance(value, str):
        return fix_surrogates(value)
    if isinstance(value, list):
        return [fix_json_surrogates(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {fix_surrogates(str(name)): fix_json_surrogates(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


class SurrogateJoiner:
    """Fixes a text that comes in pieces. A first half waits for the next piece."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        text = self._half + piece
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return fix_surrogates(text[: len(text) - len(self._half)])

    def rest(self) -> str:
        left, self._half = fix_surrogates(self._half), ""
        return left
