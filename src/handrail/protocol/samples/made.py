"""Samples made by hand, of the kinds that nothing emits yet. One that a run emits does not belong here."""

from typing import Any


def _event(kind: str, seq: int, **fields: Any) -> dict[str, Any]:
    header = {"eventId": f"s_1:{seq}", "seq": seq, "sessionId": "s_1", "time": "2026-01-01T00:00:00Z"}
    return {"kind": kind, **header, **fields}


MADE: dict[str, Any] = {
    "event.user": _event("user", 1, messageId="m_1", text="Make the checkout total round half up."),
    "event.reasoning": _event("reasoning", 2, messageId="m_2", text="Rounding happens in one place: src/total.py."),
    "event.text": _event("text", 3, messageId="m_2", text="I will change it there and run the tests."),
    "event.tool_call.question-required": _event(
        "tool_call.question-required",
        4,
        tool_call_id="call_1",
        tool_call_name="question",
        question="Which callers should round?",
        options=["checkout only", "everywhere"],
        multiple=False,
        custom=True,
    ),
    "event.display": _event(
        "display",
        5,
        content="Two callers round **before** they add up.",
        level="warning",
        title="Rounding",
        thought="Changing the total alone would hide it.",
        evidence=["src/invoice.py:12", "src/report.py:40"],
    ),
    "event.usage": _event(
        "usage",
        6,
        model="anthropic:claude-sonnet",
        input_tokens=12400,
        output_tokens=1100,
        cached_tokens=9800,
        cost=0.0231,
    ),
    "event.network": _event(
        "network",
        8,
        host="example.org",
        port=443,
        allowed=False,
        reason="example.org is not listed",
        tool_call_id="call_2",
        process=None,
    ),
    "event.end": _event(
        "end", 9, reason="done", calls=6, files_changed=["src/total.py"], text="The total rounds half up now."
    ),
    "event.error": _event(
        "error", 10, code="UNAVAILABLE", message="The provider answered 529 three times.", retryable=True
    ),
}
