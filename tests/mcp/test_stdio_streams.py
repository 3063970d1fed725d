"""What is sent over stdio: whole, once, in order, and known to have been written when it was."""

import gc
import json
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from handrail.mcp.protocol import Caller
from handrail.mcp.stdio.notifications import Notifier
from handrail.mcp.stdio.requests import ClientRequest, StdioConnection
from handrail.mcp.stdio.streams import MessageWriter
from handrail.mcp.workers import Workers

PATIENCE = 60.0
LARGE = "x" * (1 << 20)


class Pipe:
    """An outlet, and the end that a client reads."""

    def __init__(self) -> None:
        self.source, self.sink = os.pipe()
        self.lost: list[bool] = []
        self.outlet = MessageWriter(self.sink, lambda: self.lost.append(True))
        self.connection = StdioConnection(self.outlet, Workers(lambda _: None))

    def exchange(self, **meta: Any) -> ClientRequest:
        return ClientRequest(self.connection, "one", {"_meta": meta}, Caller())

    def messages(self) -> list[dict[str, Any]]:
        """Everything that was sent; nothing can be sent any more."""
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.extend(iter(lambda: os.read(self.source, 1 << 16), b"")))
        reader.start()
        assert self.outlet.flush(PATIENCE)
        os.close(self.sink)
        reader.join()
        return [json.loads(line) for line in b"".join(found).splitlines()]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    one = Pipe()
    yield one
    for descriptor in (one.source, one.sink):
        with suppress(OSError):
            os.close(descriptor)


def test_what_the_client_takes_at_once_is_written_when_it_was_sent(pipe: Pipe) -> None:
    written = threading.Event()
    pipe.outlet.send({"text": "short"}, written.set)
    assert written.is_set()
    assert pipe.messages() == [{"text": "short"}]


def test_what_a_slow_client_has_not_taken_is_not_written_until_it_did(pipe: Pipe) -> None:
    large, short = threading.Event(), threading.Event()
    pipe.outlet.send({"text": LARGE}, large.set)
    pipe.outlet.send({"text": "short"}, short.set)
    assert not large.is_set()
    assert not short.is_set()
    assert pipe.messages() == [{"text": LARGE}, {"text": "short"}]
    assert large.is_set()
    assert short.is_set()


def test_what_nobody_can_read_any_more_is_never_written(pipe: Pipe) -> None:
    os.close(pipe.source)
    written = threading.Event()
    for _ in range(2):
        pipe.outlet.send({"text": "short"}, written.set)
    assert pipe.lost == [True]
    assert not written.is_set()


def test_a_descriptor_that_does_not_wait_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.sink, False)
    pipe.outlet.send({"text": LARGE})
    assert pipe.messages() == [{"text": LARGE}]
    assert not pipe.lost


def test_a_result_that_cannot_be_spelled_out_is_answered_with_an_error(pipe: Pipe) -> None:
    exchange = pipe.exchange()
    with pytest.raises(UnicodeEncodeError):
        exchange.answer({"content": "\ud800"})
    assert not exchange.answer({}), "it is answered once"
    (message,) = pipe.messages()
    assert message["id"] == "one"
    assert message["error"]["code"] == -32603


def test_nothing_is_told_of_a_call_after_its_answer(pipe: Pipe) -> None:
    exchange = pipe.exchange()

    def tell(text: str) -> None:
        answering.start()
        answering.join(0.2)  # it is answered now, if anything lets it be
        pipe.connection.send({"method": "notifications/progress", "params": {"message": text}})

    answering = threading.Thread(target=lambda: exchange.answer({}))
    exchange.send_progress = tell
    exchange.progress("half of it")
    answering.join(PATIENCE)
    exchange.progress("more")
    assert [message.get("method", "answer") for message in pipe.messages()] == ["notifications/progress", "answer"]


def test_nothing_keeps_a_request_that_was_cancelled_before_it_was_told_of(pipe: Pipe) -> None:
    telling, exchange = Notifier(pipe.connection), pipe.exchange(progressToken=1)
    assert exchange.cancel()
    telling.follow(exchange, "call-1")
    known = weakref.ref(exchange)
    del exchange
    gc.collect()
    assert known() is None
