"""The one shape of a tool call."""

import msgspec

from handrail.protocol.permission import Permission
from handrail.protocol.plain import readable
from handrail.protocol.wire import Envelope, Json, Time


class ToolCall(Envelope, frozen=True):
    """A request to run one tool. The runtime makes `tool_call_id`; a provider's own id is kept beside it."""

    tool_call_id: str
    """Used once: the same id again gets the first result and runs nothing."""
    name: str
    """The tool, spelled exactly as it is listed."""
    args: Json
    """What the tool's input schema asks for."""
    trace_id: str
    """Ties together what belongs together, across systems."""
    timestamp: Time
    version: str | None = None
    """Absent or null: the current one. Another major version is refused."""
    provider_call_id: str | None = None
    """The id that the model's provider gave the call."""
    message_id: str | None = None
    """The assistant message the call came in."""
    requested_permissions: tuple[Permission, ...] | None = None
    """May only narrow: a permission the tool needs and the list lacks is refused."""


def cleaned(call: ToolCall) -> ToolCall:
    """The call with names and ids as the journal can hold them, whatever a caller made them of."""
    return msgspec.structs.replace(
        call,
        name=_short(call.name),
        trace_id=_short(call.trace_id),
        version=None if call.version is None else _short(call.version),
        provider_call_id=None if call.provider_call_id is None else _short(call.provider_call_id),
        message_id=None if call.message_id is None else _short(call.message_id),
    )


def _short(text: object) -> str:
    return readable(str(text)[:200])
