"""Asks the user of a client over stdio about a call.

The client shows a form, or repeats the call with an answer. Otherwise the call waits for an answer from elsewhere.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from handrail.mcp.approval_watch import POLLER, ApprovalWatch
from handrail.mcp.calls import ClientCalls, Outcome, ParkedCall, UnansweredCall
from handrail.mcp.elicitation import apply_form, build_form
from handrail.mcp.request_state import build_input_required
from handrail.mcp.results import build_call_result
from handrail.mcp.stdio.requests import ClientRequest
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError
from handrail.protocol.results import ToolResult


def ask_person(request: ClientRequest, calls: ClientCalls, call: UnansweredCall, seconds: float | None = None) -> None:
    """Asks, and returns at once. A client without forms waits this long for an answer from elsewhere."""
    until = time.monotonic() + (calls.rail.permission_wait if seconds is None else seconds)
    _Approval(request, calls, call, until).advance(lambda: call)


def deliver(request: ClientRequest, calls: ClientCalls, result: ToolResult[Any]) -> None:
    """Answers with a result. If it does not reach the client, it is kept for the same call."""
    if not request.answer(
        build_call_result(result, calls.rail.dialect), lambda: calls.settle_delivery(result, reached=True)
    ):
        calls.settle_delivery(result, reached=False)


class _Approval:
    """An unanswered call on its way to an answer."""

    def __init__(self, request: ClientRequest, calls: ClientCalls, call: UnansweredCall, until: float) -> None:
        self.request = request
        self.calls = calls
        self.call = call
        self.until = until

    def advance(self, find: Callable[[], Outcome]) -> None:
        """Has a worker find the outcome of the call, then answer or ask again."""

        def work() -> None:
            self.guard(lambda: self._settle(find()))

        self.request.connection.work(work)

    def guard(self, work: Callable[[], object]) -> bool:
        """Runs some work. If it fails, the client gets an error, the call stays parked, and this returns False."""
        try:
            return bool(work())
        except Exception as error:
            with suppress(Exception):
                self.calls.release(self.call.call_id)
            is_ours = isinstance(error, HandrailError)
            problem = str(error) if is_ours else f"An internal error stopped it ({type(error).__name__})"
            text = f"{problem}. The call waits: handrail approvals lists it."
            self.request.fail(ProtocolError(INTERNAL_ERROR, text))
            if not is_ours:
                raise
            return False

    def _settle(self, outcome: Outcome) -> None:
        request, calls = self.request, self.calls
        if isinstance(outcome, ParkedCall):
            request.answer(build_call_result(outcome.interim, calls.rail.dialect))
            return
        if not isinstance(outcome, UnansweredCall):
            deliver(request, calls, outcome)
            return
        self.call, request.call_id = outcome, outcome.call_id
        if request.cancelled:
            calls.release(outcome.call_id)
        elif not request.caller.elicits or not outcome.revisions:
            _Wait(self).begin()
        elif request.caller.modern:
            request.answer(build_input_required(calls, outcome, request.caller))
        else:
            _Wait(self).begin_form()


class _Wait:
    """Waits until the form comes back, there is an answer from elsewhere, or the time is over."""

    def __init__(self, approval: _Approval) -> None:
        self._approval = approval
        self._call = approval.call
        self._watch = ApprovalWatch(approval.calls, approval.call)
        self._form: int | None = None
        self._lock = threading.Lock()
        self._over = False

    def begin(self) -> None:
        """Waits without a form."""
        self._watch.notify_desktop()
        POLLER.add(self)

    def begin_form(self) -> None:
        """Shows a form, for as long as the client waits."""
        request = self._approval.request
        self._form = request.connection.ask("elicitation/create", build_form(self._call, request.caller), self._take)
        POLLER.add(self)

    def poll(self) -> bool:
        """For the poller."""
        return self._approval.guard(self._check)

    def _check(self) -> bool:
        approval, request, calls, call = self._approval, self._approval.request, self._approval.calls, self._call
        if request.cancelled:
            self._end(lambda: call)
        elif self._watch.has_changed():
            self._end(lambda: calls.poll(call))
        elif time.monotonic() >= approval.until and self._form is None:
            self._end(lambda: calls.park(call))
        else:
            self._watch.remind(request.progress)
        return not self._over

    def _end(self, find: Callable[[], Outcome]) -> None:
        if self._is_first():
            if self._form is not None:
                self._approval.request.connection.withdraw(self._form)
            self._approval.advance(find)

    def _take(self, reply: dict[str, Any] | None) -> None:
        """Takes the form in a worker. None if the client failed to show it: then it waits as others do."""
        approval, call = self._approval, self._call
        if not self._is_first():
            return
        if approval.request.cancelled:
            approval.advance(lambda: call)
        elif reply is None:
            approval.guard(lambda: _Wait(approval).begin())
        else:
            approval.advance(lambda: call if approval.request.cancelled else apply_form(approval.calls, call, reply))

    def _is_first(self) -> bool:
        """Whether nothing else has ended the wait."""
        with self._lock:
            first, self._over = not self._over, True
        return first
