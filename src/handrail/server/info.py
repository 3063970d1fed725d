"""What a client needs to know first: the server, its settings, its messages, its routes as an OpenAPI document."""

import re
from functools import cache
from typing import Any

import msgspec

from handrail.protocol.schema import build_wire_schemas
from handrail.protocol.version import VERSION
from handrail.server.context import Request, list_modes
from handrail.server.routes import ID, PARAMETERS, PATH_PARAMETERS, ROUTES, Route
from handrail.server.wire import ApiCaller, ApiError, ClientFrame, Login, ServerFrame, ServerInfo
from handrail.settings.model import list_settings

_LOGIN = Route("POST", "/api/login", "viewer", "login.log_in", "Exchange a token for a cookie.", Login, ApiCaller)
_MEDIA = {"events.stream_events": "text/event-stream", "events.get_output": "application/octet-stream"}


def get_info(request: Request) -> ServerInfo:
    options = request.server.options
    loaded = options.load_settings(options.resolve_workspace())
    return ServerInfo(
        version=VERSION,
        caller=request.caller,
        workspaces=options.workspaces,
        models=options.host.list_models(loaded),
        modes=list_modes(request.caller, loaded),
        direct_calls=options.direct_calls,
        dialect=options.dialect,
    )


def get_settings(request: Request) -> dict[str, Any]:
    options = request.server.options
    loaded = options.load_settings(options.resolve_workspace(request.query["workspace"]))
    fields = list_settings()
    settings = [
        {"key": key, "value": value, "source": loaded.sources[key],
         "help": fields[key].help, "allowed": fields[key].allowed}
        for key, value in loaded.settings.flatten().items()
    ]  # fmt: skip
    return {"settings": settings, "rules": loaded.rules, "notes": loaded.notes}


def get_schema(_request: Request) -> dict[str, Any]:
    return {"schema": "handrail.schema/1", "types": build_wire_schemas()}


# OpenAPI


def get_document(_request: Request) -> dict[str, Any]:
    return build_document()


@cache
def build_document() -> dict[str, Any]:
    kinds = [kind for route in (*ROUTES, _LOGIN) for kind in (route.body, route.answer) if kind is not None]
    texts = [*(one.kind for one in PARAMETERS.values()), *PATH_PARAMETERS.values(), ID]
    everything = [*kinds, *texts, ApiError, ServerFrame, ClientFrame]
    shapes, components = msgspec.json.schema_components(everything, ref_template="#/components/schemas/{name}")
    schemas = {id(kind): shape for kind, shape in zip(everything, shapes, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in (*ROUTES, _LOGIN):
        paths.setdefault(route.path, {})[route.method.lower()] = _describe_route(route, schemas)
    paths[_LOGIN.path]["post"]["security"] = []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "handrail",
            "version": VERSION,
            "description": "Tasks, events and approvals. Frames of /ws/{task} are ServerFrame and ClientFrame.",
        },
        "paths": paths,
        "components": {
            "schemas": components | {"ServerFrame": shapes[-2], "ClientFrame": shapes[-1]},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _describe_route(route: Route, schemas: dict[int, Any]) -> dict[str, Any]:
    module, _, function = route.handler.partition(".")
    described: dict[str, Any] = {
        "operationId": function,
        "tags": [module],
        "summary": route.summary,
        "description": "" if route is _LOGIN else f"Needs the role {route.role}.",
        "parameters": [*_describe_path(route, schemas), *_describe_query(route, schemas)],
        "responses": {
            str(route.status): _describe_answer(route, schemas),
            "default": {"description": "A refusal.", "content": _describe_json(schemas[id(ApiError)])},
        },
    }
    if route.body is not None:
        described["requestBody"] = {"required": True, "content": _describe_json(schemas[id(route.body)])}
    return described


def _describe_path(route: Route, schemas: dict[int, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": schemas[id(PATH_PARAMETERS.get(name, ID))]}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]


def _describe_query(route: Route, schemas: dict[int, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "query",
            "description": one.summary,
            "schema": schemas[id(one.kind)] | ({} if one.default is None else {"default": one.default}),
        }
        for name, one in ((name, PARAMETERS[name]) for name in route.query)
    ]


def _describe_answer(route: Route, schemas: dict[int, Any]) -> dict[str, Any]:
    if route.answer is not None:
        return {"description": "The answer.", "content": _describe_json(schemas[id(route.answer)])}
    if route.handler in _MEDIA:
        return {"description": "The stream.", "content": {_MEDIA[route.handler]: {}}}
    return {"description": "Done."}


def _describe_json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
