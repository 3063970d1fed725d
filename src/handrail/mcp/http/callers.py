"""Who asks, as the SDK knows it."""

from typing import Any

from mcp.server.context import ServerRequestContext

from handrail.mcp.caller import LEVEL_KEY, Caller
from handrail.mcp.caller import parse_caller as caller_by

Context = ServerRequestContext[Any, Any]


def identify_caller(context: Context) -> Caller:
    """The client of a request."""
    known, able = context.session.client_params, context.session.client_capabilities
    info = known.client_info.model_dump(exclude_none=True) if known is not None else None
    return caller_by(context.session.protocol_version, info, able.model_dump(exclude_none=True) if able else None)


def read_level(context: Context) -> object:
    """From which level on a request of a version without a handshake wants to be told."""
    return (context.meta or {}).get(LEVEL_KEY)


def read_session_id(context: Context) -> str:
    """Which connection with a handshake it belongs to; empty for the others."""
    return context.request.headers.get("mcp-session-id", "") if context.request is not None else ""
