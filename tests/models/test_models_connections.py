"""Connections: they break, hang, are given up and shared."""

import asyncio
import gc
import os
import resource
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest
from tests.models.asking import answered, failure, found, heard, pieces, question
from tests.wires import anthropic_wire as anthropic
from tests.wires import openai_wire as openai
from tests.wires.server import Answer, WireServer

from handrail.models.base import ModelError, TextPiece
from handrail.models.providers import Timeouts
from handrail.models.registry import find_model


def kind(wire: WireServer):
    return openai if isinstance(wire, openai.OpenAIWire) else anthropic


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
    assert wire.hung_up.wait(60)


def test_whoever_stops_listening_ends_the_question(wire: WireServer, caplog) -> None:
    wire.sends(Answer(pieces=tuple(kind(wire).events("Some text"))[:4], ending="hang"))
    model = found(wire)

    async def listen() -> None:
        async with aclosing(model.stream(question())) as stream:
            assert isinstance(await anext(stream), TextPiece)
        assert await asyncio.to_thread(wire.hung_up.wait, 60)
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
        assert await asyncio.to_thread(wire.hung_up.wait, 60)
        await model.close()

    asyncio.run(listen())
    assert caplog.messages == []


def test_a_cancelled_question_ends_at_the_server_too(wire: WireServer, caplog) -> None:
    wire.sends(Answer(without_head=True, ending="hang"))
    model = found(wire)

    async def cancel() -> None:
        asking = asyncio.create_task(heard(model, question()))
        assert await asyncio.to_thread(wire.asked.acquire, timeout=60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(wire.hung_up.wait, 60)
        await model.close()

    asyncio.run(cancel())
    assert caplog.messages == []


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
def test_a_host_that_is_not_there(variable: str, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    provider = variable.partition("_")[0].lower()
    key = f"{provider.upper()}_API_KEY"
    for address in (f"http://127.0.0.1:{port}", "http://nowhere.invalid"):
        model = find_model(f"{provider}:m", {variable: address, key: "secret"}, patience=Timeouts(connect=5))
        with pytest.raises(ModelError) as raised:
            asyncio.run(heard(model, question()))
        error = raised.value
        assert (error.code, error.retryable) == ("UNAVAILABLE", False)
        assert address in error.message
        assert "cannot be reached" in error.message or "did not answer" in error.message


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_process_without_descriptors_is_told_so_and_not_to_look_at_the_network(host: str, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    model = find_model("openai:m", {"OPENAI_BASE_URL": f"http://{host}:9", "OPENAI_API_KEY": "secret"})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def ask() -> None:
        with pytest.raises(ModelError):
            await heard(model, question())  # everything that it imports is there from now on
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        try:
            with pytest.raises(ModelError) as raised:
                await heard(model, question())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        told = "This program has too many files open, so openai was not asked. Next: ulimit -n 65536"
        assert (raised.value.code, raised.value.message) == ("UNAVAILABLE", told)
        await model.close()

    asyncio.run(ask())


def test_a_host_that_was_there_before_is_waited_for(wire: WireServer) -> None:
    wire.says("ok")
    model = found(wire)

    async def ask() -> None:
        await heard(model, question())
        wire.close()
        with pytest.raises(ModelError) as raised:
            await heard(model, question())
        with pytest.raises(ModelError) as again:
            await heard(model, question())
        assert raised.value.retryable
        assert again.value.retryable
        assert "cannot be reached" in again.value.message
        await model.close()

    asyncio.run(ask())


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


def test_event_loops_of_several_threads_share_a_model(wire: WireServer) -> None:
    wire.always(kind(wire).answer("ok"))
    model = found(wire)

    async def ask() -> int:
        said = [await heard(model, question()) for _ in range(5)]
        await model.close()
        return len(said)

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: asyncio.run(ask()), range(4))] == [5] * 4


def test_many_questions_at_once_share_a_model(wire: WireServer) -> None:
    wire.always(kind(wire).answer("ok"))
    model = found(wire)

    async def ask() -> int:
        said = await asyncio.gather(*(heard(model, question()) for _ in range(20)))
        await model.close()
        return len(said)

    assert asyncio.run(ask()) == 20
    assert pieces(wire)
