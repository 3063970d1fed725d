"""Gemini's wire, which is a third kind: no ids of its own, signatures at the calls."""

import asyncio
import json
from contextlib import aclosing

import pytest
from tests.models.asking import (
    answered,
    assistant,
    call,
    failure,
    found,
    heard,
    pieces,
    question,
    results,
    text,
    user,
    words,
)
from tests.wires.gemini_wire import events
from tests.wires.server import Answer, split

from handrail.models.base import CallPiece, ReasoningPiece, TextPiece
from handrail.protocol.messages import CallPart, ReasoningPart

TEXT = "Grüße, 世界 🙂."


def test_an_answer_comes_through(gemini_wire) -> None:
    whole = b"".join(events(TEXT, reasoning="Hm.", calls=[("g1", "read", '{"path": "ü"}')]))
    gemini_wire.sends(Answer(pieces=split([whole], range(0, len(whole), 5))))
    said = pieces(gemini_wire)
    assert words(said) == TEXT
    assert {type(piece) for piece in said[:-1]} == {TextPiece, ReasoningPiece, CallPiece}
    answer = said[-1]
    [made] = [part for part in answer.parts if isinstance(part, CallPart)]
    assert (made.args, made.provider_call_id) == ({"path": "ü"}, "g1")
    assert made.detail is not None
    assert (answer.finish, answer.spent.input_tokens, answer.spent.output_tokens) == ("calls", 20, 5)
    assert answer.spent.cost


def test_it_gets_its_signatures_and_ids_back(gemini_wire) -> None:
    gemini_wire.says("I look.", calls=[("g1", "read", '{"path": "a"}')])
    said = answered(gemini_wire).parts
    made = [
        CallPart(tool_call_id="call-1-00", name=part.name, args=part.args, provider_call_id="g1", detail=part.detail)
        if isinstance(part, CallPart)
        else part
        for part in said
        if not isinstance(part, ReasoningPart)
    ]
    gemini_wire.says("ok")
    pieces(gemini_wire, question(user("go"), assistant(*made, model=gemini_wire.model), results(1)))
    [sent] = [part for part in gemini_wire.received[1].body["contents"][1]["parts"] if "functionCall" in part]
    assert sent["thoughtSignature"] == "c2lnbmF0dXJl"
    assert sent["functionCall"] == {"id": "g1", "name": "read", "args": {"path": "a"}}


def test_a_talk_that_began_with_another_provider_goes_on(gemini_wire) -> None:
    gemini_wire.says("ok")
    talk = user("go"), assistant(text("I look."), call(1), call(2)), results(1, 2), user("and?", by_loop=True)
    pieces(gemini_wire, question(*talk))
    assert "call-1-00" in json.dumps(gemini_wire.received[0].body)


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (429, "UNAVAILABLE", True),
        (503, "UNAVAILABLE", True),
        (403, "UNAVAILABLE", False),
        (404, "NOT_FOUND", False),
        (400, "INVALID_ARGUMENT", False),
    ],
)
def test_failures(gemini_wire, status: int, code: str, retryable: bool) -> None:
    gemini_wire.refuses(status)
    error = failure(gemini_wire)
    assert (error.code, error.retryable) == (code, retryable)
    assert len(gemini_wire.received) == 1


def test_a_key_that_is_not_valid_is_refused_with_another_code_here(gemini_wire) -> None:
    gemini_wire.refuses(400, "API key not valid. Please pass a valid API key.")
    error = failure(gemini_wire)
    assert error.message == "google refused the key. Check GEMINI_API_KEY or GOOGLE_API_KEY."
    assert error.code == "UNAVAILABLE"


def test_a_talk_that_is_too_long(gemini_wire) -> None:
    gemini_wire.refuses(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).")
    assert failure(gemini_wire).code == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("ending", ["end", "drop"])
def test_an_answer_that_breaks_off_is_no_answer(gemini_wire, ending) -> None:
    gemini_wire.sends(Answer(pieces=tuple(events("Some text"))[:2], ending=ending))
    error = failure(gemini_wire)
    assert (error.code, error.retryable) == ("UNAVAILABLE", True)


def test_a_hanging_server_and_a_stopped_question_close_the_connection(gemini_wire, caplog) -> None:
    hanging = Answer(pieces=tuple(events("Some text"))[:2], ending="hang")
    gemini_wire.sends(hanging, hanging)
    assert "Nothing came" in failure(gemini_wire, silence=0.2).message
    assert gemini_wire.hung_up.wait(60)
    gemini_wire.hung_up.clear()
    model = found(gemini_wire)

    async def listen() -> None:
        async with aclosing(model.stream(question())) as stream:
            await anext(stream)
        assert await asyncio.to_thread(gemini_wire.hung_up.wait, 60)
        await model.close()

    asyncio.run(listen())
    assert caplog.messages == []


def test_a_cancelled_question_ends_at_the_server_too(gemini_wire, caplog) -> None:
    gemini_wire.sends(Answer(pieces=tuple(events("Some text"))[:2], ending="hang"))
    model = found(gemini_wire)

    async def cancel() -> None:
        asking = asyncio.create_task(heard(model, question()))
        assert await asyncio.to_thread(gemini_wire.asked.acquire, timeout=60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(gemini_wire.hung_up.wait, 60)
        await model.close()

    asyncio.run(cancel())
    assert caplog.messages == []
