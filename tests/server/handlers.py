"""Handlers of the HTTP API behind a real runner of tasks, without a socket."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from handrail import Handrail
from handrail.agent.turn import TurnLimits
from handrail.models.scripted import ScriptedModel, ScriptedStep
from handrail.protocol.errors import HandrailError, ToolError
from handrail.protocol.wire import decode_json, encode
from handrail.server.context import Request, ServerContext
from handrail.server.options import ApiFailure, ServerOptions
from handrail.server.routes import ROUTES, Route
from handrail.server.runner import TaskRunner
from handrail.server.wire import ApiCaller
from handrail.settings import LoadedSettings, Settings
from handrail.state import StoredState

_QUERY: dict[str, Any] = {"workspace": None, "after": 0, "limit": 100, "offset": 0, "task": None, "path": None}


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
    """The handlers of a server, called by method and path."""

    def __init__(self, server: ServerContext, host: Host) -> None:
        self.server, self.host = server, host
        self.state = server.state
        self.workspace = server.workspaces[0]

    def get(self, path: str, /, **query: Any) -> Response:
        return self._call("GET", path, query, None)

    def post(self, path: str, body: Any = None, /, **query: Any) -> Response:
        return self._call("POST", path, query, body)

    def delete(self, path: str) -> Response:
        return self._call("DELETE", path, {}, None)

    def open(self, session: str, **options: Any) -> Handrail:
        """A session of another program over the same workspace."""
        chosen = {"mode": "ask", "settings": Settings(), "on_permission": "park", **options}
        return Handrail(self.workspace, session=session, state_dir=self.state.path, **chosen)

    def _call(self, method: str, path: str, query: dict[str, Any], body: Any) -> Response:
        route, params = _find_route(method, path)
        module, _, function = route.handler.partition(".")
        decoded = None if route.body is None else decode_json(json.dumps(body), route.body)
        request = Request(self.server, ApiCaller(name="ann", role="operator"), params, _QUERY | query, decoded)
        try:
            answer = getattr(import_module(f"handrail.server.{module}"), function)(request)
        except ApiFailure as failure:
            return Response(
                failure.status, {"code": failure.code, "message": failure.message, "details": failure.details}
            )
        except ToolError as error:
            return Response(409, {"code": error.code, "message": error.message, "details": error.details})
        except HandrailError as error:
            return Response(400, {"code": "INVALID_ARGUMENT", "message": str(error)})
        assert answer is None if route.answer is None else isinstance(answer, route.answer)
        return Response(route.status, None if answer is None else json.loads(encode(answer)))


def _find_route(method: str, path: str) -> tuple[Route, dict[str, str]]:
    for route in ROUTES:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path)
        if route.method == method and (found := re.fullmatch(pattern, path)):
            return route, found.groupdict()
    raise AssertionError(f"no route {method} {path}")


@contextmanager
def open_api(workspace: Path, state: Path, **options: Any) -> Iterator[Api]:
    loop, host = asyncio.new_event_loop(), Host()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    given = ServerOptions(StoredState(str(state)), (str(workspace.resolve()),), host, note=print, **options)
    try:
        with ThreadPoolExecutor(4) as pool:
            runner = TaskRunner(given, loop)
            yield Api(ServerContext(given, runner, loop, pool), host)
            asyncio.run_coroutine_threadsafe(runner.close(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
