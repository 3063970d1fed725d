"""Keeps from the SDK what it would take too long to look at: of each wrong part it makes several errors, so that one
message of a few megabytes would take half a minute, gigabytes, and all other threads' time."""

from dataclasses import replace
from typing import Any, cast

from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from handrail.mcp.client.listed_tools import MAX_LISTED_TOOLS

_MAX_ANSWER_PARTS = 10_000
_TAKEN_WHOLE = frozenset({"structuredContent", "inputSchema", "outputSchema", "_meta"})
"""What nobody looks into there, and may have any number."""


def limit_message_size(one: SessionMessage) -> SessionMessage | None:
    """The message as it is passed on; None where it is not."""
    message = one.message
    match message:
        case JSONRPCRequest() if message.method != "ping":
            # None of these is let, whatever it asks for: what it asks for is not read.
            return replace(one, message=message.model_copy(update={"params": None}))
        case JSONRPCResponse() if _lists_too_much(message.result):
            some = {**message.result, "tools": message.result["tools"][: MAX_LISTED_TOOLS + 1]}
            return limit_message_size(replace(one, message=message.model_copy(update={"result": some})))
        case JSONRPCResponse() if has_too_many_parts(message.result):
            error = ErrorData(code=INTERNAL_ERROR, message=f"its answer has more than {_MAX_ANSWER_PARTS:,} parts")
            return replace(one, message=JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        case JSONRPCNotification() if has_too_many_parts(message.params):
            return None
        case _:
            return one


def _lists_too_much(result: dict[str, Any]) -> bool:
    """More tools than are taken: one more tells who takes them that there are."""
    tools = result.get("tools")
    return isinstance(tools, list) and len(cast("list[Any]", tools)) > MAX_LISTED_TOOLS + 1


def has_too_many_parts(value: Any) -> bool:
    """Whether there are too many values in it, at whatever depth."""
    left, waiting = _MAX_ANSWER_PARTS, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            known = cast("dict[str, Any]", one)
            left -= len(known)
            inner = [held for name, held in known.items() if name not in _TAKEN_WHOLE] if left >= 0 else []
        elif isinstance(one, list):
            inner = cast("list[Any]", one)
            left -= len(inner)
        else:
            continue
        if left < 0:
            return True
        waiting += inner
    return False
