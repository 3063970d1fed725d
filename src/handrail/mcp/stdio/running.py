"""Runs the calls of a client: at once where that is quick and nothing else is on its way, else on a worker."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from handrail.mcp.calling import ClientCalls, has_answer
from handrail.mcp.outcomes import Outcome, ParkedCall, UnansweredCall
from handrail.mcp.results import build_call_result, refuse_unknown_tool
from handrail.mcp.stdio.connection import ClientRequest
from handrail.mcp.stdio.listening import ToolListWatcher
from handrail.mcp.stdio.telling import Notifier
from handrail.mcp.stdio.workers import Workers
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError

if TYPE_CHECKING:
    from handrail.api import Handrail
    from handrail.protocol.tool_spec import ToolSpec

QUICK = frozenset(("read", "ls", "write", "edit"))
"""Our own tools whose work is bounded. A hop to another thread takes longer than most of their calls."""


class CallRunner:
    """The calls that are on their way. Those with effects have threads of their own: they take turns, and who waits
    for a turn must not keep those waiting who only look."""

    def __init__(self, telling: Notifier, listening: ToolListWatcher, failed: Callable[[Exception], None]) -> None:
        self._telling, self._listening = telling, listening
        self._failed = failed
        self._lookers, self._doers = Workers(failed), Workers(failed, most=8)
        self.workers = (self._doers, self._lookers)
        """The threads, for who ends them."""
        self._lock = threading.Lock()
        self._busy = 0
        """Calls that run or wait for a thread, also those whose client does not wait any more."""

    def start(self, exchange: ClientRequest, calls: ClientCalls) -> None:
        """Has a call run; whatever comes of it, the exchange is answered."""
        spec = calls.rail.spec(exchange.params["name"])
        with self._lock:
            alone = self._busy == 0
            self._busy += 1
        if alone and _is_quick(spec, exchange.params, calls.rail):
            self._run(exchange, calls)
        else:
            workers = self._doers if spec is not None and spec.side_effects else self._lookers
            workers.add(lambda: self._run(exchange, calls))

    def _run(self, exchange: ClientRequest, calls: ClientCalls) -> None:
        call_id = exchange.call_id = calls.rail.new_call_id()
        try:
            if not exchange.cancelled:
                self._telling.follow(exchange, call_id)
                self._settle(exchange, calls, self._outcome(exchange, calls), call_id)
        except ProtocolError as error:
            exchange.fail(error)
        except HandrailError as error:  # what was done cannot be written down, or the session was closed
            exchange.fail(ProtocolError(INTERNAL_ERROR, str(error)))
        except Exception as error:
            exchange.fail(ProtocolError(INTERNAL_ERROR, f"A defect stopped the call ({type(error).__name__})."))
            self._failed(error)
        finally:
            calls.rail.drop_call_id(call_id)
            with self._lock:
                self._busy -= 1
            self._listening.check(calls.rail)

    def _outcome(self, exchange: ClientRequest, calls: ClientCalls) -> Outcome:
        params = exchange.params
        if has_answer(params) and exchange.caller.modern:
            from handrail.mcp.permission.rounds import resume_with_answer  # noqa: PLC0415  few requests bring one

            return resume_with_answer(calls, params, exchange.caller.protocol, partial(self._rename, exchange))
        met = partial(self._rename, exchange)
        return calls.begin(params["name"], params.get("arguments") or {}, exchange.call_id, met)

    def _rename(self, exchange: ClientRequest, call_id: str) -> None:
        """It runs under the id that it was asked about with: that is what is told of, and what is cancelled."""
        exchange.call_id = call_id
        self._telling.follow(exchange, call_id)

    def _settle(self, exchange: ClientRequest, calls: ClientCalls, outcome: Outcome, made: str) -> None:
        """`made`: the id of a call that is new; any other is one that waited before."""
        if isinstance(outcome, UnansweredCall):
            from handrail.mcp.stdio.asking import ask_person  # noqa: PLC0415  most calls ask nobody

            self._telling.follow(exchange, outcome.call_id)
            ask_person(exchange, calls, outcome)
        elif isinstance(outcome, ParkedCall):
            exchange.answer(build_call_result(outcome.interim))
        elif outcome.tool_call_id == made:
            refuse_unknown_tool(outcome)
            exchange.answer(build_call_result(outcome))
        else:
            from handrail.mcp.stdio.asking import hand_over  # noqa: PLC0415  few are kept for the same call

            hand_over(exchange, calls, outcome)


def _is_quick(spec: "ToolSpec | None", params: dict[str, Any], rail: "Handrail") -> bool:
    """Whether the thread that reads may run it: nothing that it might wait for is held by anybody, as far as one can
    tell."""
    if spec is None or spec.category != "builtin" or spec.name not in QUICK or has_answer(params):
        return False
    return not spec.side_effects or rail.is_free()
