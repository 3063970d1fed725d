"""What of a server's messages is passed on to who would look at every part of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from serving import Place, code_of, hostile

from handrail.mcp.client.redaction import Redactor
from handrail.mcp.client.supervisor import describe_close_reason
from handrail.mcp.client.transports import CloseReason, has_too_many_parts, limit_message
from handrail.settings.mcp_json import ConfiguredServer
from handrail.settings.mcp_servers import ServerTable

MANY: list[Any] = [{"type": "nonsense"}] * 20_000


def passed_on(message: Any) -> Any:
    one = limit_message(SessionMessage(message))
    return None if one is None else one.message


def test_an_answer_with_very_many_parts_is_an_error_of_its_call() -> None:
    error = passed_on(JSONRPCResponse(jsonrpc="2.0", id=7, result={"content": MANY}))
    assert isinstance(error, JSONRPCError)
    assert (error.id, error.error.message) == (7, "its answer has more than 10,000 parts")


def test_of_a_long_list_of_tools_the_first_are_passed_on() -> None:
    tools = [{"name": f"t{number}", "inputSchema": {}} for number in range(50_000)]
    answer = passed_on(JSONRPCResponse(jsonrpc="2.0", id=7, result={"tools": tools, "nextCursor": "x"}))
    assert answer.result == {"tools": tools[:257], "nextCursor": "x"}
    assert isinstance(passed_on(JSONRPCResponse(jsonrpc="2.0", id=7, result={"tools": [MANY] * 300})), JSONRPCError)


def test_what_nobody_looks_into_may_have_any_number_of_them() -> None:
    answer = JSONRPCResponse(jsonrpc="2.0", id=7, result={"content": [], "structuredContent": {"rows": MANY}})
    assert passed_on(answer) is answer


def test_news_with_very_many_parts_are_no_news() -> None:
    short = JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": "x"})
    assert passed_on(short) is short
    assert passed_on(JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": MANY})) is None


def test_what_a_server_asks_for_is_not_read() -> None:
    asked = passed_on(JSONRPCRequest(jsonrpc="2.0", id=1, method="sampling/createMessage", params={"messages": MANY}))
    assert (asked.id, asked.method, asked.params) == (1, "sampling/createMessage", None)


values = st.recursive(
    st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=3), inner, max_size=40),
    max_leaves=100,
)


@given(values, st.integers(0, 12_000))
def test_every_part_counts_wherever_it_stands(value: Any, more: int) -> None:
    assert has_too_many_parts([value, [0] * more]) == (2 + _count(value) + more > 10_000)


def _count(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return len(inner) + sum(map(_count, inner))


def test_a_server_that_answers_nonsense_by_the_hundred_thousand_holds_nobody_up(place: Place) -> None:
    with place.session(hostile("Misspeaks")) as rail:
        result = rail.call("mcp__other__echo", {"text": "many"})
        after = rail.call("mcp__other__echo", {"text": "error"})
    assert code_of(result) == "IO_ERROR"
    assert "its answer has more than 10,000 parts" in result.content
    assert "it went wrong" in after.content


@pytest.mark.parametrize(("sure", "told"), [(True, "it sent too much"), (False, "it ended with exit code 0")])
def test_why_it_was_ended_from_here_is_told_and_not_how_it_took_that(sure: bool, told: str) -> None:
    end = CloseReason()
    end.note("it sent too much", sure=sure)
    redactor = Redactor(ConfiguredServer(name="a", table=ServerTable()))
    assert describe_close_reason(end, _Ended(), redactor) == told  # pyright: ignore[reportArgumentType]


class _Ended:
    how_it_ended = "it ended with exit code 0"
    stderr_tail = ""
