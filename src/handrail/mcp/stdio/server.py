"""Serves one client over two descriptors: reads its messages one by one, and answers them."""

import select
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.mcp.errors import SAME_ID, describe_defect
from handrail.mcp.stdio.connection import ClientRequest, StdioConnection
from handrail.mcp.stdio.ending import ServerShutdown
from handrail.mcp.stdio.era import Negotiation
from handrail.mcp.stdio.flying import InFlight
from handrail.mcp.stdio.handlers import Ahead, StdioHandlers
from handrail.mcp.stdio.inlet import MAX_LINE_BYTES, LineReader
from handrail.mcp.stdio.listening import ToolListWatcher
from handrail.mcp.stdio.outlet import MessageWriter
from handrail.mcp.stdio.roots import ClientRoots
from handrail.mcp.stdio.running import CallRunner
from handrail.mcp.stdio.telling import Notifier
from handrail.mcp.stdio.workers import Workers
from handrail.mcp.stdio.workplace import LazySession, OpenRail
from handrail.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpcNotification,
    JsonRpcReply,
    JsonRpcRequest,
    MalformedMessage,
    OversizedLine,
    ProtocolError,
    parse_message,
)

if TYPE_CHECKING:
    from handrail.api import Handrail

GRACE_SECONDS = 1.0
"""How long calls may still be answered after the input has ended, if somebody reads: it may have come from a file."""
JOIN_SECONDS = 5.0
"""How long threads may take to end what was cancelled."""
FLUSH_SECONDS = 1.0


def serve(open_rail: OpenRail, ahead: Ahead, source: int, sink: int, note: Callable[[str], None], at_once: int) -> bool:
    """Serves until the client goes or a signal comes; whether it was a signal. `note` takes lines for a person.
    `at_once`: what a second signal exits with."""
    ending = ServerShutdown(at_once)
    server = StdioServer(open_rail, ahead, MessageWriter(sink, ending.mark_lost), note)
    inlet = LineReader(source, ending.waker, ending.is_alone)
    with ending.handle_signals():
        for line in inlet.lines():
            server.take(line)
            if ending.signalled or ending.lost:
                break
        server.end(GRACE_SECONDS if not (ending.signalled or ending.lost or _is_closed(sink)) else 0.0)
    ending.close()
    return ending.signalled


def _is_closed(sink: int) -> bool:
    """Whether nobody can read it any more."""
    poll = select.poll()
    poll.register(sink, 0)
    return bool(poll.poll(0))


class StdioServer:
    """One client: what comes from it, and what becomes of that."""

    def __init__(self, open_rail: OpenRail, ahead: Ahead, outlet: MessageWriter, note: Callable[[str], None]) -> None:
        self._note = note
        self._outlet = outlet
        self._flying = InFlight()
        self._workers = Workers(self._failed)
        self._connection = StdioConnection(outlet, self._workers)
        self._era = Negotiation(self._connection)
        self._telling = Notifier(self._connection)
        self._listening = ToolListWatcher(self._connection)
        self._running = CallRunner(self._telling, self._listening, self._failed)
        self._workplace = LazySession(open_rail, note)
        self._roots = ClientRoots(self._connection, self._telling)
        self._workplace.when_open(self._opened)
        self._handlers = StdioHandlers(self._era, self._telling, self._listening, self._running, self._workplace, ahead)

    def take(self, line: bytes | OversizedLine) -> None:
        """Takes one message."""
        if isinstance(line, bytes) and (not line or line.isspace()):
            return
        try:
            if isinstance(line, OversizedLine):
                raise MalformedMessage(INVALID_REQUEST, f"a message has at most {MAX_LINE_BYTES >> 20} MiB")
            message = parse_message(line)
        except MalformedMessage as error:
            self._connection.send({"id": error.request_id, "error": error.to_wire()})
            return
        match message:
            case JsonRpcRequest():
                self._requested(message, len(line))
            case JsonRpcNotification():
                self._notified(message)
            case JsonRpcReply():
                self._connection.take_reply(message.id, message.result)

    def end(self, grace: float) -> None:
        """Ends everything, within a bound: what runs is cancelled, what was said is sent, the session is closed."""
        self._listening.end()
        self._flying.wait(grace)
        for exchange in self._flying.all():
            exchange.cancel()
        rail = self._workplace.rail
        if rail is not None:
            rail.cancel()
        self._connection.drop_requests()
        joined = _ended(JOIN_SECONDS, *self._running.workers, self._workers)
        self._outlet.flush(FLUSH_SECONDS)
        self._outlet.close()
        if rail is not None and joined:  # else something does not end: whoever opens the session next settles it
            rail.close()

    # What comes

    def _requested(self, request: JsonRpcRequest, size: int) -> None:
        if self._flying.get(request.id) is not None:
            self._refuse(request, ProtocolError(INVALID_REQUEST, f"{request.method[:80]}: {SAME_ID}"))
            return
        try:
            caller = self._era.caller(request, self._handlers.greeted)
            handler = (self._handlers.modern if caller.modern else self._handlers.greeted).get(request.method)
            if handler is None:
                raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {request.method[:80]}")
            exchange = ClientRequest(self._connection, request.id, request.params, caller, self._over)
            self._flying.add(exchange, size)
        except ProtocolError as error:
            self._refuse(request, error)
            return
        try:
            handler(exchange)
        except ProtocolError as error:
            exchange.fail(error)
        except Exception as error:
            exchange.fail(ProtocolError(INTERNAL_ERROR, f"A defect stopped the request ({type(error).__name__})."))
            self._failed(error)

    def _refuse(self, request: JsonRpcRequest, error: ProtocolError) -> None:
        self._connection.send({"id": request.id, "error": error.to_wire()})

    def _notified(self, message: JsonRpcNotification) -> None:
        """What is not understood is passed over: nobody waits for an answer."""
        match message.method:
            case "notifications/cancelled":
                self._cancel(message.params.get("requestId"))
            case "notifications/initialized" if self._era.greeted:
                self._listening.greeted = True
                self._roots.ask()
            case "notifications/roots/list_changed" if self._era.greeted:
                self._roots.ask()
            case _:
                pass

    def _cancel(self, request_id: object) -> None:
        exchange, rail = self._flying.get(request_id), self._workplace.rail
        if exchange is not None and exchange.cancel() and rail is not None and exchange.call_id:
            rail.cancel_call(exchange.call_id)

    def _over(self, exchange: ClientRequest) -> None:
        self._flying.remove(exchange)
        self._listening.leave(exchange)
        self._telling.leave(exchange)

    # The rest

    def _opened(self, rail: "Handrail") -> None:
        from handrail.mcp.news import KINDS  # noqa: PLC0415  nothing happens before there is a session
        from handrail.mcp.stdio.hearing import build_listener  # noqa: PLC0415

        rail.begin_conversations()  # one a process
        rail.subscribe(build_listener(self._telling), kinds=KINDS)
        self._roots.open(rail)

    def _failed(self, error: Exception) -> None:
        with suppress(OSError):
            self._note(describe_defect(error))


def _ended(seconds: float, *those: Workers) -> bool:
    """Whether all of them have ended within this time."""
    until = time.monotonic() + seconds
    ended = [workers.end(max(0.0, until - time.monotonic())) for workers in those]
    return all(ended)
