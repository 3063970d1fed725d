"""The servers of the tests see what is wrong with a question; otherwise they would prove nothing."""

from typing import Any

import pytest
from tests.wires import anthropic_wire, openai_wire

USER = {"role": "user", "content": "go"}
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "one"}


def test_a_right_talk_is_right_for_openai() -> None:
    assert list(openai_wire.check_messages([USER, CALLED, TOLD, {"role": "assistant", "content": "x"}, USER])) == []


@pytest.mark.parametrize(
    "talk",
    [
        [],
        [USER, CALLED],
        [USER, CALLED, USER],
        [USER, TOLD],
        [USER, CALLED, TOLD, TOLD],
        [USER, CALLED, {**TOLD, "tool_call_id": "c2"}],
        [USER, CALLED, {**TOLD, "content": ""}],
        [USER, CALLED, TOLD, CALLED, TOLD],
        [USER, {"role": "assistant", "content": ""}, USER],
        [USER, {**CALLED, "tool_calls": [{**CALL, "function": {"name": "read", "arguments": "{"}}]}, TOLD],
        [USER, {**CALLED, "tool_calls": [{**CALL, "function": {"name": "read", "arguments": "[]"}}]}, TOLD],
        [CALLED, TOLD],
        [USER, {"role": "assistant", "content": "x"}, {"role": "assistant", "content": "x"}, USER],
        [{"role": "user", "content": " "}],
        [USER, {"role": "system", "content": "x"}],
        [USER, {"role": "assistant", "content": "x"}],
    ],
)
def test_a_wrong_talk_is_wrong_for_openai(talk: list[dict[str, Any]]) -> None:
    assert list(openai_wire.check_messages(talk))


SAID = {"role": "user", "content": [{"type": "text", "text": "go"}]}
USE = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
USED = {"role": "assistant", "content": [USE]}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "one"}]}
GIVEN = {"role": "user", "content": [RESULT]}


def test_a_right_talk_is_right_for_anthropic() -> None:
    thought = {"type": "thinking", "thinking": "x", "signature": "y"}
    spoken = {"role": "assistant", "content": [thought, {"type": "text", "text": "x"}]}
    assert list(anthropic_wire.check_messages([SAID, USED, GIVEN, spoken, SAID])) == []


@pytest.mark.parametrize(
    "talk",
    [
        [],
        [SAID, SAID],
        [USED, GIVEN],
        [SAID, USED],
        [SAID, USED, SAID],
        [SAID, USED, {"role": "user", "content": [RESULT, RESULT]}],
        [SAID, USED, {"role": "user", "content": [{"type": "text", "text": "x"}, RESULT]}],
        [{"role": "user", "content": [RESULT]}],
        [SAID, {"role": "assistant", "content": [{**USE, "id": "a:b"}]}, SAID],
        [SAID, {"role": "assistant", "content": [{**USE, "input": "{}"}]}, GIVEN],
        [SAID, {"role": "assistant", "content": [{"type": "text", "text": " "}]}, SAID],
        [SAID, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": ""}]}, SAID],
        [SAID, {"role": "assistant", "content": []}, SAID],
        [SAID, USED, {"role": "user", "content": [{**RESULT, "content": [{"type": "text", "text": ""}]}]}],
        [SAID, USED, GIVEN, USED, GIVEN],
    ],
)
def test_a_wrong_talk_is_wrong_for_anthropic(talk: list[dict[str, Any]]) -> None:
    assert list(anthropic_wire.check_messages(talk))


def test_more_than_four_cache_points_are_seen() -> None:
    marked = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    assert len(anthropic_wire.marks({"system": [marked], "messages": [{"content": [marked] * 4}]})) == 5
