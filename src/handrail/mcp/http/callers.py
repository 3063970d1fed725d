"""Who asks, as the SDK knows it."""

from typing import Any

from mcp.server.context import ServerRequestContext

from handrail.mcp.caller import Caller

_LEVEL = "io.modelcontextprotocol/logLevel"


def caller_of(context: ServerRequestContext[Any, Any]) -> Caller:
    """The client of a request."""
    session = context.session
    known, can = session.client_params, session.client_capabilities
    form = can.elicitation if can is not None else None
    return Caller(
        name=known.client_info.name if known is not None else "",
        version=known.client_info.version if known is not None else "",
        protocol=session.protocol_version,
        elicits=form is not None and (form.form is not None or form.url is None),
        has_roots=can is not None and can.roots is not None,
    )


def level_of(context: ServerRequestContext[Any, Any]) -> object:
    """From which level on a request of a version without a handshake wants to be told."""
    return (context.meta or {}).get(_LEVEL)


def session_of(context: ServerRequestContext[Any, Any]) -> str:
    """Which connection with a handshake it belongs to; empty for the others."""
    return context.request.headers.get("mcp-session-id", "") if context.request is not None else ""
