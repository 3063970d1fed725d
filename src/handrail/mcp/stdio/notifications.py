"""Notifications to a client over stdio."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handrail.mcp.protocol import BUSY, DEFAULT_LEVEL, LEVEL_KEY, LEVELS, Level, parse_roots
from handrail.mcp.stdio.requests import ClientRequest, StdioConnection
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import ProtocolError, RequestId

if TYPE_CHECKING:
    from handrail.api import Handrail
    from handrail.protocol.events import Event

_PAUSE_SECONDS = 0.1
"""The time between two progress notifications of a call. Those in between are dropped."""
_MAX_LINE_CHARS = 500
_MAX_SUBSCRIPTIONS = 64
_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_TOOLS_CHANGED = "notifications/tools/list_changed"


class ProgressSender:
    """Sends the progress of one request, with growing numbers."""

    def __init__(self, send: Callable[[dict[str, Any]], None], token: RequestId) -> None:
        self._send, self._token = send, token
        self._lock = threading.Lock()
        self._number = 0
        self._next = 0.0

    def send(self, message: str) -> None:
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return
            self._number, self._next = self._number + 1, now + _PAUSE_SECONDS
            params = {"progressToken": self._token, "progress": self._number, "message": message[:_MAX_LINE_CHARS]}
            self._send({"method": "notifications/progress", "params": params})


class Notifier:
    """Sends progress, log messages and changes of the tool list to one client. Asks it for its roots."""

    def __init__(self, connection: StdioConnection) -> None:
        self._connection = connection
        self._level = LEVELS.index(DEFAULT_LEVEL)
        self._calls: dict[str, ClientRequest] = {}
        """The requests that want progress or log messages, by the ids of their calls. A request may have two."""
        self._lock = threading.Lock()
        self._initialized = False
        """Whether the handshake is complete. Before that the client gets no notifications."""
        self._subscriptions: dict[RequestId, tuple[ClientRequest, bool]] = {}
        """The open subscriptions, each with whether it is about tools."""
        self._offered: tuple[str, ...] | None = None
        self._roots_lock = threading.Lock()
        self._roots_asked = self._roots_answered = 0
        """The numbers of the last question for roots, and of the last one with an answer."""
        self._roots: tuple[str, ...] | None = None
        self._rail: Handrail | None = None

    def attach(self, rail: "Handrail") -> None:
        """Follows the events of the session that was opened."""
        from handrail.mcp.results import MESSAGE_EVENTS, build_message  # noqa: PLC0415  needs a session

        def hear(event: "Event") -> None:
            message, call_id = build_message(event), getattr(event, "tool_call_id", None)
            if message is None:
                return
            if message.is_progress and (request := self._calls.get(call_id or "")) is not None:
                request.progress(message.text)
            self.log(message.level, message.data, call_id)

        rail.begin_conversations()  # one per process
        rail.subscribe(hear, kinds=MESSAGE_EVENTS)
        with self._roots_lock:
            self._rail = rail
            self._apply_roots()

    # Progress and log messages

    def set_level(self, level: Level) -> None:
        """Sets the log level of a client with a handshake."""
        self._level = LEVELS.index(level)

    def follow(self, request: ClientRequest, call_id: str) -> None:
        """Reports on a call until its request ends, if the client asked for it."""
        meta: dict[str, Any] | None = request.params.get("_meta")
        token = meta.get("progressToken") if meta else None
        if token is None and _get_level(request) is None:
            return
        if token is not None and request.send_progress is None:
            request.send_progress = ProgressSender(self._connection.send, token).send
        self._calls[call_id] = request
        request.on_end(lambda: self._forget(call_id, request))

    def log(self, level: Level, data: dict[str, Any], call_id: str | None = None) -> None:
        """Sends a log message if its level is high enough. A modern client sets the level by request."""
        if self._is_wanted(LEVELS.index(level), call_id):
            params = {"level": level, "logger": "handrail", "data": data}
            self._connection.send({"method": "notifications/message", "params": params})

    def _is_wanted(self, level: int, call_id: str | None) -> bool:
        if not self._connection.caller.modern:
            return level >= self._level
        requests = list(self._calls.values()) if call_id is None else [self._calls.get(call_id)]
        levels = [_get_level(request) for request in requests if request is not None]
        return any(least is not None and level >= least for least in levels)

    def _forget(self, call_id: str, request: ClientRequest) -> None:
        if self._calls.get(call_id) is request:
            del self._calls[call_id]

    # Changes of the tool list

    def subscribe(self, request: ClientRequest) -> None:
        """Begins a subscription of a modern client. The answer names only notifications that we send."""
        wants_tools = request.params["notifications"].get("toolsListChanged") is True
        with self._lock:
            if len(self._subscriptions) >= _MAX_SUBSCRIPTIONS:
                raise ProtocolError(BUSY, f"{_MAX_SUBSCRIPTIONS} subscriptions are open; end one of them first")
            self._subscriptions[request.request_id] = (request, wants_tools)
        request.on_end(lambda: self._unsubscribe(request))
        honoured = {"toolsListChanged": True} if wants_tools else {}
        params = {"_meta": _build_subscription_meta(request), "notifications": honoured}
        self._connection.send({"method": "notifications/subscriptions/acknowledged", "params": params})

    def end_subscriptions(self) -> None:
        with self._lock:
            subscriptions = list(self._subscriptions.values())
        for request, _ in subscriptions:
            request.answer({"_meta": _build_subscription_meta(request)})

    def check_tools(self, rail: "Handrail", listed: tuple[str, ...] | None = None) -> None:
        """Notifies if the tools have changed since the last check, or since they were listed without a session."""
        offered = rail.tool_names()
        with self._lock:
            before, self._offered = self._offered, offered
            subscribers = [request for request, wants_tools in self._subscriptions.values() if wants_tools]
        if (before is None or before is offered) and (listed is None or listed == offered):
            return
        if self._initialized:
            self._connection.send({"method": _TOOLS_CHANGED})
        for request in subscribers:
            meta = _build_subscription_meta(request)
            self._connection.send({"method": _TOOLS_CHANGED, "params": {"_meta": meta}})

    def _unsubscribe(self, request: ClientRequest) -> None:
        with self._lock:
            self._subscriptions.pop(request.request_id, None)

    # Roots

    def complete_handshake(self) -> None:
        self._initialized = True
        self.request_roots()

    def request_roots(self) -> None:
        """Asks the client for its roots. The answer to the last question counts."""
        if self._connection.caller.has_roots:
            self._roots_asked = number = self._roots_asked + 1
            self._connection.ask("roots/list", {}, lambda result: self._take_roots(number, result))

    def _take_roots(self, number: int, result: dict[str, Any] | None) -> None:
        """Runs in a worker, so answers may come in another order."""
        if result is None:
            return
        with self._roots_lock:
            if number > self._roots_answered:
                self._roots_answered = number
                self._roots = parse_roots(result)
                self._apply_roots()

    def _apply_roots(self) -> None:
        if self._rail is None or self._roots is None:
            return
        try:
            for text in self._rail.set_client_roots(self._roots):
                self.log("warning", {"text": text})
        except HandrailError:
            pass  # the session was closed meanwhile


def _get_level(request: ClientRequest) -> int | None:
    """The log level of a modern request."""
    if not request.caller.modern:
        return None
    meta: dict[str, Any] = request.params.get("_meta") or {}
    level = meta.get(LEVEL_KEY)
    return None if level is None else LEVELS.index(level)


def _build_subscription_meta(request: ClientRequest) -> dict[str, Any]:
    return {_SUBSCRIPTION_KEY: request.request_id}
