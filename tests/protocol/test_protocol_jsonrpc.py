"""What a line is does not depend on how it is read: a plain request is read in one go, all else with care."""

import msgspec
import pytest

from handrail.protocol.jsonrpc import (
    JsonRpcNotification,
    JsonRpcReply,
    JsonRpcRequest,
    LineSplitter,
    MalformedMessage,
    parse_message,
    repair_line,
)


@pytest.mark.parametrize("request_id", [1, -(1 << 63), (1 << 63) - 1, "a", "a" * 1_000, ""])
@pytest.mark.parametrize("more", [{}, {"more": [1]}, {"result": {}}])
def test_a_request_is_one_whatever_else_it_says(request_id: str | int, more: dict[str, object]) -> None:
    spelled = {"jsonrpc": "2.0", "id": request_id, "method": "ping", "params": {"a": 1}, **more}
    assert _read(spelled) == ("request", request_id, "ping", {"a": 1})


def test_a_request_needs_no_params() -> None:
    assert _read({"jsonrpc": "2.0", "id": 1, "method": "ping"}) == ("request", 1, "ping", {})


@pytest.mark.parametrize("request_id", [1.0, True, None, [1], {}, 1 << 63, -(1 << 63) - 1, "a" * 1_001])
def test_what_can_be_no_id_is_refused_without_one(request_id: object) -> None:
    with pytest.raises(MalformedMessage, match="the id of a request is") as refused:
        _read({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
    assert refused.value.request_id is None


@pytest.mark.parametrize(
    ("spelled", "words"),
    [
        ({"id": 7, "method": "ping"}, '"jsonrpc": "2.0"'),
        ({"jsonrpc": "1.0", "id": 7, "method": "ping"}, '"jsonrpc": "2.0"'),
        ({"jsonrpc": "2.0", "id": 7, "method": 1}, "the method of a message is a text"),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": None}, "the params of ping are an object"),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}, "the params of ping are an object"),
        ({"jsonrpc": "2.0", "id": 7}, "a method, or an id and a result"),
    ],
)
def test_what_is_wrong_is_told_under_the_id(spelled: dict[str, object], words: str) -> None:
    with pytest.raises(MalformedMessage, match=words) as refused:
        _read(spelled)
    assert refused.value.request_id == 7


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","more":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
)
def test_what_is_no_json_is_told_so(line: bytes) -> None:
    with pytest.raises(MalformedMessage, match="the line is"):
        parse_message(line)


def test_other_messages_are_what_they_are() -> None:
    assert _read({"jsonrpc": "2.0", "method": "a", "params": {"b": 1}}) == JsonRpcNotification("a", {"b": 1})
    assert _read({"jsonrpc": "2.0", "id": 3, "result": {"b": 1}}) == JsonRpcReply(3, {"b": 1})


def _read(spelled: dict[str, object]) -> object:
    message = parse_message(msgspec.json.encode(spelled))
    if isinstance(message, JsonRpcRequest):
        return "request", message.id, message.method, message.params
    return message


@pytest.mark.parametrize(
    ("line", "repaired"),
    [
        (b'{"a":"\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a":"x\xff"}', {"a": "x\ufffd"}),
    ],
)
def test_a_cut_character_is_replaced(line: bytes, repaired: dict[str, str]) -> None:
    assert msgspec.json.decode(repair_line(line)) == repaired


def test_a_line_that_is_no_json_is_not_repaired() -> None:
    assert repair_line(b'{"a":') == b""


def test_an_oversized_line_is_known_before_it_ends() -> None:
    splitter = LineSplitter(3)
    assert [*splitter.feed(b"ab\nabc"), splitter.is_oversized] == [b"ab", False]
    assert [*splitter.feed(b"d"), splitter.is_oversized, splitter.remainder] == [True, b""]
    assert list(splitter.feed(b"\nxy\n")) == [None, b"xy"]
