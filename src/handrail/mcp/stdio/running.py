"""Runs the calls of a client: at once where that is quick and nothing else is on its way, else on a worker."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from handrail.mcp.calling import Asks, Calls
from handrail.mcp.errors import INTERNAL, INVALID_PARAMS, ProtocolError
from handrail.mcp.results import call_result
from handrail.mcp.stdio.connection import Exchange
from handrail.mcp.stdio.listening import Listening
from handrail.mcp.stdio.telling import Telling
from handrail.mcp.stdio.workers import Workers
from handrail.protocol.error import HandrailError, UsageError
from handrail.protocol.result import ToolResult
from handrail.protocol.tool import ToolSpec
from handrail.rail import Handrail

QUICK = frozenset(("read", "ls", "write", "edit"))
"""Our own tools whose work is bounded. A hop to another thread takes longer than most of their calls."""
WITHDRAWN = "The client cancelled the call before anybody answered."


class Running:
    """The calls that are on their way. Those with effects have threads of their own: they take turns, and who waits
    for a turn must not keep those waiting who only look."""

    def __init__(self, telling: Telling, listening: Listening, failed: Callable[[Exception], None]) -> None:
        self._telling, self._listening = telling, listening
        self._failed = failed
        self.lookers, self._doers = Workers(failed), Workers(failed, most=8)
        self._lock = threading.Lock()
        self._busy = 0
        """Calls that run or wait for a thread, also those whose client does not wait any more."""
        self._asking: dict[Exchange, Asks] = {}

    def start(self, exchange: Exchange, calls: Calls) -> None:
        """Has a call run; whatever comes of it, the exchange is answered."""
        spec = calls.rail.spec(exchange.params["name"])
        with self._lock:
            alone = self._busy == 0
            self._busy += 1
        if alone and _is_quick(spec, calls.rail) and "requestState" not in exchange.params:
            self._run(exchange, calls)
        else:
            workers = self._doers if spec is not None and spec.side_effects else self.lookers
            workers.add(lambda: self._run(exchange, calls))

    def cancel(self, exchange: Exchange, rail: Handrail) -> None:
        """Ends a call that its client does not wait for any more. Where it waits for a person, the question is
        withdrawn: a yes that comes later would run what nobody wants."""
        if exchange.call_id:
            rail.cancel_call(exchange.call_id)
        if (asks := self._asking.pop(exchange, None)) is not None:
            self.lookers.add(lambda: _withdraw(rail, asks))

    def over(self, exchange: Exchange) -> None:
        """The exchange is answered or cancelled."""
        self._telling.leave(exchange)
        if not exchange.cancelled:
            self._asking.pop(exchange, None)

    def end(self, seconds: float) -> bool:
        """Ends the threads; whether that came about within this time."""
        return all([self._doers.end(seconds), self.lookers.end(seconds)])

    def _run(self, exchange: Exchange, calls: Calls) -> None:
        rail = calls.rail
        try:
            exchange.call_id = rail.new_call_id()
            if not exchange.cancelled:
                self._telling.follow(exchange, exchange.call_id)
                self._answer(exchange, calls, _outcome(exchange, calls))
        except ProtocolError as error:
            exchange.fail(error)
        except HandrailError as error:  # what was done cannot be written down, or the session was closed
            exchange.fail(ProtocolError(INTERNAL, str(error)))
        except Exception as error:
            exchange.fail(ProtocolError(INTERNAL, f"A defect stopped the call ({type(error).__name__})."))
            self._failed(error)
        finally:
            rail.drop_call_id(exchange.call_id)
            with self._lock:
                self._busy -= 1
            self._listening.look(rail)

    def _answer(self, exchange: Exchange, calls: Calls, outcome: ToolResult[Any] | Asks) -> None:
        if not isinstance(outcome, Asks):
            exchange.answer(_told(outcome))
            return
        self._asking[exchange] = outcome
        self._telling.follow(exchange, outcome.call_id)
        if exchange.cancelled:
            self.cancel(exchange, calls.rail)
        else:
            exchange.answer(call_result(outcome.interim))


def _outcome(exchange: Exchange, calls: Calls) -> ToolResult[Any] | Asks:
    params = exchange.params
    return calls.begin(params["name"], params.get("arguments") or {}, exchange.call_id)


def _told(result: ToolResult[Any]) -> dict[str, Any]:
    """A tool that is not there is an error of the protocol, as its specification says; all else is a result that the
    model can read and mend."""
    if result.error is not None and result.error.code == "UNKNOWN_TOOL":
        raise ProtocolError(INVALID_PARAMS, result.error.message, {"tools": result.error.details})
    return call_result(result)


def _is_quick(spec: ToolSpec | None, rail: Handrail) -> bool:
    """Whether the thread that reads may run it: nothing that it might wait for is held by anybody, as far as one can
    tell."""
    if spec is None or spec.category != "builtin" or spec.name not in QUICK:
        return False
    return not spec.side_effects or rail.is_free()


def _withdraw(rail: Handrail, asks: Asks) -> None:
    for request in asks.requests:
        with suppress(UsageError):  # somebody was faster
            rail.answer(request, "deny", reason=WITHDRAWN)
    for question in asks.questions:
        with suppress(UsageError):
            rail.reply(question, None)
