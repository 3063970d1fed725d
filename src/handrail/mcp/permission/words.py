"""What is told about a call that waits: to the model, to who looks at the client, and on the desktop."""

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from handrail.mcp.outcomes import UnansweredCall
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.records import shorten_id as shortest
from handrail.protocol.results import Artifacts, Meta, ToolResult
from handrail.protocol.text import format_age, to_one_line, truncate
from handrail.store.inbox import Inbox
from handrail.terminal.request_text import describe_subject

_AGAIN = "Then make the same call again, with the same arguments: it gives the result, and asks nothing a second time."
_UNDER_WAY = "The person answered, and the call runs now. Make the same call again: it gives the result."
_MAX_SUBJECT_CHARS = 200


def build_parked_result(asks: UnansweredCall, folder: str) -> ToolResult[Any]:
    """The interim result, with how the person answers and how the model gets the result."""
    error = asks.interim.error
    if error is None or not (asks.requests or asks.questions):
        return asks.interim
    told = error.message if asks.requests else "The question waits for a reply; there is no result yet."
    message = f"{told} The person answers it, and nobody else, with: {describe_answer_commands(asks, folder)}. {_AGAIN}"
    return replace(asks.interim, content=message, error=replace(error, message=message))


def build_running_result(call_id: str, name: str, version: str) -> ToolResult[Any]:
    """The interim result of a call that was answered, and that somebody else is running."""
    return ToolResult(
        tool_call_id=call_id,
        name=name,
        version=version,
        ok=False,
        title=name,
        summary=_UNDER_WAY,
        content=_UNDER_WAY,
        data=None,
        error=ErrorInfo(code="UNAVAILABLE", message=_UNDER_WAY, details=None, retryable=True),
        meta=Meta(truncated=False),
        artifacts=Artifacts(),
        attachments=(),
        warnings=(),
        duration_ms=0.0,
    )


def add_age(result: ToolResult[Any], ran: datetime) -> ToolResult[Any]:
    """The kept result of a command, with how old it is: files may have changed since. `ran`: when the command ran."""
    note = f"This command ran {format_age(datetime.now(UTC) - ran)} ago. To run it again, repeat the call."
    return replace(result, warnings=(*result.warnings, note))


def describe_answer_commands(asks: UnansweredCall, folder: str) -> str:
    """The commands that answer it, with an id as short as tells it from what else waits."""
    if asks.requests:
        request = asks.requests[0]
        short = shorten_id(request.id, folder)
        only = "" if "once" in request.answers else " --output-only"
        return f"handrail approvals allow {short}{only}, or: handrail approvals deny {short} --reason TEXT"
    if asks.questions:
        return f"handrail approvals reply {shorten_id(asks.questions[0].tool_call_id, folder)} NUMBER-OR-TEXT"
    return "handrail approvals"


def shorten_id(one: str, folder: str) -> str:
    """The short id of what waits, among all that does."""
    return shortest(one, Inbox.find(folder).list_pending_ids())


def describe_waiting(asks: UnansweredCall) -> str:
    """What the person is asked about, in one line that is not long."""
    if asks.requests:
        request = asks.requests[0]
        own = f"{to_one_line(request.tool_name)}: " if request.fingerprint is None else ""
        told = f"{own}{describe_subject(request)}"
    elif asks.questions:
        told = to_one_line(asks.questions[0].question)
    else:
        told = to_one_line(asks.interim.name)
    return truncate(told, _MAX_SUBJECT_CHARS)
