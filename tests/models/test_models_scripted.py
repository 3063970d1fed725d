"""The model that plays a script."""

import asyncio

import pytest
from tests.models.asking import assistant, heard, question, words

from handrail.models.base import ModelError, ModelRequest, TextPiece
from handrail.models.scripted import ScriptedModel, ScriptedReply

BUSY = ModelError("UNAVAILABLE", "busy", retryable=True)


def hear(model: ScriptedModel, request: ModelRequest | None = None):
    return asyncio.run(heard(model, request or question()))


def test_it_goes_by_the_talk_so_that_another_one_goes_on_after_a_restart() -> None:
    script = [ScriptedReply(text="one"), ScriptedReply(text="two")]
    first = hear(ScriptedModel(script))[-1]
    second = hear(ScriptedModel(script), question(assistant(*first.parts)))
    assert words(second) == "two"


def test_a_line_may_be_made_of_the_question() -> None:
    model = ScriptedModel([lambda asked: ScriptedReply(text=asked.messages[-1].text.upper())])
    assert words(hear(model)) == "HELLO"


def test_it_fails_as_often_as_it_is_told_to_and_then_answers() -> None:
    model = ScriptedModel([ScriptedReply(text="a b c", fails=(BUSY, BUSY), fails_after=1)])
    for _ in range(2):
        with pytest.raises(ModelError, match="busy"):
            hear(model)
    assert words(hear(model)) == "a b c"


def test_it_fails_after_so_many_pieces() -> None:
    async def listen() -> list[str]:
        said: list[str] = []
        with pytest.raises(ModelError):  # noqa: PT012
            async for piece in ScriptedModel([ScriptedReply(text="a b c", fails=BUSY, fails_after=2)]).stream(
                question()
            ):
                assert isinstance(piece, TextPiece)
                said.append(piece.text)
        return said

    assert asyncio.run(listen()) == ["a ", "b "]


def test_a_test_can_hold_it_between_two_pieces() -> None:
    async def listen() -> list[str]:
        gate, said = asyncio.Event(), []

        async def hold(place: int) -> None:
            if place == 1:
                said.append("held")
                await gate.wait()

        async for piece in ScriptedModel([ScriptedReply(text="a b", waits=hold)]).stream(question()):
            if isinstance(piece, TextPiece):
                said.append(piece.text)
                gate.set()
        return said

    assert asyncio.run(listen()) == ["a ", "held", "b"]


def test_after_the_last_line_it_says_so() -> None:
    with pytest.raises(ModelError, match="The script has 0 lines"):
        hear(ScriptedModel([]))
