"""Requests of one client over stdio, from acceptance to answer."""

import threading
from collections.abc import Callable, Container
from typing import Any, NamedTuple, cast

from handrail.mcp.protocol import (
    BUSY,
    LEVEL_KEY,
    LEVELS,
    MODERN,
    SAME_ID,
    SUPPORTED,
    Caller,
    is_modern,
    negotiate_version,
    parse_caller,
)
from handrail.mcp.results import complete_result
from handrail.mcp.stdio.streams import MessageWriter
from handrail.mcp.workers import Job, Workers
from handrail.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    JsonRpcRequest,
    ProtocolError,
    RequestId,
    is_request_id,
)

MAX_REQUESTS = 4_096
MAX_REQUEST_BYTES = 256 << 20
"""The size of all requests in flight together."""
_UNSUPPORTED_VERSION = -32022
"""The error code of an unsupported version, from 2026-07-28 on."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_INFO_KEY = "io.modelcontextprotocol/clientInfo"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_OPEN_TO_ALL = frozenset(("initialize", "ping"))

OnReply = Callable[[dict[str, Any] | None], None]


# Parameters


class ParamField(NamedTuple):
    words: str
    check: Callable[[object], bool]
    required: bool = True

    @property
    def optional(self) -> "ParamField":
        return self._replace(required=False)


TEXT = ParamField("a text", str.__instancecheck__)
OBJECT = ParamField("an object", dict.__instancecheck__)
LEVEL = ParamField(f"one of {', '.join(LEVELS)}", LEVELS.__contains__)
_META = {"progressToken": ParamField("a text or an integer of 64 bits", is_request_id, required=False)}
_ENVELOPE = {
    _VERSION_KEY: TEXT,
    _CAPABILITIES_KEY: OBJECT,
    _INFO_KEY: OBJECT.optional,
    LEVEL_KEY: LEVEL.optional,
    **_META,
}
_INITIALIZE = {"protocolVersion": TEXT, "capabilities": OBJECT, "clientInfo": OBJECT}
_CLIENT = {"name": TEXT, "version": TEXT}


def check_params(method: str, params: dict[str, Any], fields: dict[str, ParamField], prefix: str = "") -> None:
    """Raises ProtocolError with all problems at once."""
    _refuse_problems(method, _find_problems(params, fields, prefix))


def _find_problems(params: dict[str, Any], fields: dict[str, ParamField], prefix: str = "") -> list[str]:
    problems: list[str] = []
    for name, field in fields.items():
        value = params.get(name)
        if value is None:
            if field.required:
                problems.append(f"{prefix}{name} is missing: {field.words}")
        elif not field.check(value):
            problems.append(f"{prefix}{name} has to be {field.words}")
    return problems


def _refuse_problems(method: str, problems: list[str]) -> None:
    if problems:
        raise ProtocolError(INVALID_PARAMS, f"{method}: {'; '.join(problems)}.")


# Requests


class ClientRequest:
    """One request in flight. The first thread answers it. A cancelled request gets no answer."""

    def __init__(
        self,
        connection: "StdioConnection",
        request_id: RequestId,
        params: dict[str, Any],
        caller: Caller,
        size: int = 0,
    ) -> None:
        self.connection = connection
        self.request_id = request_id
        self.params = params
        self.caller = caller
        self.size = size
        self.call_id = ""
        """The id of its call in events and in the journal."""
        self.send_progress: Callable[[str], None] | None = None
        """Set if the client wants progress."""
        self._lock = threading.Lock()
        self._on_end: list[Job] = []
        self._done = self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def progress(self, message: str) -> None:
        """Reports progress if the client asked for it. Never after the answer."""
        with self._lock:
            if not self._done and self.send_progress is not None:
                self.send_progress(message)

    def on_end(self, then: Job) -> None:
        """Calls this when the request is answered or cancelled."""
        with self._lock:
            if not self._done:
                self._on_end.append(then)
                return
        then()

    def answer(self, result: dict[str, Any], on_written: Job = lambda: None) -> bool:
        """Answers the request. False if it was answered or cancelled before. A result that cannot be encoded becomes an
        error, and raises. `on_written` is called once the client can read the whole answer."""
        if not self._finish():
            return False
        try:
            self.connection.send({"id": self.request_id, "result": complete_result(result, self.caller)}, on_written)
        except Exception as error:
            problem = f"Internal error: the result cannot be encoded ({type(error).__name__})."
            self.connection.send_error(self.request_id, ProtocolError(INTERNAL_ERROR, problem))
            raise
        return True

    def fail(self, error: ProtocolError) -> None:
        """Answers with an error, unless it was answered or cancelled before."""
        if self._finish():
            self.connection.send_error(self.request_id, error)

    def cancel(self) -> bool:
        """False if it was answered before."""
        return self._finish(cancelled=True)

    def _finish(self, *, cancelled: bool = False) -> bool:
        with self._lock:
            if self._done:
                return False
            self._done, self._cancelled = True, cancelled
        self.connection.remove(self)
        for then in self._on_end:
            then()
        return True


class StdioConnection:
    """Everything about one client: its version, its requests in flight, and messages to it. Thread-safe."""

    def __init__(self, writer: MessageWriter, workers: Workers) -> None:
        self.caller = Caller()
        """The client by its handshake, or by its last modern request."""
        self.greeted = False
        """Whether there was a handshake."""
        self._modern = False
        self._writer = writer
        self._workers = workers
        self._lock = threading.Lock()  # entering the condition itself takes five times as long
        self._idle = threading.Condition(self._lock)
        self._in_flight: dict[RequestId, ClientRequest] = {}
        self._bytes = 0
        self._has_waiter = False
        self._asked: dict[int, OnReply] = {}
        self._last_number = 0
        self._gone = False

    # Messages to the client

    def send(self, message: dict[str, Any], on_written: Job = lambda: None) -> None:
        """Does nothing if the client is gone."""
        self._writer.send({"jsonrpc": "2.0", **message}, on_written)

    def send_error(self, request_id: RequestId | None, error: ProtocolError) -> None:
        self.send({"id": request_id, "error": error.to_wire()})

    def work(self, job: Job) -> None:
        """Has a worker thread run a job."""
        self._workers.add(job)

    def ask(self, method: str, params: dict[str, Any], on_reply: OnReply) -> int:
        """Sends a request, and returns its number. A worker calls `on_reply` once: with the result, or with None if the
        client answered with an error or is gone."""
        with self._lock:
            self._last_number += 1
            number, gone = self._last_number, self._gone
            if not gone:
                self._asked[number] = on_reply
        if gone:
            self.work(lambda: on_reply(None))
        else:
            self.send({"id": number, "method": method, "params": params})
        return number

    def withdraw(self, number: int) -> None:
        """Cancels a request of ours. `on_reply` is not called."""
        with self._lock:
            on_reply = self._asked.pop(number, None)
        if on_reply is not None:
            self.send({"method": "notifications/cancelled", "params": {"requestId": number}})

    def take_reply(self, number: object, result: dict[str, Any] | None) -> bool:
        """False if nothing was asked under this number."""
        with self._lock:
            on_reply = self._asked.pop(number, None) if type(number) is int else None
        if on_reply is not None:
            self.work(lambda: on_reply(result))
        return on_reply is not None

    def drop_asked(self) -> None:
        """The client is gone and will not reply."""
        with self._lock:
            self._gone = True
            asked, self._asked = list(self._asked.values()), {}
        for on_reply in asked:
            self.work(lambda on_reply=on_reply: on_reply(None))

    # Requests in flight

    def accept(self, message: JsonRpcRequest, size: int, methods: Container[str]) -> ClientRequest:
        """Raises ProtocolError for a duplicate id, a wrong version, or too many requests. `methods` are those of a
        connection with a handshake."""
        if self.find(message.id) is not None:
            raise ProtocolError(INVALID_REQUEST, f"{message.method[:80]}: {SAME_ID}")
        caller = self._identify(message, methods)
        request = ClientRequest(self, message.id, message.params, caller, size)
        with self._lock:
            count = len(self._in_flight)
            if count >= MAX_REQUESTS or (count and self._bytes + size > MAX_REQUEST_BYTES):
                problem = f"{count} requests of {self._bytes >> 20} MiB are running"
                raise ProtocolError(BUSY, f"{problem}, and new ones are refused. Send it again after some answers.")
            self._in_flight[message.id] = request
            self._bytes += size
        return request

    def find(self, request_id: object) -> ClientRequest | None:
        request = self._in_flight.get(request_id) if isinstance(request_id, RequestId) else None
        return request if request is not None and type(request.request_id) is type(request_id) else None

    def remove(self, request: ClientRequest) -> None:
        with self._lock:
            if self._in_flight.get(request.request_id) is request:
                del self._in_flight[request.request_id]
                self._bytes -= request.size
                if self._has_waiter and not self._in_flight:
                    self._idle.notify_all()

    def cancel_all(self, seconds: float) -> None:
        """Waits until no request is in flight, then cancels those that still are."""
        with self._lock:
            self._has_waiter = True
            self._idle.wait_for(lambda: not self._in_flight, seconds)
            rest = list(self._in_flight.values())
        for request in rest:
            request.cancel()

    # Versions

    def greet(self, params: dict[str, Any]) -> str:
        """Handles `initialize`, and returns the version."""
        if self.greeted:
            raise ProtocolError(INVALID_REQUEST, "initialize: this connection is initialized already.")
        problems = _find_problems(params, _INITIALIZE)
        if isinstance(params.get("clientInfo"), dict):
            problems += _find_problems(params["clientInfo"], _CLIENT, "clientInfo.")
        _refuse_problems("initialize", problems)
        version = negotiate_version(params["protocolVersion"])
        self.caller = parse_caller(version, params["clientInfo"], params["capabilities"])
        self.greeted = True
        return version

    def _identify(self, message: JsonRpcRequest, methods: Container[str]) -> Caller:
        """The client that makes a request. `initialize` or the first modern request decides about the connection.
        `server/discover` decides nothing."""
        method, meta = message.method, _get_meta(message.params)
        if _VERSION_KEY in meta and method != "initialize":
            return self._identify_modern(message, meta)
        if self._modern:
            if method == "initialize":
                raise _build_version_error(message.params.get("protocolVersion"))
            check_params(method, meta, _ENVELOPE, "_meta.")
            raise AssertionError("a request without a version has no envelope")
        if not self.greeted and method in methods and method not in _OPEN_TO_ALL:
            advice = f"send initialize first, or name {_VERSION_KEY} {MODERN[-1]} in _meta"
            raise ProtocolError(INVALID_PARAMS, f"{method[:80]}: {advice}.")
        if meta:
            check_params(method, meta, _META, "_meta.")
        return self.caller if self.greeted else Caller()

    def _identify_modern(self, message: JsonRpcRequest, meta: dict[str, Any]) -> Caller:
        if self.greeted:
            problem = "this connection was initialized; its requests must not name a version"
            raise ProtocolError(INVALID_REQUEST, f"{message.method[:80]}: {problem}.")
        check_params(message.method, meta, _ENVELOPE, "_meta.")
        version: str = meta[_VERSION_KEY]
        if not is_modern(version):
            raise _build_version_error(version)
        self.caller = parse_caller(version, meta.get(_INFO_KEY), meta[_CAPABILITIES_KEY])
        self._modern = self._modern or message.method != "server/discover"
        return self.caller


def _build_version_error(version: object) -> ProtocolError:
    data = {"supported": list(MODERN), "requested": version[:80] if isinstance(version, str) else ""}
    words = f"Unsupported protocol version; this server speaks {', '.join(SUPPORTED)}, those before {MODERN[0]} only"
    return ProtocolError(_UNSUPPORTED_VERSION, f"{words} after initialize as the first request.", data)


def _get_meta(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    if meta is None:
        return {}
    if not isinstance(meta, dict):
        raise ProtocolError(INVALID_PARAMS, "_meta has to be an object.")
    return cast("dict[str, Any]", meta)
