"""Sees to it that a call that asks is answered in the end, by whichever way its client can: a form, another round, or
somebody who answers elsewhere while it waits."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from handrail.mcp.calling import ClientCalls
from handrail.mcp.outcomes import Outcome, ParkedCall, UnansweredCall
from handrail.mcp.permission.answering import apply_form_answer
from handrail.mcp.permission.forms import build_client_form
from handrail.mcp.permission.notifying import notify
from handrail.mcp.permission.rounds import build_input_required
from handrail.mcp.permission.waiting import WAIT_SECONDS, AnswerWatch
from handrail.mcp.permission.watching import ANSWER_POLLER
from handrail.mcp.results import build_call_result
from handrail.mcp.stdio.connection import ClientRequest
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError
from handrail.protocol.results import ToolResult


def ask_person(
    exchange: ClientRequest, calls: ClientCalls, asks: UnansweredCall, seconds: float = WAIT_SECONDS
) -> None:
    """Asks, and returns at once. `seconds`: how long somebody has to answer elsewhere, where the client cannot ask."""
    _Asked(exchange, calls, asks, time.monotonic() + seconds).go_on(lambda: asks)


def hand_over(exchange: ClientRequest, calls: ClientCalls, result: ToolResult[Any]) -> None:
    """Answers a call with its result. What nobody waits for any more, and what could not be written to the client, is
    kept for the same call."""
    if not exchange.answer(build_call_result(result), lambda: calls.settle_delivery(result, reached=True)):
        calls.settle_delivery(result, reached=False)


class _Asked:
    """A call that asks, on its way to an answer."""

    def __init__(self, exchange: ClientRequest, calls: ClientCalls, asks: UnansweredCall, until: float) -> None:
        self.exchange = exchange
        self.calls = calls
        self.asks = asks
        self.until = until

    def go_on(self, find: Callable[[], Outcome]) -> None:
        """Has a worker find out what has become of the call, and answer it with that, or ask by the way that the client
        can. Whatever fails, the client is answered."""

        def work() -> None:
            with _Failing(self):
                self._take(find())

        self.exchange.connection.work(work)

    def fail(self, error: Exception) -> None:
        """Something went wrong with us; the call waits as it did."""
        with suppress(Exception):
            self.calls.release(self.asks.call_id)
        told = str(error) if isinstance(error, HandrailError) else f"A defect stopped it ({type(error).__name__})"
        self.exchange.fail(ProtocolError(INTERNAL_ERROR, f"{told}. The call waits: handrail approvals lists it."))

    def _take(self, outcome: Outcome) -> None:
        if isinstance(outcome, ParkedCall):
            self.exchange.answer(build_call_result(outcome.interim))
            return
        if not isinstance(outcome, UnansweredCall):
            hand_over(self.exchange, self.calls, outcome)
            return
        self.asks, caller = outcome, self.exchange.caller
        self.exchange.call_id = outcome.call_id
        if self.exchange.cancelled:
            self.calls.release(outcome.call_id)
        elif not caller.elicits or not outcome.shown:
            _Elsewhere(self).begin()
        elif caller.modern:
            self.exchange.answer(build_input_required(self.calls, outcome, caller))
        else:
            _Form(self).begin()


class _Failing:
    """Whatever goes wrong in it, the client is answered. What is a defect is told to others too."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, Exception):
            self._asked.fail(error)
        return isinstance(error, HandrailError)


class _Elsewhere:
    """A call that waits for somebody to answer elsewhere, for a while."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self._watched = AnswerWatch(asked.calls, asked.asks)

    def begin(self) -> None:
        """Tells the person, and has it watched."""
        notify(self._asked.asks)
        ANSWER_POLLER.add(self)

    def look(self) -> bool:
        """See `Waiting`."""
        asked, exchange = self._asked, self._asked.exchange
        with _Failing(asked):
            if exchange.cancelled:
                asked.calls.release(asked.asks.call_id)
            elif self._watched.has_changed():
                asked.go_on(lambda: asked.calls.poll(asked.asks))
            elif time.monotonic() >= asked.until:
                asked.go_on(lambda: asked.calls.park(asked.asks))
            else:
                self._watched.tell(exchange.progress)
                return True
        return False


class _Form:
    """A form that is open at the client, until it is sent back, or somebody answers elsewhere."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self._watched = AnswerWatch(asked.calls, asked.asks)
        self._lock = threading.Lock()
        self._over = False
        self._number = 0

    def begin(self) -> None:
        """Opens it, and has it watched."""
        exchange = self._asked.exchange
        form = build_client_form(self._asked.asks, exchange.caller)
        self._number = exchange.connection.ask("elicitation/create", form, self._sent_back)
        ANSWER_POLLER.add(self)

    def look(self) -> bool:
        """See `Waiting`."""
        asked, exchange = self._asked, self._asked.exchange
        with _Failing(asked):
            moved = not exchange.cancelled and self._watched.has_changed()
            if not exchange.cancelled and not moved:
                self._watched.tell(exchange.progress)
                return not self._over
            if self._is_first():
                exchange.connection.withdraw(self._number)
                asked.go_on(lambda: asked.calls.poll(asked.asks) if moved else asked.asks)
        return False

    def _sent_back(self, reply: dict[str, Any] | None) -> None:
        """By a worker. A client that says it has forms, and fails to show one, waits as others do."""
        asked = self._asked
        if not self._is_first():
            return
        with _Failing(asked):
            if reply is None and asked.exchange.cancelled:
                asked.calls.release(asked.asks.call_id)
            elif reply is None:
                _Elsewhere(asked).begin()
            else:
                asked.go_on(
                    lambda: (
                        asked.asks if asked.exchange.cancelled else apply_form_answer(asked.calls, asked.asks, reply)
                    )
                )

    def _is_first(self) -> bool:
        """Whether nobody else has ended it: what was sent back, an answer from elsewhere, or that it was cancelled."""
        with self._lock:
            first, self._over = not self._over, True
        return first
