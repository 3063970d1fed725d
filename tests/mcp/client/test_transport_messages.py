"""What a server writes as a line, and what is read of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCResponse

from handrail.mcp.client.transports import parse_message

HEAD, END = b'{"jsonrpc":"2.0","id":1,"result":{"text":"', b'"}}'


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"caf\xe9", "caf\ufffd"),
        (b"cut \xf0\x9f\x99", "cut \ufffd"),
        (rb"half \ud83d", "half \ufffd"),
        (rb"\ude42 the other half, and a whole \ud83d\ude42", "\ufffd the other half, and a whole 🙂"),
    ],
)
def test_a_text_that_was_cut_in_a_character_is_read_with_a_mark_there(written: bytes, read: str) -> None:
    message = parse_message(HEAD + written + END)
    assert isinstance(message, JSONRPCResponse)
    assert (message.id, message.result) == (1, {"text": read})


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"listening on stdio",
        b"[1, 2]",
        b"{",
        b'{"a": 1}',
        b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 5_000,
    ],
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert parse_message(line) is None


def test_a_mark_at_the_beginning_is_no_part_of_it() -> None:
    assert parse_message(b"\xef\xbb\xbf" + HEAD + END + b"\r") is not None


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.text() | st.integers(-(2**63), 2**63), max_size=5))
def test_every_message_is_read_as_it_was_written(result: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": "x", "result": result}).encode()
    message = parse_message(line)
    assert isinstance(message, JSONRPCResponse)
    assert message.result == result
