"""Every way a provider fails is one clear line, with a code, and says whether waiting helps."""

import asyncio
import gc
import json
import socket
from contextlib import aclosing

import pytest
from tests.models.asking import answered, failure, found, heard, pieces, question, user
from tests.wires import anthropic_wire as anthropic
from tests.wires import openai_wire as openai
from tests.wires.server import Answer, WireServer, event

from handrail.models.finding import find_model
from handrail.models.model import ModelError, TextPiece
from handrail.models.provider import Patience

SECRET_TALK = question(user("a word nobody else may read: xyzzy"))


def kind(wire: WireServer):
    return openai if isinstance(wire, openai.OpenAIWire) else anthropic


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529, 408])
def test_what_passes_may_be_tried_again_and_the_wire_is_asked_only_once(wire: WireServer, status: int) -> None:
    wire.refuses(status)
    error = failure(wire)
    assert (error.code, error.retryable, error.after) == ("UNAVAILABLE", True, None)
    assert str(status) in error.message
    assert len(wire.received) == 1


def test_how_long_to_wait_is_told_where_the_provider_says_so(wire: WireServer) -> None:
    for header in ({"retry-after": "7"}, {"retry-after-ms": "7000"}):
        wire.refuses(429, headers=header)
        assert failure(wire).after == 7


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_named_by_its_variable(wire: WireServer, status: int) -> None:
    key = wire.environment[next(name for name in wire.environment if name.endswith("_KEY"))]
    wire.refuses(status, f"Incorrect API key provided: {key}")
    error = failure(wire)
    assert (error.code, error.retryable) == ("UNAVAILABLE", False)
    provider = wire.model.partition(":")[0]
    assert error.message == f"{provider} refused the key. Check {provider.upper()}_API_KEY."


def test_a_model_that_is_not_there_is_named_with_the_way_to_find_others(wire: WireServer) -> None:
    wire.refuses(404, "model not found")
    error = failure(wire)
    assert (error.code, error.retryable) == ("NOT_FOUND", False)
    assert f"has no model '{wire.model.partition(':')[2]}'" in error.message
    assert "list" in error.message


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000."),
        (400, "prompt is too long: 208310 tokens > 200000 maximum"),
        (400, "Input tokens exceed the configured limit: input is too long"),
        (413, "Request exceeds the maximum size"),
    ],
)
def test_a_talk_that_is_too_long_is_told_from_other_refusals(wire: WireServer, status: int, said: str) -> None:
    wire.refuses(status, said)
    assert failure(wire).code == "LIMIT_EXCEEDED"


def test_other_refusals_are_told_in_the_provider_s_own_words_but_shortly(wire: WireServer) -> None:
    wire.refuses(422, "tools.0: this name\nis odd. " + "More. " * 100)
    error = failure(wire, SECRET_TALK)
    assert (error.code, error.retryable) == ("INVALID_ARGUMENT", False)
    assert "(422): tools.0: this name is odd. More." in error.message
    assert len(error.message) < 300
    assert "xyzzy" not in error.message


def test_a_refusal_that_is_no_json_says_no_more_than_that(wire: WireServer) -> None:
    wire.sends(Answer(status=400, headers={"content-type": "text/html"}, pieces=(b"<html>xyzzy</html>",)))
    error = failure(wire, SECRET_TALK)
    assert error.code == "INVALID_ARGUMENT"
    assert "xyzzy" not in error.message


def test_used_up_credit_is_not_waited_for(openai_wire, anthropic_wire) -> None:
    body = {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": _QUOTA}}
    openai_wire.sends(Answer(status=429, headers=_JSON, pieces=(json.dumps(body).encode(),)))
    anthropic_wire.refuses(400, "Your credit balance is too low to access the Anthropic API.")
    for wire in (openai_wire, anthropic_wire):
        error = failure(wire)
        assert (error.code, error.retryable) == ("UNAVAILABLE", False)
        assert "credit is used up" in error.message


_QUOTA, _JSON = "insufficient_quota", {"content-type": "application/json"}


def test_an_overload_in_the_middle_of_an_answer_passes_as_well(openai_wire, anthropic_wire) -> None:
    begun = tuple(anthropic.events("Some text"))[:4]
    anthropic_wire.sends(Answer(pieces=(*begun, anthropic.failure("overloaded_error"))))
    broken = event({"error": {"message": "The server had an error", "type": "server_error", "code": None}})
    openai_wire.sends(Answer(pieces=(*tuple(openai.events("Some text"))[:2], broken)))
    for wire in (openai_wire, anthropic_wire):
        error = failure(wire)
        assert (error.code, error.retryable) == ("UNAVAILABLE", True)


@pytest.mark.parametrize("ending", ["end", "drop"])
def test_an_answer_that_breaks_off_anywhere_is_no_answer(wire: WireServer, ending) -> None:
    calls = [("id1", "read", '{"path": "a"}'), ("id2", "read", '{"path": "b"}')]
    whole = tuple(kind(wire).events("Some text", reasoning="Hm.", calls=calls))
    finish = next(place for place, one in enumerate(whole) if b'"tool_calls"}' in one or b'"stop_reason": "' in one)
    for place in range(finish):
        wire.sends(Answer(pieces=whole[:place], ending=ending))
        error = failure(wire)
        assert (error.code, error.retryable) == ("UNAVAILABLE", True), place


def test_a_connection_that_breaks_before_the_answer_may_be_tried_again(wire: WireServer) -> None:
    wire.sends(Answer(without_head=True, ending="drop"))
    error = failure(wire)
    assert (error.code, error.retryable) == ("UNAVAILABLE", True)


@pytest.mark.parametrize("without_head", [True, False])
def test_a_server_that_hangs_is_given_up_and_the_connection_closed(wire: WireServer, without_head: bool) -> None:
    begun = tuple(kind(wire).events("Some text"))[:4]
    wire.sends(Answer(pieces=begun, without_head=without_head, ending="hang"))
    error = failure(wire, silence=0.2)
    assert (error.code, error.retryable) == ("UNAVAILABLE", True)
    assert error.message == f"Nothing came from {wire.model} for 0.2 s."
    assert wire.hung_up.wait(10)


def test_whoever_stops_listening_ends_the_question(wire: WireServer, caplog) -> None:
    wire.sends(Answer(pieces=tuple(kind(wire).events("Some text"))[:4], ending="hang"))
    model = found(wire)

    async def listen() -> None:
        async with aclosing(model.stream(question())) as stream:
            assert isinstance(await anext(stream), TextPiece)
        assert await asyncio.to_thread(wire.hung_up.wait, 10)
        await model.close()

    asyncio.run(listen())
    assert caplog.messages == []


def test_who_stops_listening_and_closes_nothing_ends_it_all_the_same(wire: WireServer, caplog) -> None:
    wire.sends(Answer(pieces=tuple(kind(wire).events("Some text"))[:4], ending="hang"))
    model = found(wire)

    async def listen() -> None:
        async for _ in model.stream(question()):
            break
        gc.collect()
        assert await asyncio.to_thread(wire.hung_up.wait, 10)
        await model.close()

    asyncio.run(listen())
    assert caplog.messages == []


def test_a_cancelled_question_ends_at_the_server_too(wire: WireServer, caplog) -> None:
    wire.sends(Answer(without_head=True, ending="hang"))
    model = found(wire)

    async def cancel() -> None:
        asking = asyncio.create_task(heard(model, question()))
        assert await asyncio.to_thread(wire.asked.acquire, timeout=30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(wire.hung_up.wait, 10)
        await model.close()

    asyncio.run(cancel())
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("kind_of_content", "body"),
    [
        ("text/html", b"<html><body>Sign in to the hotel's network</body></html>"),
        ("application/json", b'{"ok": true}'),
        ("text/event-stream", b"data: {not json}\n\n"),
        ("text/event-stream", b'event: odd\ndata: {"type": "odd"}\n\n'),
        ("text/event-stream", b"\xff\xfe\xfd\n\n"),
        ("text/event-stream", b""),
    ],
)
def test_what_is_no_answer_is_told_so(wire: WireServer, kind_of_content: str, body: bytes) -> None:
    wire.sends(Answer(headers={"content-type": kind_of_content}, pieces=(body,)))
    error = failure(wire)
    assert (error.code, error.retryable) == ("UNAVAILABLE", True)


def test_the_key_is_not_sent_on_to_another_server(wire: WireServer) -> None:
    wire.sends(Answer(status=307, headers={"location": f"{wire.origin}/elsewhere"}))
    failure(wire)
    assert len(wire.received) == 1


def test_after_a_failure_the_next_question_is_answered(wire: WireServer) -> None:
    wire.refuses(529)
    wire.sends(Answer(without_head=True, ending="drop"))
    wire.says("Here I am.")
    model = found(wire)

    async def ask() -> None:
        for _ in range(2):
            with pytest.raises(ModelError):
                await heard(model, question())
        assert (await heard(model, question()))[-1].parts[0].text == "Here I am."
        await model.close()

    asyncio.run(ask())


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OLLAMA_BASE_URL", "ANTHROPIC_BASE_URL"])
def test_a_host_that_is_not_there(variable: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    provider = variable.partition("_")[0].lower()
    key = f"{provider.upper()}_API_KEY"
    for address in (f"http://127.0.0.1:{port}", "http://nowhere.invalid"):
        model = find_model(f"{provider}:m", {variable: address, key: "secret"}, patience=Patience(connect=5))
        with pytest.raises(ModelError) as raised:
            asyncio.run(heard(model, question()))
        error = raised.value
        assert (error.code, error.retryable) == ("UNAVAILABLE", True)
        assert address in error.message
        assert "cannot be reached" in error.message or "did not answer" in error.message


def test_an_answer_without_words_and_calls_is_an_answer(openai_wire) -> None:
    openai_wire.says("")
    assert answered(openai_wire).parts == ()


def test_one_model_serves_several_event_loops_one_after_the_other(wire: WireServer) -> None:
    model = found(wire)
    for _ in range(2):
        wire.says("ok")

        async def ask() -> None:
            await heard(model, question())
            await model.close()

        asyncio.run(ask())
    assert len(wire.received) == 2


def test_many_questions_at_once_share_a_model(wire: WireServer) -> None:
    wire.always(kind(wire).answer("ok"))
    model = found(wire)

    async def ask() -> int:
        said = await asyncio.gather(*(heard(model, question()) for _ in range(20)))
        await model.close()
        return len(said)

    assert asyncio.run(ask()) == 20
    assert pieces(wire)
