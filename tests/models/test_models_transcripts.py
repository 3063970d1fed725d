"""Any talk that a loop may have had is valid on both wires, and its beginning stays the same bytes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.models.asking import PICTURE, assistant, call, many, question, results, text, user
from tests.wires.anthropic_wire import AnthropicWire
from tests.wires.openai_wire import OpenAIWire
from tests.wires.server import WireServer

from handrail.protocol.messages import Detail, Message, ReasoningPart, ResultsMessage, SummaryMessage, TextPart
from handrail.protocol.results import Attachment

_texts = st.text(st.characters(codec="utf-8"), max_size=12)
_args = st.dictionaries(_texts, st.one_of(_texts, st.integers(), st.none()), max_size=3) | _texts | st.integers()


@st.composite
def talks(draw: st.DrawFn) -> list[Message]:
    """Any talk that a loop may have had, with models of any provider."""
    talk: list[Message] = [user(draw(_texts))]
    if draw(st.booleans()):
        talk.insert(0, SummaryMessage(text=draw(_texts), kept_from=0))
    for turn in range(draw(st.integers(0, 4))):
        model = draw(st.sampled_from(["openai:gpt-4o", "anthropic:claude-sonnet-5-5", "google:gemini-3-pro"]))
        provider = model.partition(":")[0]
        parts: list[Any] = []
        if draw(st.booleans()):
            values = {"id": "reasoning"} if provider == "openai" else {"signature": "c2ln"}
            parts.append(ReasoningPart(text=draw(_texts), detail=Detail(provider=provider, values=values)))
        if draw(st.booleans()):
            parts.append(TextPart(text=draw(_texts)))
        numbers = [turn * 16 + number for number in range(draw(st.integers(0, 3)))]
        ids = st.sampled_from([None, "", "call_0", "toolu_1"])
        parts += [call(number, draw(_args), provider_call_id=draw(ids)) for number in numbers]
        talk.append(assistant(*parts, model=model))
        if numbers:
            talk.append(_told(draw, numbers))
        if not numbers or draw(st.booleans()):
            talk.append(user(draw(_texts), by_loop=draw(st.booleans())))
    return talk


def _told(draw: st.DrawFn, numbers: list[int]) -> ResultsMessage:
    return results(*numbers, ok=draw(st.booleans()), content=draw(_texts), attachments=draw(st.sampled_from(_WITH)))


_WITH: list[tuple[Attachment, ...]] = [(), (PICTURE,)]


def _unmarked(value: Any) -> Any:
    """Without what goes along with the newest messages only: marks of the cache, and the empty thoughts that servers
    which think want to see beside the calls of the turn that is on."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    if isinstance(value, dict):
        passing = {"cache_control", *(name for name in ("reasoning", "reasoning_content") if value.get(name) == "")}
        return {name: _unmarked(one) for name, one in value.items() if name not in passing}
    return value


@given(talk=talks(), wire_class=st.sampled_from([OpenAIWire, AnthropicWire]))
def test_any_talk_is_valid_and_more_of_it_leaves_the_beginning_as_it_was(talk: list[Message], wire_class) -> None:
    wire = wire_class()
    try:
        _expect_valid_and_stable(wire, talk)
    finally:
        wire.close()


def _expect_valid_and_stable(wire: WireServer, talk: list[Message]) -> None:
    if isinstance(talk[-1], ResultsMessage):
        more = [*talk, assistant(text("Done."), model=wire.model), user("next")]
    else:
        more = [*talk, assistant(text("Yes."), call(999), model=wire.model), results(999)]
    for _ in range(3):
        wire.says("ok")
    requests = [question(*talk), question(*talk), question(*more)]
    list(many(wire, *requests))
    assert wire.problems == []
    first, again, longer = (received.body for received in wire.received)
    assert wire.received[0].raw == wire.received[1].raw
    assert first == again
    start = _unmarked(longer["messages"])[: len(first["messages"])]
    assert _unmarked(first["messages"]) == start
