"""The ASGI application of the server, from a listening socket to its end."""

import asyncio
import resource
import socket
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, WebSocketRoute
from starlette.routing import Route as HttpRoute
from starlette.websockets import WebSocket

from handrail.mcp.http.guard import App
from handrail.mcp.http.listener import Listener, UnauthenticatedLimit, build_config, silence_logs
from handrail.protocol.wire import encode
from handrail.server.access import (
    CALLER,
    LOGIN,
    LOGOUT,
    MCP,
    Access,
    ServerLimits,
    ServerNames,
    TokenBook,
    render_failure,
)
from handrail.server.console_files import ConsoleFiles
from handrail.server.context import ServerContext, TaskService
from handrail.server.dispatch import Dispatcher
from handrail.server.login import CookieLogin
from handrail.server.options import ApiFailure, ServerOptions
from handrail.server.routes import ROUTES, SOCKET_HANDLER, Route
from handrail.server.runner import TaskRunner
from handrail.server.websocket import SocketConnection

if TYPE_CHECKING:
    from handrail.mcp.http.application import McpEndpoint

_THREADS = 16
_DESCRIPTORS = 16_384
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All, as the dispatcher explains which of them an address takes."""
_WHY = {404: ("NOT_FOUND", "Nothing is at this address."), 405: ("METHOD_NOT_ALLOWED", "This address takes GET.")}


class Entrance(NamedTuple):
    """The socket of the server, with all that decides who comes in."""

    listening: socket.socket
    names: ServerNames
    start_token: str | None
    """The token of an admin. None: only the named ones count."""
    limits: ServerLimits
    certificate: tuple[str, str] | None = None
    """The files of a TLS certificate and its key."""


def serve(
    entrance: Entrance,
    options: ServerOptions,
    exit_code: int,
    mcp: "McpEndpoint | None" = None,
    open_tasks: Callable[[ServerOptions, asyncio.AbstractEventLoop], TaskService] = TaskRunner,
) -> None:
    """Serves until a signal. A second signal exits with `exit_code`. `mcp` is served beside the API."""
    silence_logs()
    _allow_descriptors()
    try:
        asyncio.run(_serve(entrance, options, exit_code, mcp, open_tasks))
    finally:
        if mcp is not None:
            mcp.close()


def _allow_descriptors() -> None:
    """Shells often allow 1,024, which the open sessions and some hundred streams of one client would use up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(
    entrance: Entrance,
    options: ServerOptions,
    exit_code: int,
    mcp: "McpEndpoint | None",
    open_tasks: Callable[[ServerOptions, asyncio.AbstractEventLoop], TaskService],
) -> None:
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="handler")
    tasks = open_tasks(options, loop)
    tokens, limit = TokenBook(options.state, entrance.start_token), UnauthenticatedLimit()
    login = CookieLogin(tokens, entrance.names.cookie)
    app = build_app(ServerContext(options, tasks, pool), login, entrance.limits.body_bytes, mcp)
    access = Access(app, entrance.names, tokens, limit, entrance.limits)
    certificate, key = entrance.certificate or (None, None)
    config = build_config(
        access,
        ws=SocketConnection,
        ws_max_size=entrance.limits.body_bytes,
        ws_per_message_deflate=False,  # it costs memory for each connection
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    if mcp is not None:
        await mcp.start()
    watch = loop.create_task(access.watch())

    async def end() -> None:
        watch.cancel()
        closing = loop.create_task(tasks.close())
        if mcp is not None:
            await mcp.end()  # in the task that started it
        await closing
        pool.shutdown(wait=False, cancel_futures=True)

    await Listener(config, limit, end, exit_code).serve([entrance.listening])


def build_app(context: ServerContext, login: CookieLogin, max_body_bytes: int, mcp: "McpEndpoint | None" = None) -> App:
    """The application behind `Access`."""
    dispatcher = Dispatcher(context, max_body_bytes)
    by_path: defaultdict[str, dict[str, Route]] = defaultdict(dict)
    for route in ROUTES:
        by_path[route.path][route.method] = route

    async def serve_task(websocket: WebSocket) -> None:
        await context.find_handler(SOCKET_HANDLER)(context, websocket.scope[CALLER], websocket)

    routes: list[BaseRoute] = [
        HttpRoute(LOGIN, login.log_in, methods=["POST"]),
        HttpRoute(LOGOUT, login.log_out, methods=["POST"]),
        HttpRoute("/healthz", _report_health, methods=["GET"]),
        *(HttpRoute(path, partial(dispatcher.respond, at), methods=_METHODS) for path, at in by_path.items()),
        WebSocketRoute("/ws/{task}", serve_task),
        *(HttpRoute(path, partial(_serve_page, context, render)) for path, render in context.tasks.pages.items()),
    ]
    if mcp is not None:
        routes.append(HttpRoute(MCP, mcp.app))
    routes += [HttpRoute(f"/{name}/{{rest:path}}", _NOWHERE) for name in ("api", "ws")]
    routes.append(Mount("/", ConsoleFiles()))
    app = Starlette(routes=routes, exception_handlers={ApiFailure: _refuse, HTTPException: _refuse})
    app.router.redirect_slashes = False
    return app


async def _report_health(_http: HttpRequest) -> Response:
    return Response(encode({"ok": True}), media_type="application/json")


async def _serve_page(context: ServerContext, render: Callable[[], bytes], _http: HttpRequest) -> Response:
    return Response(await context.in_thread(render), media_type="text/plain")


_NOWHERE = render_failure(ApiFailure(404, *_WHY[404]))


async def _refuse(_http: HttpRequest, error: Exception) -> Response:
    """The response for a refusal of the API, or of Starlette."""
    if isinstance(error, HTTPException):
        code, text = _WHY.get(error.status_code, ("INVALID_ARGUMENT", error.detail))
        error = ApiFailure(error.status_code, code, text, headers=error.headers)
    assert isinstance(error, ApiFailure)
    return render_failure(error)
