"""Whatever bytes come, each request with an id is answered once, and the server is there for the next one."""

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdio_process import Server

from handrail.mcp.stdio.streams import LineReader


def lines_of(chunks: list[bytes], longest: int) -> list[bytes | None]:
    """What is read of these bytes; None where a line was too long."""
    source, sink = os.pipe()
    waker, wake = os.pipe()
    found: list[bytes | None] = []
    inlet = LineReader(source, waker, lambda: False, longest).lines()
    for chunk in chunks:  # a pipe holds all of it
        os.write(sink, chunk)
    os.close(sink)
    found.extend(inlet)
    for descriptor in (source, waker, wake):
        os.close(descriptor)
    return found


@given(st.lists(st.binary(min_size=1, max_size=40) | st.just(b"\n"), max_size=30), st.integers(1, 60))
def test_lines_are_those_that_were_sent_and_longer_ones_are_skipped(chunks: list[bytes], longest: int) -> None:
    *ended, last = b"".join(chunks).split(b"\n")
    expected = [line if len(line) <= longest else None for line in ended]
    if last and len(last) <= longest:
        expected.append(last)
    assert lines_of(chunks, longest) == expected


def test_what_is_sent_byte_by_byte_is_one_line() -> None:
    """Each byte comes in a read of its own."""
    source, sink = os.pipe()
    waker, wake = os.pipe()
    text = b'{"a": 1}\nrest'
    sent = iter(text[number : number + 1] for number in range(len(text)))

    class Slowly(LineReader):
        def _read(self) -> bytes:
            return next(sent, b"")

    assert list(Slowly(source, waker, lambda: False, 8).lines()) == [b'{"a": 1}', b"rest"]
    for descriptor in (source, sink, waker, wake):
        os.close(descriptor)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(
    (
        *("ping", "tools/list", "tools/call", "logging/setLevel", "initialize", "server/discover", "x"),
        *("subscriptions/listen", "notifications/cancelled", "notifications/initialized"),
        "notifications/roots/list_changed",
    )
) | st.text(max_size=8)
PARAMS = (
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["read", "ls", "grep", "find", "write"]) | JSON,
            "arguments": st.fixed_dictionaries({"path": st.just("a.txt"), "content": st.just("x")}) | JSON,
            "_meta": st.fixed_dictionaries({}, optional={"progressToken": JSON}) | JSON,
            "cursor": JSON,
            "level": st.just("debug") | JSON,
            "notifications": JSON,
            "requestId": st.integers(0, 9) | JSON,
            "requestState": JSON,
        },
    )
    | JSON
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | st.just("2.0") | st.just("2.0") | JSON,
        "id": JSON,
        "method": METHODS | JSON,
        "params": PARAMS,
        "result": JSON,
        "error": JSON,
    },
)
REQUESTS = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.just("filled in"), "method": METHODS, "params": PARAMS}
)
FRAMES = st.lists(st.binary(max_size=30) | MESSAGES | REQUESTS | REQUESTS, max_size=12)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("fuzzed")) as server:
        server.initialize()
        yield server
    assert server.process.returncode == 0
    assert "defect" not in server.errors.decode(), server.errors


@given(FRAMES)
def test_every_request_with_an_id_is_answered_once(fuzzed: Server, frames: list[bytes | dict[str, Any]]) -> None:
    before = len(fuzzed.came)
    asked: list[str] = []
    for frame in frames:
        if isinstance(frame, bytes):
            fuzzed.write(frame.replace(b"\n", b" ") + b"\n")
        elif frame.get("id") == "filled in":
            asked.append(f"{before}-{len(asked)}")
            fuzzed.send({**frame, "id": asked[-1]})
        else:
            fuzzed.send(frame)
    assert fuzzed.asks("ping")["result"] == {}
    for request_id in asked:
        fuzzed.answer(request_id)
    fuzzed.asks("ping")
    counted = Counter(message["id"] for message in fuzzed.came[before:] if message.get("id") in asked)
    assert counted == Counter(asked)


def test_a_client_that_says_anything_is_outlived(fuzzed: Server, count: Callable[[int], int]) -> None:
    """Real messages, cut, doubled, mixed and with bytes of chance; ids that come twice, and cancelled ones."""
    chance = random.Random(7)
    before, expected, cancelled = len(fuzzed.came), Counter[str](), set[str]()
    for number in range(count(3_000)):
        name, own = chance.choice(["read", "find", "write"]), f"f{number}"
        call = {"name": name, "arguments": {"path": "a.txt", "pattern": "*", "content": "x"}}
        line = json.dumps({"jsonrpc": "2.0", "id": own, "method": "tools/call", "params": call}).encode() + b"\n"
        match chance.randrange(6):
            case 0:
                fuzzed.write(line[: chance.randrange(len(line))] + b"\n")
            case 1:
                fuzzed.write(chance.randbytes(50).replace(b"\n", b"") + b"\n")
            case 2:
                fuzzed.write(line + line)
                expected[own] = 2
            case 3:
                cancelled.add(f"f{chance.randrange(max(0, number - 3), number + 1)}")
                for request_id in cancelled:
                    fuzzed.notify("notifications/cancelled", requestId=request_id)
            case _:
                fuzzed.write(line)
                fuzzed.notify("notifications/cancelled", requestId=chance.choice(["nobody", None, 5, [], {}]))
                expected[own] = 1
    waited = [request_id for request_id in expected if request_id not in cancelled]
    for request_id in waited:
        fuzzed.until(lambda own=request_id: _answers(fuzzed, own) >= expected[own])
    assert fuzzed.asks("tools/call", {"name": "ls", "arguments": {"path": "."}})["result"]["isError"] is False
    counted = Counter(message["id"] for message in fuzzed.came[before:] if message.get("id") in expected)
    assert all(counted[request_id] == expected[request_id] for request_id in waited)
    assert all(counted[request_id] <= expected[request_id] for request_id in cancelled)


def _answers(server: Server, request_id: str) -> int:
    return sum(message.get("id") == request_id for message in server.came)
