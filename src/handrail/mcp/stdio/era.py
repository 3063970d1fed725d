"""Tells who makes a request: a client that greeted us, or one of a version where every request says who asks."""

from collections.abc import Container
from typing import Any, cast

from handrail.mcp.caller import CAPABILITIES_KEY, INFO_KEY, LEVEL_KEY, VERSION_KEY, Caller, parse_caller
from handrail.mcp.errors import UNSUPPORTED_VERSION
from handrail.mcp.stdio.checking import (
    build_level_field,
    build_object_field,
    build_text_field,
    build_token_field,
    find_problems,
    refuse,
)
from handrail.mcp.stdio.connection import StdioConnection
from handrail.mcp.versions import MODERN, SUPPORTED, is_modern, negotiate_version
from handrail.protocol.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, JsonRpcRequest, ProtocolError

_OPEN_TO_ALL = frozenset(("initialize", "ping"))
_ENVELOPE = {
    VERSION_KEY: build_text_field(),
    CAPABILITIES_KEY: build_object_field(),
    INFO_KEY: build_object_field(needed=False),
    LEVEL_KEY: build_level_field(needed=False),
    "progressToken": build_token_field(),
}
_META = {"progressToken": build_token_field()}
_INITIALIZE = {
    "protocolVersion": build_text_field(),
    "capabilities": build_object_field(),
    "clientInfo": build_object_field(),
}
_CLIENT = {"name": build_text_field(), "version": build_text_field()}


class Negotiation:
    """A connection is of one kind from its first request on that says which. Only `server/discover`, by which a client
    finds out what is spoken here, says nothing yet."""

    def __init__(self, connection: StdioConnection) -> None:
        self._connection = connection
        self._greeted = self._modern = False

    @property
    def greeted(self) -> bool:
        """Whether there was a handshake."""
        return self._greeted

    def caller(self, request: JsonRpcRequest, known: Container[str]) -> Caller:
        """Who makes a request; ProtocolError where that cannot be told, or it comes too early. `known`: the methods
        that there are after a handshake; of any other it is said first that it is none."""
        meta = _meta(request.params)
        if VERSION_KEY in meta and request.method != "initialize":
            return self._enveloped(request, meta)
        if self._modern:
            return self._refused(request)
        if not self._greeted and request.method in known and request.method not in _OPEN_TO_ALL:
            words = f"{request.method[:80]}: send initialize first, or name {VERSION_KEY} {MODERN[-1]} in _meta"
            raise ProtocolError(INVALID_PARAMS, f"{words}.")
        if meta:
            refuse(request.method, find_problems(meta, _META, "_meta."))
        return self._connection.caller if self._greeted else Caller()

    def greet(self, params: dict[str, Any]) -> str:
        """Takes the client's `initialize`; the version that is spoken from here on."""
        if self._greeted:
            raise ProtocolError(INVALID_REQUEST, "initialize: this connection is initialized already.")
        found = find_problems(params, _INITIALIZE)
        if isinstance(params.get("clientInfo"), dict):
            found += find_problems(params["clientInfo"], _CLIENT, "clientInfo.")
        refuse("initialize", found)
        version = negotiate_version(params["protocolVersion"])
        self._connection.caller = parse_caller(version, params["clientInfo"], params["capabilities"])
        self._greeted = True
        return version

    def _enveloped(self, request: JsonRpcRequest, meta: dict[str, Any]) -> Caller:
        if self._greeted:
            words = "this connection was initialized; its requests do not name their version"
            raise ProtocolError(INVALID_REQUEST, f"{request.method[:80]}: {words}.")
        refuse(request.method, find_problems(meta, _ENVELOPE, "_meta."))
        version: str = meta[VERSION_KEY]
        if not is_modern(version):
            raise _unsupported(version)
        caller = parse_caller(version, meta.get(INFO_KEY), meta[CAPABILITIES_KEY])
        self._connection.caller = caller
        self._modern = self._modern or request.method != "server/discover"
        return caller

    def _refused(self, request: JsonRpcRequest) -> Caller:
        if request.method == "initialize":
            raise _unsupported(request.params.get("protocolVersion"))
        refuse(request.method, find_problems(_meta(request.params), _ENVELOPE, "_meta."))
        raise AssertionError("a request without a version has no envelope")


def _unsupported(version: object) -> ProtocolError:
    told = version[:80] if isinstance(version, str) else version
    data = {"supported": list(MODERN), "requested": told if isinstance(told, str) else ""}
    words = f"Unsupported protocol version; this server speaks {', '.join(SUPPORTED)}, those before {MODERN[0]} only"
    return ProtocolError(UNSUPPORTED_VERSION, f"{words} after initialize as the first request.", data)


def _meta(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    if meta is None:
        return {}
    if not isinstance(meta, dict):
        raise ProtocolError(INVALID_PARAMS, "_meta has to be an object.")
    return cast("dict[str, Any]", meta)
