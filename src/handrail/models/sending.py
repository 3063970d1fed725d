"""The transcript as a provider is sent it: the same bytes for the same messages every time, so that its cache holds."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.models.characters import fix_json_surrogates, fix_surrogates
from handrail.models.model import ModelRequest
from handrail.models.pictures import list_pictures, to_picture
from handrail.protocol.messages import (
    AssistantMessage,
    CallPart,
    CallResult,
    Detail,
    Message,
    Part,
    ReasoningPart,
    ResultsMessage,
    SystemMessage,
    TextPart,
    UserMessage,
)

if TYPE_CHECKING:
    from pydantic_ai import messages as wire
    from pydantic_ai.models import ModelRequestParameters

    from handrail.models.connection import ModelConnection

_NOTHING = "(nothing)"
"""Wires refuse an empty text."""
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64


def to_wire(request: ModelRequest, provider: str, connection: "ModelConnection") -> "list[wire.ModelMessage]":
    """The messages of a question in pydantic-ai's words.

    What the person, the loop and the tools said in a row is one message, since most wires want the two sides to
    take turns. What another provider gave with its parts stays here: nobody else can read it."""
    from pydantic_ai.messages import ModelRequest as Asked  # noqa: PLC0415
    from pydantic_ai.messages import ModelResponse as Said  # noqa: PLC0415

    ids, system = _WireIds(provider), connection.model.system
    sent: list[wire.ModelMessage] = []
    for theirs, run in groupby(_worth_sending(request.messages), _is_assistant):
        if theirs:
            said = (message for message in run if isinstance(message, AssistantMessage))
            sent += [Said(parts=list(_said(message, ids, system)), provider_name=system) for message in said]
        else:
            sent.append(Asked(parts=list(_asked(run, ids, connection.rich_results))))
    return sent


def to_parameters(request: ModelRequest) -> "ModelRequestParameters":
    """System prompt and tools of a question; schemas go as they are."""
    from pydantic_ai.messages import InstructionPart  # noqa: PLC0415
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.schema, strict=False
            )
            for tool in request.tools
        ],
        instruction_parts=[InstructionPart(content=fix_surrogates(request.system))] if request.system else None,
    )


class _WireIds:
    """The id of each call on the wire: the provider's own where it is sent back to it, else ours.

    Small servers give every call the same id; only the first keeps it."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self._of: dict[str, str] = {}
        self._taken: set[str] = set()

    def name(self, call: CallPart, model: str) -> str:
        theirs = call.provider_call_id if _provider_of(model) == self.provider else None
        chosen = theirs if theirs and theirs not in self._taken else call.tool_call_id
        self._taken.add(chosen)
        self._of[call.tool_call_id] = chosen
        return chosen

    def of(self, result: CallResult) -> str:
        return self._of.get(result.tool_call_id, result.tool_call_id)


def _provider_of(model: str) -> str:
    return model.partition(":")[0]


def _is_assistant(message: Message) -> bool:
    return isinstance(message, AssistantMessage)


def _worth_sending(messages: Iterable[Message]) -> Iterator[Message]:
    for message in messages:
        if isinstance(message, SystemMessage):
            continue
        if not isinstance(message, AssistantMessage) or any(_is_said(part) for part in message.parts):
            yield message


def _is_said(part: Part) -> bool:
    """Thoughts alone are nothing that was said."""
    return isinstance(part, CallPart) or (isinstance(part, TextPart) and bool(part.text.strip()))


def _is_sent(part: Part, provider: str) -> bool:
    if isinstance(part, ReasoningPart):
        return _values(part.detail, provider) is not None
    return _is_said(part)


def _values(detail: Detail | None, provider: str) -> dict[str, Any] | None:
    return detail.values if detail is not None and detail.provider == provider else None


def _said(message: AssistantMessage, ids: _WireIds, system: str) -> "Iterator[wire.ModelResponsePart]":
    from pydantic_ai import messages as wire  # noqa: PLC0415

    provider = ids.provider
    for part in message.parts:
        if not _is_sent(part, provider):
            continue
        values = _values(part.detail, provider)
        given: dict[str, Any] = {"provider_name": system, **values} if values is not None else {}
        if isinstance(part, TextPart):
            yield wire.TextPart(content=fix_surrogates(part.text), **given)
        elif isinstance(part, ReasoningPart):
            yield wire.ThinkingPart(content=fix_surrogates(part.text), **given)
        else:
            wire_id = ids.name(part, message.model)
            yield wire.ToolCallPart(tool_name=_name(part.name), args=_arguments(part), tool_call_id=wire_id, **given)


def _name(called: str) -> str:
    """A name that every wire takes. Models also call what is none; were that sent back, no question after it would be
    answered."""
    return _NO_NAME.sub("_", called)[:_MAX_NAME_CHARS] or "_"


def _arguments(call: CallPart) -> dict[str, Any]:
    """Always an object, as the wires want it; what was none is wrapped, and its result says what was wrong."""
    args: Any = call.args
    if isinstance(args, dict):
        return fix_json_surrogates(args)
    text = args if isinstance(args, str) else msgspec.json.encode(args).decode()
    return {"INVALID_JSON": fix_surrogates(text)}


def _asked(messages: Iterable[Message], ids: _WireIds, rich: bool) -> "Iterator[wire.ModelRequestPart]":
    from pydantic_ai import messages as wire  # noqa: PLC0415

    pictures: list[wire.UserContent] = []
    for told, run in groupby(messages, lambda message: isinstance(message, ResultsMessage)):
        if told:
            results = [one for message in run if isinstance(message, ResultsMessage) for one in message.results]
            yield from (_result(result, ids, rich) for result in results)
            pictures += [] if rich else [part for result in results for part in _pictures_beside(result)]
        else:
            spoken = list(run)
            texts = [fix_surrogates(getattr(message, "text", "")) for message in spoken]
            said = "\n\n".join(text for text in texts if text.strip()) or _NOTHING
            theirs = (list_pictures(message) for message in spoken if isinstance(message, UserMessage))
            pictures += [to_picture(one) for shown in theirs for one in shown]
            yield wire.UserPromptPart(content=[*pictures, said] if pictures else said)
            pictures = []
    if pictures:
        yield wire.UserPromptPart(content=pictures)


def _result(result: CallResult, ids: _WireIds, rich: bool) -> "wire.ToolReturnPart[Any]":
    from pydantic_ai.messages import ToolReturnPart  # noqa: PLC0415

    text = fix_surrogates(result.content) if result.content.strip() else _NOTHING
    pictures = [to_picture(one) for one in list_pictures(result)] if rich else []
    return ToolReturnPart(
        tool_name=_name(result.name),
        content=[text, *pictures] if pictures else text,
        tool_call_id=ids.of(result),
        outcome="failed" if rich and not result.ok else "success",
    )


def _pictures_beside(result: CallResult) -> "Iterator[wire.UserContent]":
    for one in list_pictures(result):
        yield f"{fix_surrogates(one.path)}, from {result.name}:"
        yield to_picture(one)
