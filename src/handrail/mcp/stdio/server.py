"""The MCP server over stdio."""

import os
import select
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from handrail.mcp.protocol import MODERN, describe_defect
from handrail.mcp.results import CACHED, INSTRUCTIONS, SERVER_INFO, build_tool_list
from handrail.mcp.sessions import LazySession, OpenRail
from handrail.mcp.stdio.call_runner import CallRunner
from handrail.mcp.stdio.notifications import Notifier
from handrail.mcp.stdio.requests import LEVEL, OBJECT, TEXT, ClientRequest, ParamField, StdioConnection, check_params
from handrail.mcp.stdio.streams import MAX_LINE_BYTES, LineReader, MessageWriter
from handrail.mcp.workers import Workers, end_all
from handrail.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpcNotification,
    JsonRpcReply,
    JsonRpcRequest,
    MalformedMessage,
    ProtocolError,
    parse_message,
)

if TYPE_CHECKING:
    from msgspec import Raw

ListAhead = Callable[[], "dict[str, Raw] | None"]
"""The tools that a session will list, by name. None if only a session knows."""
Handler = Callable[[ClientRequest], object]

GRACE_SECONDS = 1.0
"""How long calls may still be answered after the input has ended, if the output is open: both may be files."""
JOIN_SECONDS = 5.0
"""How long cancelled calls may take to end."""
FLUSH_SECONDS = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}}
_CALL = {"name": TEXT, "arguments": OBJECT.optional, "inputResponses": OBJECT.optional, "requestState": TEXT.optional}
_NO_CURSOR = ParamField(
    "a cursor from this server; it gives no cursors", frozenset[object]().__contains__, required=False
)


def serve(
    open_rail: OpenRail, list_ahead: ListAhead, source: int, sink: int, note: Callable[[str], None], exit_code: int
) -> bool:
    """Serves one client until it goes or a signal comes. Returns whether it was a signal.

    `note` takes lines for a person. A second signal exits with `exit_code`.
    """
    shutdown = ServerShutdown(exit_code)
    server = StdioServer(open_rail, list_ahead, MessageWriter(sink, shutdown.mark_lost), note)
    with shutdown.handle_signals():
        for line in LineReader(source, shutdown.waker, shutdown.is_orphaned).lines():
            server.take(line)
            if shutdown.signalled or shutdown.lost:
                break
        server.end(0.0 if shutdown.signalled or shutdown.lost or _is_closed(sink) else GRACE_SECONDS)
    shutdown.close()
    return shutdown.signalled


def _is_closed(sink: int) -> bool:
    """Whether no process can read it any more."""
    poll = select.poll()
    poll.register(sink, 0)
    return bool(poll.poll(0))


class ServerShutdown:
    """Why the server has to end. `waker` becomes readable then."""

    def __init__(self, exit_code: int) -> None:
        self.waker, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._exit_code = exit_code
        self._parent = os.getppid()
        self.signalled = False
        self.lost = False
        """Whether the client stopped reading."""

    def mark_lost(self) -> None:
        self.lost = True
        self._write()

    def is_orphaned(self) -> bool:
        """Whether the parent process is gone. Another process may still hold our input open."""
        return os.getppid() != self._parent

    @contextmanager
    def handle_signals(self) -> Generator[None]:
        before = {number: signal.signal(number, self._take_signal) for number in _SIGNALS}
        wakeup = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)

    def close(self) -> None:
        os.close(self.waker)
        os.close(self._wake)

    def _take_signal(self, *_: Any) -> None:
        if self.signalled:
            os._exit(self._exit_code)  # the journal has every call
        self.signalled = True
        self._write()

    def _write(self) -> None:
        with suppress(OSError):  # full: the waker is readable
            os.write(self._wake, b"\0")


class StdioServer:
    """Dispatches the messages of one client."""

    def __init__(
        self, open_rail: OpenRail, list_ahead: ListAhead, writer: MessageWriter, note: Callable[[str], None]
    ) -> None:
        self._note = note
        self._list_ahead = list_ahead
        self._writer = writer
        self._workers = Workers(self._report)
        self._connection = StdioConnection(writer, self._workers)
        self._notifier = Notifier(self._connection)
        self._session = LazySession(open_rail, self._notifier.attach, note)
        self._runner = CallRunner(self._notifier, self._report)
        self._methods: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": lambda request: request.answer({}),
            "logging/setLevel": self._set_level,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }
        """The methods after a handshake."""
        self._modern_methods: dict[str, Handler] = {
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "subscriptions/listen": self._subscribe,
        }

    def take(self, line: bytes | None) -> None:
        """Handles one line."""
        if line is not None and (not line or line.isspace()):
            return
        try:
            if line is None:
                raise MalformedMessage(INVALID_REQUEST, f"a message has at most {MAX_LINE_BYTES >> 20} MiB")
            message = parse_message(line)
        except MalformedMessage as error:
            self._connection.send_error(error.request_id, error)
            return
        match message:
            case JsonRpcRequest():
                self._take_request(message, len(line))
            case JsonRpcNotification():
                self._take_notification(message)
            case JsonRpcReply():
                self._connection.take_reply(message.id, message.result)

    def end(self, grace: float) -> None:
        """Ends all within a bound: answers are sent for `grace` seconds, then calls are cancelled."""
        self._notifier.end_subscriptions()
        self._connection.cancel_all(grace)
        rail = self._session.rail
        if rail is not None:
            rail.cancel()
        self._connection.drop_asked()
        ended = end_all((*self._runner.workers, self._workers), JOIN_SECONDS)
        self._writer.flush(FLUSH_SECONDS)
        self._writer.close()
        if rail is not None and ended:  # otherwise the next process that opens the session settles it
            rail.close()

    # Messages

    def _take_request(self, message: JsonRpcRequest, size: int) -> None:
        try:
            request = self._connection.accept(message, size, self._methods)
        except ProtocolError as error:
            self._connection.send_error(message.id, error)
            return
        try:
            handler = (self._modern_methods if request.caller.modern else self._methods).get(message.method)
            if handler is None:
                raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {message.method[:80]}")
            handler(request)
        except ProtocolError as error:
            request.fail(error)
        except Exception as error:
            request.fail(
                ProtocolError(INTERNAL_ERROR, f"An internal error stopped the request ({type(error).__name__}).")
            )
            self._report(error)

    def _take_notification(self, message: JsonRpcNotification) -> None:
        """Unknown notifications are ignored, as JSON-RPC demands."""
        match message.method:
            case "notifications/cancelled":
                self._cancel(message.params.get("requestId"))
            case "notifications/initialized" if self._connection.greeted:
                self._notifier.complete_handshake()
            case "notifications/roots/list_changed" if self._connection.greeted:
                self._notifier.request_roots()
            case _:
                pass

    def _cancel(self, request_id: object) -> None:
        request, rail = self._connection.find(request_id), self._session.rail
        if request is not None and request.cancel() and rail is not None and request.call_id:
            rail.cancel_call(request.call_id)

    def _report(self, error: Exception) -> None:
        with suppress(OSError):
            self._note(describe_defect(error))

    # Requests

    def _initialize(self, request: ClientRequest) -> None:
        version = self._connection.greet(request.params)
        server = {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": SERVER_INFO}
        request.answer({**server, "instructions": INSTRUCTIONS})

    def _discover(self, request: ClientRequest) -> None:
        server = {"supportedVersions": list(MODERN), "capabilities": _CAPABILITIES, **CACHED}
        request.answer({**server, "instructions": INSTRUCTIONS})

    def _set_level(self, request: ClientRequest) -> None:
        check_params("logging/setLevel", request.params, {"level": LEVEL})
        self._notifier.set_level(request.params["level"])
        request.answer({})

    def _list_tools(self, request: ClientRequest) -> None:
        check_params("tools/list", request.params, {"cursor": TEXT.optional})
        check_params("tools/list", request.params, {"cursor": _NO_CURSOR})
        ahead = self._list_ahead() if self._session.rail is None else None
        if ahead is None:
            rail = self._session.get_calls(request.caller).rail
            self._notifier.check_tools(rail)
            request.answer(build_tool_list(rail.mcp_tools(), request.caller))
        else:
            request.answer(build_tool_list(list(ahead.values()), request.caller))
            # The session is opened while the client reads the list. If that fails, its first call says why.
            self._notifier.check_tools(self._session.get_calls(request.caller).rail, tuple(ahead))

    def _call_tool(self, request: ClientRequest) -> None:
        check_params("tools/call", request.params, _CALL)
        self._runner.start(request, self._session.get_calls(request.caller))

    def _subscribe(self, request: ClientRequest) -> None:
        check_params("subscriptions/listen", request.params, {"notifications": OBJECT})
        self._notifier.subscribe(request)
