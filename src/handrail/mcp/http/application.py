"""Our handlers on the SDK's server."""

from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from handrail.mcp.http.connections import MAX_CONNECTIONS
from handrail.mcp.http.defects import DefectReporter
from handrail.mcp.http.handlers import HttpHandlers
from handrail.mcp.http.ids import MAX_BODY_BYTES, RequestIds
from handrail.mcp.instructions import INSTRUCTIONS
from handrail.mcp.results import CACHED, SERVER_INFO
from handrail.mcp.versions import negotiate_version


def build_session_manager(
    handlers: HttpHandlers, ids: RequestIds, defects: DefectReporter
) -> StreamableHTTPSessionManager:
    """What answers requests that the guard has let through. There can be more sessions than usual only while most of
    them are at work."""
    server = _server(handlers)
    server.middleware += (ids.track_request, defects.wrap_request)
    return StreamableHTTPSessionManager(server, max_request_body_size=MAX_BODY_BYTES, max_sessions=MAX_CONNECTIONS * 2)


class _Server(Server[Any]):
    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """With what the SDK does not see by itself: that the list of tools may change."""
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, experimental_capabilities, extensions)


def _server(handlers: HttpHandlers) -> Server[Any]:
    server = _Server(
        SERVER_INFO["name"],
        version=SERVER_INFO["version"],
        title=SERVER_INFO["title"],
        instructions=INSTRUCTIONS,
        get_tool_input_schema=handlers.find_schema,
        cache_hints={"server/discover": CacheHint(CACHED["ttlMs"], CACHED["cacheScope"])},
    )
    # Not by the constructor: that warns of what 2026-07-28 leaves out, and the versions before it have it.
    server.add_request_handler("tools/list", types.PaginatedRequestParams, handlers.list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.set_level)
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, handlers.listening)
    changed = "notifications/roots/list_changed"
    server.add_notification_handler(changed, types.NotificationParams, handlers.roots_changed)
    server.middleware.append(_only_our_versions)
    return server


async def _only_our_versions(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The SDK speaks versions that are older than ours. It reads what was asked for after this."""
    if ctx.method == "initialize" and isinstance(ctx.params, dict):
        ctx.params["protocolVersion"] = negotiate_version(ctx.params.get("protocolVersion"))
    return await call_next(ctx)
