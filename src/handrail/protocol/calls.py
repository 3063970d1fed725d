"""A batch of tool calls: its calls, its outcome."""

import re
from typing import Any, Literal

import msgspec

from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import PERMISSIONS, Permission, PermissionRequest, Question
from handrail.protocol.results import ToolResult
from handrail.protocol.text import clip_text, escape_exact_line, render_value
from handrail.protocol.wire import Envelope, Json, Time, escape_surrogates

_MAX_PURPOSE_CHARS, _MAX_QUOTED_CHARS = 1_000, 400
_CALL_ID = r"[!-.0-~]{1,128}"
Confirm = bool | Literal["unless-granted"]


class ToolCall(Envelope, frozen=True):
    """A request to run one tool. The runtime creates `tool_call_id`; the provider's own id is kept beside it."""

    tool_call_id: str
    """Unique. A call with a known id gets the first result, and nothing runs."""
    name: str
    """The tool, exactly as it is listed."""
    args: Json
    """As the tool's input schema says."""
    trace_id: str
    """Correlates records across systems."""
    timestamp: Time
    version: str | None = None
    """Null: the current version. Another major version is refused."""
    provider_call_id: str | None = None
    """The id of the model's provider."""
    message_id: str | None = None
    """The assistant message that holds the call."""
    requested_permissions: tuple[Permission, ...] | None = None
    """Can only narrow: if the call needs a permission that is not listed, it is refused."""
    purpose: str | None = None
    """The model's reason for the call. A permission request shows it."""
    confirm: Confirm = False
    """Ask a person about the call, even if policy allows it. `unless-granted`: the request offers the grants that the
    mode `ask` would, and a call that they cover is not asked about."""


def clean_call(call: ToolCall) -> ToolCall:
    """The call with names and ids that the journal can hold, whatever the caller passed."""
    permissions = call.requested_permissions
    return msgspec.structs.replace(
        call,
        name=_clean_text(call.name),
        trace_id=_clean_text(call.trace_id),
        version=None if call.version is None else _clean_text(call.version),
        provider_call_id=None if call.provider_call_id is None else _clean_text(call.provider_call_id),
        message_id=None if call.message_id is None else _clean_text(call.message_id),
        requested_permissions=None if permissions is None else _list_known_permissions(permissions),
        purpose=None if call.purpose is None else escape_surrogates(str(call.purpose)[:_MAX_PURPOSE_CHARS]),
    )


def quote_purpose(text: str) -> str:
    """The words of the model about a call, in quotes. Nothing in them can end the quotation."""
    quoted = clip_text(text, _MAX_QUOTED_CHARS).replace('"', "'")
    return f'"{escape_exact_line(quoted)}"'


def _clean_text(text: object) -> str:
    return escape_surrogates(text[:200]) if isinstance(text, str) else render_value(text)


def _list_known_permissions(permissions: object) -> tuple[Permission, ...]:
    """The permissions that exist. The list can only narrow, so unknown names are ignored."""
    given = list[Any](permissions) if isinstance(permissions, list | tuple) else []  # pyright: ignore[reportUnknownArgumentType]
    names = [name for name in given if isinstance(name, str)]
    return tuple(permission for permission in PERMISSIONS if permission in names)


def check_call(call: object) -> ToolCall:
    """UsageError if a program passes something else than a call."""
    if not isinstance(call, ToolCall):
        raise UsageError(f"a batch is made of ToolCall(tool_call_id=…, name=…, args=…, …), not of {render_value(call)}")
    return call


def check_call_id(call_id: object) -> None:
    """UsageError if an id cannot be part of file names, rows and references."""
    if not isinstance(call_id, str) or not re.fullmatch(_CALL_ID, call_id):
        rule = "1 to 128 visible ASCII characters other than /"
        raise UsageError(f"a tool_call_id is made of {rule}: {render_value(call_id)}")


class Done(Envelope, frozen=True, tag_field="state", tag="done"):
    """Every call has its result, in the order of the calls."""

    results: tuple[ToolResult[Any], ...]


class Parked(Envelope, frozen=True, tag_field="state", tag="parked"):
    """The batch waits, and nothing of it was committed. It resumes when every request is answered."""

    batch_id: str
    requests: tuple[PermissionRequest, ...]
    """The requests without an answer."""
    questions: tuple[Question, ...] = ()
    """The questions of the model to the user."""
