"""A provider that means ill, or is broken: it fills no memory, and nothing it quotes gets into an error."""

import re
import zlib
from itertools import repeat

import pytest
from tests.models.asking import assistant, call, failure, question, results, user
from tests.wires.server import Answer, WireServer

from handrail.models.base import ModelRequest
from handrail.models.errors import redact_quotes

TALK = question(
    user("look at this"), assistant(call(1)), results(1, content="password = 'tr0ub4dor and 3 more'\nother = 1\n")
)
MEGABYTE = b"x" * 1024 * 1024


class Endless(tuple[bytes, ...]):
    """Pieces that come until somebody hangs up."""

    def __iter__(self):
        return repeat(MEGABYTE)


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_without_an_end_is_not_waited_for(wire: WireServer, status: int) -> None:
    wire.sends(Answer(status=status, headers={"content-type": "text/event-stream"}, pieces=Endless()))
    error = failure(wire)
    assert (error.code, error.retryable) == ("UNAVAILABLE", False)
    assert "sent too much data, or sent it compressed" in error.message


def test_a_packed_answer_is_neither_asked_for_nor_taken(wire: WireServer) -> None:
    packed = zlib.compress(b"\0" * 10_000_000)
    headers = {"content-type": "text/event-stream", "content-encoding": "deflate"}
    wire.sends(Answer(headers=headers, pieces=(packed,)))
    error = failure(wire)
    assert (error.code, error.retryable) == ("UNAVAILABLE", False)
    assert wire.received[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "quote", ["password = 'tr0ub4dor and 3 more'", "tr0ub4dor and 3", "3 more'\nother = 1", "3 more'\\nother = 1"]
)
def test_what_a_refusal_quotes_of_the_talk_is_left_out(wire: WireServer, quote: str) -> None:
    wire.refuses(400, f"messages.3.content: {quote} is not valid")
    message = failure(wire, TALK).message
    assert "tr0ub4dor" not in message
    assert "other" not in message
    assert re.search(r"\(400\): messages\.3\.content: ?… ?is not valid$", message)


def test_parts_of_the_key_are_left_out(wire: WireServer) -> None:
    key = wire.environment[next(name for name in wire.environment if name.endswith("_KEY"))]
    wire.refuses(400, f"odd key {key}, or {key[:9]}****")
    message = failure(wire).message
    assert key[:9] not in message
    assert "odd key" in message


def test_nothing_in_a_refusal_steers_a_terminal(wire: WireServer) -> None:
    wire.refuses(400, "\x1b[2J\u202ebad\r\x9b1m name")
    assert failure(wire).message.endswith("(400): [2J bad 1m name")


def test_what_the_provider_says_by_itself_stays() -> None:
    talk = ModelRequest(system="", messages=(user("use the tools"),), tools=())
    said = "tools.0.name: should match pattern ^[a-z]+$"
    assert redact_quotes(said, talk, "sk-123456789") == said
    assert len(redact_quotes("ab " * 500, talk, None)) == 200


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_told_and_neither_followed_nor_tried_again(wire: WireServer, status: int) -> None:
    wire.sends(Answer(status=status, headers={"location": f"{wire.origin}/elsewhere"}))
    error = failure(wire)
    assert (error.code, error.retryable) == ("UNAVAILABLE", False)
    assert "redirects to another address" in error.message
    assert len(wire.received) == 1
