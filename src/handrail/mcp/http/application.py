"""The MCP server over HTTP, on the official SDK."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from handrail.mcp.http.guard import Address, Guard
from handrail.mcp.http.handlers import HttpHandlers
from handrail.mcp.http.listener import Listener, UnauthenticatedLimit
from handrail.mcp.http.middleware import MAX_BODY_BYTES, MAX_IDLE_SESSIONS, Context, Middleware
from handrail.mcp.http.request_runner import CallThreads
from handrail.mcp.protocol import describe_defect, negotiate_version
from handrail.mcp.results import CACHED, INSTRUCTIONS, SERVER_INFO
from handrail.mcp.sessions import SessionPool
from handrail.protocol.jsonrpc import INTERNAL_ERROR

_GOODBYE_SECONDS = 2
"""How long calls may be answered when the server ends, and then how long connections may take to close."""
_JOIN_SECONDS = 5.0
"""How long cancelled calls may take to end."""


def serve(
    listening: socket.socket, token: str, sessions: SessionPool, note: Callable[[str], None], exit_code: int
) -> None:
    """Serves all clients until a signal, then closes the sessions.

    `note` takes lines for a person. A second signal exits with `exit_code`.
    """
    for name in ("uvicorn", "mcp", "asyncio"):  # their logs may hold a token or a file
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False
    threads = CallThreads()
    try:
        asyncio.run(_serve(listening, token, sessions, threads, DefectReporter(note), exit_code))
    finally:
        sessions.stop()
        if threads.end(_JOIN_SECONDS):  # otherwise the next process that opens the sessions settles them
            sessions.close()


async def _serve(
    listening: socket.socket,
    token: str,
    sessions: SessionPool,
    threads: CallThreads,
    defects: "DefectReporter",
    exit_code: int,
) -> None:
    handlers = HttpHandlers(sessions, threads)
    server = _build_server(handlers)
    # Twice as many sessions exist only while most of them have requests in flight.
    manager = StreamableHTTPSessionManager(
        server, max_request_body_size=MAX_BODY_BYTES, max_sessions=MAX_IDLE_SESSIONS * 2
    )
    middleware = Middleware(manager.handle_request)
    server.middleware += (middleware.track_request, defects.wrap_request)
    names, limit = Address(*listening.getsockname()[:2]).names(), UnauthenticatedLimit()
    config = uvicorn.Config(
        Guard(limit.wrap_authenticated(middleware), names, token),
        http="h11",
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GOODBYE_SECONDS,
    )
    async with contextlib.AsyncExitStack() as running:
        await running.enter_async_context(manager.run())

        async def end() -> None:
            sessions.stop()
            handlers.subscriptions.close()
            await middleware.wait_until_answered(_GOODBYE_SECONDS)
            threads.abandon()
            await running.aclose()

        await Listener(config, limit, end, exit_code).serve([listening])


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
