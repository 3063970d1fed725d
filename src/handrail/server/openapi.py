"""The HTTP API as an OpenAPI document, made from the table of routes."""

import re
from functools import cache
from typing import Any

import msgspec

from handrail.protocol.version import VERSION
from handrail.server.context import Request
from handrail.server.routes import ID, PARAMETERS, PATH_PARAMETERS, ROUTES, Route
from handrail.server.wire import ApiCaller, ApiError, ClientFrame, Login, ServerFrame

_REFERENCE = "#/components/schemas/{name}"
_JSON = "application/json"
_ERRORS = {
    "400": "The request is not valid.",
    "401": "The token is missing or wrong.",
    "403": "The token has not the role, or the Origin is foreign.",
    "404": "There is no such thing.",
    "409": "The state of the thing does not allow it.",
    "413": "The body is too long.",
    "415": "The body is not JSON.",
    "421": "The Host header does not name this server.",
    "422": "The tool failed.",
    "429": "Too many requests. Retry-After says when to try again.",
    "503": "Something is busy, or not enabled.",
}
_MEDIA = {"events.stream_events": "text/event-stream", "events.get_output": "application/octet-stream"}


def get_document(_request: Request) -> dict[str, Any]:
    return build_document()


@cache
def build_document() -> dict[str, Any]:
    kinds = [kind for route in ROUTES for kind in (route.body, route.answer) if kind is not None]
    texts = [PARAMETERS[name].kind for name in PARAMETERS] + [*PATH_PARAMETERS.values(), ID]
    frames = {"ServerFrame": ServerFrame, "ClientFrame": ClientFrame}
    everything = [*kinds, *texts, *frames.values(), ApiError, ApiCaller, Login]
    shapes, components = msgspec.json.schema_components(everything, ref_template=_REFERENCE)
    schemas = {id(kind): shape for kind, shape in zip(everything, shapes, strict=True)}
    components |= {name: schemas[id(frame)] for name, frame in frames.items()}
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _describe_route(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "handrail",
            "version": VERSION,
            "description": "Tasks, events and approvals. Frames of /ws/{task} are ServerFrame and ClientFrame.",
        },
        "paths": {**paths, "/api/login": {"post": _describe_login()}},
        "components": {
            "schemas": components,
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
        "description": f"Needs the role {route.role}.",
        "parameters": [*_describe_path(route, schemas), *_describe_query(route, schemas)],
        "responses": {
            str(route.status): _describe_answer(route, schemas),
            **{
                status: _describe_json(text, {"$ref": _REFERENCE.format(name="ApiError")})
                for status, text in _ERRORS.items()
            },
        },
    }
    if route.body is not None:
        described["requestBody"] = {"required": True, "content": {_JSON: {"schema": schemas[id(route.body)]}}}
    return described


def _describe_path(route: Route, schemas: dict[int, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _translate(schemas[id(PATH_PARAMETERS.get(name, ID))])}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]


def _describe_query(route: Route, schemas: dict[int, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "query",
            "description": PARAMETERS[name].summary,
            "schema": _translate(schemas[id(PARAMETERS[name].kind)])
            | ({} if PARAMETERS[name].default is None else {"default": PARAMETERS[name].default}),
        }
        for name in route.query
    ]


def _describe_answer(route: Route, schemas: dict[int, Any]) -> dict[str, Any]:
    if route.answer is not None:
        return _describe_json("The answer.", schemas[id(route.answer)])
    if route.status == 204:
        return {"description": "Done."}
    return {"description": "The stream.", "content": {_MEDIA[route.handler]: {}}}


def _describe_json(text: str, schema: Any) -> dict[str, Any]:
    return {"description": text, "content": {_JSON: {"schema": schema}}}


def _describe_login() -> dict[str, Any]:
    refer = {name: {"$ref": _REFERENCE.format(name=name)} for name in ("Login", "ApiCaller", "ApiError")}
    return {
        "operationId": "log_in",
        "tags": ["login"],
        "summary": "Exchange a token for a cookie.",
        "security": [],
        "requestBody": {"required": True, "content": {_JSON: {"schema": refer["Login"]}}},
        "responses": {
            "200": _describe_json("Whose token it is.", refer["ApiCaller"]),
            **{
                status: _describe_json(_ERRORS[status], refer["ApiError"])
                for status in ("400", "401", "403", "413", "415")
            },
        },
    }


def _translate(schema: dict[str, Any]) -> dict[str, Any]:
    """A pattern in the dialect of JSON Schema, which knows neither \\A nor \\Z."""
    if "pattern" not in schema:
        return schema
    return schema | {"pattern": schema["pattern"].replace(r"\A", "^").replace(r"\Z", "$")}
