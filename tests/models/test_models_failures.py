"""Every way a provider fails is one clear line, with a code, and says whether waiting helps."""

import json

import pytest
from tests.models.asking import failure, question, user
from tests.wires import anthropic_wire as anthropic
from tests.wires import openai_wire as openai
from tests.wires.server import Answer, WireServer, event

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
