"""What a provider answers comes through whole, however it is cut up on its way."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.asking import answered, found, heard, pieces, question, words
from tests.wires import anthropic_wire, openai_wire
from tests.wires.server import Answer, WireServer, split

from handrail.models.base import CallPiece, Completion, ReasoningPiece, TextPiece
from handrail.models.provider_model import compute_cost
from handrail.protocol.messages import CallPart, ReasoningPart, TextPart

TEXT = "Grüße, 世界 🙂: the whole text."


def test_text_comes_in_pieces_and_then_whole(wire: WireServer) -> None:
    wire.says(TEXT)
    said = pieces(wire)
    assert [type(piece) for piece in said] == [TextPiece] * 3 + [Completion]
    assert words(said) == TEXT
    assert said[-1].parts == (TextPart(text=TEXT),)
    assert said[-1].finish == "stop"


def test_calls_that_come_in_many_parts_and_by_turns_are_put_together(wire: WireServer) -> None:
    given = [(f"id{number}", "read", json.dumps({"path": f"file {number}", "more": [number]})) for number in range(4)]
    wire.says("I look.", calls=given, parts=40)
    said = pieces(wire)
    assert [piece.name for piece in said if isinstance(piece, CallPiece)] == ["read"] * 4
    calls = [part for part in said[-1].parts if isinstance(part, CallPart)]
    assert [call.args for call in calls] == [{"path": f"file {number}", "more": [number]} for number in range(4)]
    assert [call.provider_call_id for call in calls] == ["id0", "id1", "id2", "id3"]
    assert [call.tool_call_id for call in calls] == [""] * 4
    assert said[-1].finish == "calls"


def test_reasoning_comes_before_the_text_with_what_its_provider_wants_back(wire: WireServer) -> None:
    wire.says("So.", reasoning="First this, then that.")
    said = pieces(wire)
    assert "".join(piece.text for piece in said if isinstance(piece, ReasoningPiece)) == "First this, then that."
    thought = said[-1].parts[0]
    assert isinstance(thought, ReasoningPart)
    assert thought.text == "First this, then that."
    assert thought.detail is not None


@pytest.mark.parametrize("arguments", ['{"path": "a', "{path: a}", '{"a": NaN}', "<x>", '{"a": "\\ud83d"}', "}{"])
def test_arguments_that_are_no_json_are_given_as_they_came(wire: WireServer, arguments: str) -> None:
    wire.says(calls=[("id1", "read", arguments)])
    [call] = answered(wire).parts
    assert isinstance(call, CallPart)
    assert call.args == arguments


def test_no_arguments_are_an_empty_object_and_other_json_stays_what_it_is(wire: WireServer) -> None:
    wire.says(calls=[("id1", "read", ""), ("id2", "read", "[1]"), ("id3", "read", '"x"')])
    assert [call.args for call in answered(wire).parts] == [{}, [1], "x"]


def test_halves_of_characters_are_joined_or_replaced(wire: WireServer) -> None:
    whole = wire.__class__.__name__
    events = openai_wire.events if whole == "OpenAIWire" else anthropic_wire.events
    stream = b"".join(events("A1B C2D E", parts=9))
    # The first escape is one character in two pieces, the second a half with nothing behind it.
    stream = stream.replace(b'"1"', b'"\\ud83d"').replace(b'"B"', b'"\\ude42"').replace(b'"2"', b'"\\ud83d"')
    wire.sends(Answer(pieces=(stream,)))
    said = pieces(wire)
    assert words(said) == "A🙂 C\ufffdD E"
    assert said[-1].parts == (TextPart(text="A🙂 C\ufffdD E"),)


@given(data=st.data())
def test_wherever_the_bytes_are_cut_the_answer_is_the_same(data: st.DataObject) -> None:
    """One connection serves all examples: what is cut is the stream, also inside of characters and of line ends."""
    kind = data.draw(st.sampled_from([openai_wire, anthropic_wire]))
    whole = b"".join(_full(kind))
    places = data.draw(st.lists(st.integers(1, len(whole) - 1), max_size=60))
    _expect_same(kind, split([whole], places))


@pytest.mark.parametrize("kind", [openai_wire, anthropic_wire], ids=["openai", "anthropic"])
def test_single_bytes_are_enough(kind) -> None:
    whole = b"".join(_full(kind))
    _expect_same(kind, split([whole], range(len(whole))))


@pytest.mark.parametrize("kind", [openai_wire, anthropic_wire], ids=["openai", "anthropic"])
def test_line_ends_may_be_of_any_kind(kind) -> None:
    whole = b"".join(_full(kind)).replace(b"\n", b"\r\n")
    _expect_same(kind, (b": a remark\r\n\r\n", *split([whole], range(0, len(whole), 7))))


def test_a_huge_answer_comes_through(wire: WireServer) -> None:
    long = "0123456789abcdef" * 65536
    wire.says(long, calls=[("id1", "read", json.dumps({"path": long}))], parts=16)
    text, call = answered(wire).parts
    assert text.text == long
    assert call.args == {"path": long}


@pytest.mark.parametrize(
    ("kind", "reason", "finish"),
    [
        (openai_wire, "length", "length"),
        (openai_wire, "content_filter", "filtered"),
        (openai_wire, "stop", "stop"),
        (anthropic_wire, "max_tokens", "length"),
        (anthropic_wire, "refusal", "filtered"),
        (anthropic_wire, "model_context_window_exceeded", "length"),
        (anthropic_wire, "a_reason_of_next_year", "other"),
    ],
)
def test_why_it_ended_is_told(kind, reason: str, finish: str) -> None:
    wire = _wire(kind)
    wire.says("Some", finish=reason)
    assert answered(wire).finish == finish
    wire.close()


def test_calls_that_end_with_a_plain_stop_are_calls_all_the_same(openai_wire) -> None:
    openai_wire.says(calls=[("id1", "read", "{}")], finish="stop")
    assert answered(openai_wire).finish == "calls"


def test_tokens_and_cached_tokens_are_counted(openai_wire, anthropic_wire) -> None:
    from pydantic_ai.usage import RequestUsage

    cached = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    openai_wire.says("x", usage={**cached, "prompt_tokens_details": {"cached_tokens": 60}})
    spent = answered(openai_wire).spent
    assert (spent.input_tokens, spent.cached_tokens, spent.output_tokens, spent.cost) == (100, 60, 7, None)
    anthropic_wire.says("x", usage={"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 1})
    spent = answered(anthropic_wire).spent
    assert (spent.input_tokens, spent.cached_tokens, spent.output_tokens) == (100, 60, 5)
    uncached = compute_cost(RequestUsage(input_tokens=100, output_tokens=5), "anthropic", "claude-sonnet-5-5")
    assert 0 < (spent.cost or 0) < (uncached or 0)


def test_the_window_is_known_once_the_model_was_asked(anthropic_wire) -> None:
    anthropic_wire.says("ok")
    model = found(anthropic_wire)
    assert model.window == 200_000

    async def ask() -> None:
        await heard(model, question())
        await model.close()

    asyncio.run(ask())
    assert model.window == 1_000_000


def _wire(kind) -> WireServer:
    return openai_wire.OpenAIWire() if kind is openai_wire else anthropic_wire.AnthropicWire()


def _full(kind):
    calls = [("id1", "read", '{"path": "ü"}'), ("id2", "read", '{"path": "🙂"}')]
    return kind.events(TEXT, reasoning="Hm … 🤔", calls=calls)


def _expect_same(kind, cut: tuple[bytes, ...]) -> None:
    wire = _wire(kind)
    try:
        wire.sends(Answer(pieces=cut))
        said = pieces(wire)
    finally:
        wire.close()
    assert words(said) == TEXT
    thought, text, *calls = said[-1].parts
    assert (thought.text, text.text) == ("Hm … 🤔", TEXT)
    assert [call.args for call in calls] == [{"path": "ü"}, {"path": "🙂"}]
