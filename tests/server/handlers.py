"""A real server in this process, whose models play a script."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from msgspec.structs import replace

from handrail import Handrail
from handrail.agent.turn import TurnLimits
from handrail.mcp.http.guard import Address
from handrail.mcp.http.listener import Listener, UnauthenticatedLimit, build_config
from handrail.models.scripted import ScriptedModel, ScriptedStep
from handrail.server.access import Access, ServerLimits, ServerNames, TokenBook
from handrail.server.application import build_app
from handrail.server.context import ServerContext
from handrail.server.login import CookieLogin
from handrail.server.options import ServerOptions
from handrail.server.runner import TaskRunner
from handrail.server.websocket import SocketConnection
from handrail.settings import LoadedSettings, Settings
from handrail.state import StoredState

TOKEN = "token-of-the-tests"


class Host:
    """The settings of the tests, and a model that plays a script."""

    def __init__(self) -> None:
        self.loaded = LoadedSettings(settings=Settings(), sources={})
        self.script: list[ScriptedStep] = []

    def load_settings(self, _workspace: str, mode: Any = None, /) -> LoadedSettings:
        return replace(self.loaded, settings=replace(self.loaded.settings, mode=mode or "ask"))

    def get_limits(self, _loaded: LoadedSettings, /) -> TurnLimits:
        return TurnLimits()

    def list_models(self, _loaded: LoadedSettings, /) -> tuple[str, ...]:
        return ("scripted:script",)

    def open_model(self, _loaded: LoadedSettings, _name: str | None = None, /) -> ScriptedModel:
        return ScriptedModel(self.script)

    def open_sources(self, _loaded: LoadedSettings, _workspace: str, /) -> tuple[()]:
        return ()


class Response(NamedTuple):
    status: int
    body: Any


class Api:
    """A server that listens, and the requests of an admin."""

    def __init__(self, context: ServerContext, host: Host, port: int) -> None:
        self.server, self.host = context, host
        self.url = f"http://127.0.0.1:{port}"
        self.token = TOKEN
        self.state = context.options.state
        self.workspace = context.options.workspaces[0]

    def get(self, path: str, /, **query: Any) -> Response:
        return self._send("GET", path, query)

    def post(self, path: str, body: Any = None, /, **query: Any) -> Response:
        return self._send("POST", path, query, body)

    def delete(self, path: str) -> Response:
        return self._send("DELETE", path, {})

    def open(self, session: str, **options: Any) -> Handrail:
        """A session of another program over the same workspace."""
        chosen = {"mode": "ask", "settings": Settings(), "on_permission": "park", **options}
        return Handrail(self.workspace, session=session, state_dir=self.state.path, **chosen)

    def _send(self, method: str, path: str, query: dict[str, Any], body: Any = None) -> Response:
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        try:
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{path}?{urlencode(query)}" if query else path, data, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        return Response(response.status, json.loads(content) if content else None)


class _QuietListener(Listener):
    """A listener in a thread, where Python takes no signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def open_api(workspace: Path, state: Path, *, port: int = 0, **options: Any) -> Iterator[Api]:
    """Serves a workspace in a thread, with all checks that the command has. `port` 0 is any free one."""
    host, loop = Host(), asyncio.new_event_loop()
    given = ServerOptions(StoredState(str(state)), (str(workspace.resolve()),), host, note=print, **options)
    context = ServerContext(given, TaskRunner(given, loop), ThreadPoolExecutor(4))
    listening = socket.create_server(("127.0.0.1", port))
    port = listening.getsockname()[1]
    listener = loop.run_until_complete(_build_listener(context, port))
    thread = threading.Thread(target=loop.run_until_complete, args=(listener.serve([listening]),))
    thread.start()
    try:
        yield Api(context, host, port)
    finally:
        listener.should_exit = True
        thread.join()
        context.pool.shutdown()
        listening.close()
        loop.close()


async def _build_listener(context: ServerContext, port: int) -> Listener:
    names = ServerNames.build(Address("127.0.0.1", port))
    tokens, limit = TokenBook(context.options.state, TOKEN), UnauthenticatedLimit()
    limits = ServerLimits(body_bytes=1 << 20, requests_per_second=1_000, streams=100)
    app = build_app(context, CookieLogin(tokens, names.cookie), limits.body_bytes)
    access = Access(app, names, tokens, limit, limits)
    config = build_config(access, ws=SocketConnection, ws_per_message_deflate=False)
    return _QuietListener(config, limit, context.runner.close, 130)
