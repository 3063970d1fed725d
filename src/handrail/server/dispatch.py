"""Calls the handler of a route with a checked request."""

import asyncio
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from handrail.protocol.errors import HandrailError, StoreError, ToolError, list_frames
from handrail.protocol.wire import UNREADABLE, convert, decode_json, encode
from handrail.server.access import CALLER, check_role
from handrail.server.context import Request, ServerContext
from handrail.server.options import ApiFailure
from handrail.server.routes import ID, PARAMETERS, PATH_PARAMETERS, Route
from handrail.server.wire import ApiCaller

_BODY_SECONDS = 30.0
_MAX_WAITING = 256
"""Requests that run or wait for a thread."""
# fmt: off
_STATUS: Mapping[str, int] = MappingProxyType({
    "INVALID_ARGUMENT": 400, "LIMIT_EXCEEDED": 413, "UNAVAILABLE": 503, "INTERNAL": 500,
    "UNKNOWN_TOOL": 404, "NOT_FOUND": 404, "PROCESS_NOT_FOUND": 404,
    "ACCESS_DENIED": 403, "OUTSIDE_WORKSPACE": 403, "POLICY_DENIED": 403, "PERMISSION_DENIED": 403,
    "CONFLICT": 409, "STALE_FILE": 409, "PROCESS_ENDED": 409,
})
# fmt: on
"""The status of an error code of a tool. All others are 422: the request was understood, and the tool failed."""


class Dispatcher:
    """Answers the requests of all routes."""

    def __init__(self, context: ServerContext, max_body_bytes: int) -> None:
        self._context = context
        self._max_body_bytes = max_body_bytes
        self._waiting = 0

    async def respond(self, routes: Mapping[str, Route], http: HttpRequest) -> Response:
        """Answers a request to the path of these routes, by their methods. ApiFailure refuses it."""
        route = routes.get(http.method)
        if route is None:
            allowed = ", ".join(routes)
            text = f"This address takes {allowed}."
            raise ApiFailure(405, "METHOD_NOT_ALLOWED", text, headers={"allow": allowed})
        caller: ApiCaller = http.scope[CALLER]
        check_role(caller, route.role)
        request = Request(
            server=self._context,
            caller=caller,
            params={name: _decode_part(name, value) for name, value in http.path_params.items()},
            query=decode_query(route, http.scope["query_string"].decode("latin-1")),
            body=decode_body(http, await read_body(http, self._max_body_bytes), route.body),
        )
        try:
            handler = await self._run(lambda: self._context.find_handler(route.handler))
            if iscoroutinefunction(handler):
                return await handler(request, http)
            content: bytes = await self._run(lambda: encode(handler(request)))
        except Exception as error:
            raise explain_error(error, self._context.options.note) from None
        if route.answer is None:
            return Response(status_code=route.status)
        return Response(content, route.status, media_type="application/json")

    async def _run(self, work: Callable[[], Any]) -> Any:
        """Runs work in a thread. ApiFailure if too much waits already."""
        if self._waiting >= _MAX_WAITING:
            raise ApiFailure(
                503, "BUSY", "The server works on too many requests. Try again.", headers={"retry-after": "1"}
            )
        self._waiting += 1
        try:
            return await self._context.in_thread(work)
        finally:
            self._waiting -= 1


def explain_error(error: Exception, note: Callable[[str], None]) -> ApiFailure:
    """The refusal for an exception of a handler. The operator alone gets a line about a defect, or about the disk."""
    if isinstance(error, ApiFailure):
        return error
    if isinstance(error, ToolError):
        return ApiFailure(_STATUS.get(error.code, 422), error.code, error.message, error.details)
    if isinstance(error, StoreError):
        note(f"handrail: {error}")
        return ApiFailure(500, "IO_ERROR", f"{error.brief}. The operator can see why.")
    if isinstance(error, HandrailError):
        return ApiFailure(400, "INVALID_ARGUMENT", str(error))
    if isinstance(error, OSError):  # for example a full disk
        note(f"handrail: {error}")
        return ApiFailure(500, "IO_ERROR", f"{error.strerror or 'The system failed'}. The operator can see where.")
    where = (list_frames(error) or ["an unknown place"])[-1]
    note(f"handrail: internal error in a request: {type(error).__name__} at {where}")
    return ApiFailure(500, "INTERNAL", "An internal error stopped the request. The operator can see where.")


async def read_body(http: HttpRequest, most: int, seconds: float = _BODY_SECONDS) -> bytes:
    """The body, if it is not too long and comes in time."""
    failure = ApiFailure(413, "TOO_LARGE", f"The body may have {most:,} bytes.")
    declared = http.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise failure
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in http.stream():
                body += chunk
                if len(body) > most:
                    raise failure
    except TimeoutError:
        raise ApiFailure(408, "TIMEOUT", "The body did not come in time.") from None
    except ClientDisconnect:
        raise ApiFailure(400, "CANCELLED", "The client hung up.") from None
    return bytes(body)


def decode_body(http: HttpRequest, body: bytes, kind: Any) -> Any:
    """The body as JSON of a type. A page cannot send this content type to another origin without being asked."""
    if kind is None and not body.strip():
        return None
    if kind is None:
        raise ApiFailure(400, "INVALID_ARGUMENT", "This request takes no body.")
    if http.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiFailure(415, "INVALID_ARGUMENT", "The body must be JSON: Content-Type: application/json")
    try:
        return decode_json(body, kind)
    except msgspec.ValidationError as error:
        raise ApiFailure(400, "INVALID_ARGUMENT", f"The body is not valid: {error}") from None
    except UNREADABLE:
        raise ApiFailure(400, "INVALID_ARGUMENT", "The body is not JSON.") from None


def decode_query(route: Route, query: str) -> dict[str, Any]:
    """The parameters of a route with their defaults."""
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in route.query or name in found:
            known = ", ".join(route.query) or "none"
            problem = "is given twice" if name in found else f"is unknown; there are: {known}"
            raise ApiFailure(400, "INVALID_ARGUMENT", f"The parameter {name[:80]!r} {problem}.")
        try:
            found[name] = convert(value, PARAMETERS[name].kind, strict=False)
        except ValueError as error:
            raise ApiFailure(400, "INVALID_ARGUMENT", f"The parameter {name} is not valid: {error}") from None
    return {name: PARAMETERS[name].default for name in route.query} | found


def is_number(text: str) -> bool:
    """Whether a text is a number as events and changes have them."""
    return text.isascii() and text.isdigit() and len(text) <= 16


def _decode_part(name: str, value: str) -> str:
    try:
        convert(value, PATH_PARAMETERS.get(name, ID), strict=False)
    except ValueError:
        raise ApiFailure(404, "NOT_FOUND", f"There is no {name} {value[:80]!r}.") from None
    return value
