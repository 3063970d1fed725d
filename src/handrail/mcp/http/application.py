"""The MCP server over HTTP, on the official SDK."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from handrail.mcp.http.guard import Address, Guard
from handrail.mcp.http.handlers import HttpHandlers
from handrail.mcp.http.listener import GOODBYE_SECONDS, Listener, UnauthenticatedLimit, build_config, silence_logs
from handrail.mcp.http.middleware import MAX_BODY_BYTES, MAX_IDLE_SESSIONS, Context, Middleware
from handrail.mcp.http.request_runner import CallThreads
from handrail.mcp.protocol import describe_defect, negotiate_version
from handrail.mcp.results import CACHED, INSTRUCTIONS, SERVER_INFO
from handrail.mcp.sessions import SessionPool
from handrail.protocol.jsonrpc import INTERNAL_ERROR

_JOIN_SECONDS = 5.0
"""How long cancelled calls may take to end."""


class McpEndpoint:
    """The ASGI application at `/mcp`, without a guard."""

    def __init__(self, sessions: SessionPool, note: Callable[[str], None]) -> None:
        """`note` takes lines for a person."""
        self._sessions = sessions
        self._threads = CallThreads()
        self._handlers = HttpHandlers(sessions, self._threads)
        server = _build_server(self._handlers)
        # Twice as many sessions exist only while most of them have requests in flight.
        self._manager = StreamableHTTPSessionManager(
            server, max_request_body_size=MAX_BODY_BYTES, max_sessions=MAX_IDLE_SESSIONS * 2
        )
        self.app = Middleware(self._manager.handle_request)
        server.middleware += (self.app.track_request, DefectReporter(note).wrap_request)
        self._running = contextlib.AsyncExitStack()

    async def start(self) -> None:
        await self._running.enter_async_context(self._manager.run())

    async def end(self) -> None:
        """Lets calls be answered for a short time, then ends all connections."""
        self._sessions.stop()
        self._handlers.subscriptions.close()
        await self.app.wait_until_answered(GOODBYE_SECONDS)
        self._threads.abandon()
        await self._running.aclose()

    def close(self) -> None:
        """Closes the sessions, after the event loop has ended."""
        self._sessions.stop()
        if self._threads.end(_JOIN_SECONDS):  # otherwise the next process that opens the sessions settles them
            self._sessions.close()


def serve(
    listening: socket.socket, token: str, sessions: SessionPool, note: Callable[[str], None], exit_code: int
) -> None:
    """Serves all clients until a signal, then closes the sessions.

    `note` takes lines for a person. A second signal exits with `exit_code`.
    """
    silence_logs()
    endpoint = McpEndpoint(sessions, note)
    try:
        asyncio.run(_serve(listening, token, endpoint, exit_code))
    finally:
        endpoint.close()


async def _serve(listening: socket.socket, token: str, endpoint: McpEndpoint, exit_code: int) -> None:
    names, limit = Address(*listening.getsockname()[:2]).names(), UnauthenticatedLimit()
    config = build_config(Guard(limit.wrap_authenticated(endpoint.app), names, token), ws="none")
    await endpoint.start()
    await Listener(config, limit, endpoint.end, exit_code).serve([listening])


class _HandrailServer(Server[Any]):
    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Adds that the tool list may change. The SDK cannot know it."""
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, experimental_capabilities, extensions)


def _build_server(handlers: HttpHandlers) -> Server[Any]:
    server = _HandrailServer(
        SERVER_INFO["name"],
        version=SERVER_INFO["version"],
        title=SERVER_INFO["title"],
        instructions=INSTRUCTIONS,
        get_tool_input_schema=handlers.find_schema,
        cache_hints={"server/discover": CacheHint(CACHED["ttlMs"], CACHED["cacheScope"])},
    )
    # The constructor would warn about methods that 2026-07-28 dropped. Versions before it have them.
    server.add_request_handler("tools/list", types.PaginatedRequestParams, handlers.list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.set_level)
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, handlers.subscriptions)
    changed = "notifications/roots/list_changed"
    server.add_notification_handler(changed, types.NotificationParams, handlers.forget_roots)
    server.middleware.append(_negotiate)
    return server


async def _negotiate(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The SDK also speaks older versions than we do. It reads the requested version after this."""
    if ctx.method == "initialize" and isinstance(ctx.params, dict):
        ctx.params["protocolVersion"] = negotiate_version(ctx.params.get("protocolVersion"))
    return await call_next(ctx)


class DefectReporter:
    """Reports defects to a person. The SDK would send the text of the exception to the client."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    async def wrap_request(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A middleware of the SDK."""
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):  # the SDK answers with these
            raise
        except Exception as error:
            self._note(describe_defect(error))
            raise MCPError(INTERNAL_ERROR, f"An internal error stopped the request ({type(error).__name__}).") from None
