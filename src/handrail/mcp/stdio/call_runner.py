"""Runs the calls of a client over stdio."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from handrail.mcp.calls import ClientCalls, Outcome, ParkedCall, UnansweredCall, has_answer
from handrail.mcp.results import build_call_result, refuse_unknown_tool
from handrail.mcp.stdio.notifications import Notifier
from handrail.mcp.stdio.requests import ClientRequest
from handrail.mcp.workers import Workers
from handrail.protocol.errors import HandrailError
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError

if TYPE_CHECKING:
    from handrail.api import Handrail
    from handrail.protocol.tool_spec import ToolSpec

QUICK = frozenset(("read", "ls", "write", "edit"))
"""Our own tools with bounded work. A hop to another thread takes longer than most of their calls."""
_MAX_EFFECT_CALLS = 8


class CallRunner:
    """Runs a quick call in the reading thread if no other call is in flight. Others run in workers.

    Calls with effects take turns. They have their own threads, so that calls without effects do not wait for them.
    """

    def __init__(self, notifier: Notifier, on_error: Callable[[Exception], None]) -> None:
        self._notifier = notifier
        self._on_error = on_error
        self._readers, self._writers = Workers(on_error), Workers(on_error, _MAX_EFFECT_CALLS)
        self.workers = (self._writers, self._readers)
        self._lock = threading.Lock()
        self._count = 0
        """The calls that run or wait for a thread, also cancelled ones."""

    def start(self, request: ClientRequest, calls: ClientCalls) -> None:
        """Has a call run. The request gets an answer in any case."""
        spec = calls.rail.spec(request.params["name"])
        with self._lock:
            alone = self._count == 0
            self._count += 1
        if alone and _is_quick(spec, request.params, calls.rail):
            self._run(request, calls)
        else:
            workers = self._writers if spec is not None and spec.side_effects else self._readers
            workers.add(lambda: self._run(request, calls))

    def _run(self, request: ClientRequest, calls: ClientCalls) -> None:
        call_id = request.call_id = calls.rail.new_call_id()
        try:
            if not request.cancelled:
                self._notifier.follow(request, call_id)
                calls.rail.run_before_audit(lambda: self._settle(request, calls, self._begin(request, calls), call_id))
        except ProtocolError as error:
            request.fail(error)
        except HandrailError as error:  # the result cannot be recorded, or the session was closed
            request.fail(ProtocolError(INTERNAL_ERROR, str(error)))
        except Exception as error:
            request.fail(ProtocolError(INTERNAL_ERROR, f"An internal error stopped the call ({type(error).__name__})."))
            self._on_error(error)
        finally:
            calls.rail.drop_call_id(call_id)
            with self._lock:
                self._count -= 1
            self._notifier.check_tools(calls.rail)

    def _begin(self, request: ClientRequest, calls: ClientCalls) -> Outcome:
        params, on_claim = request.params, partial(self._take_over, request)
        if has_answer(params) and request.caller.modern:
            from handrail.mcp.request_state import resume_with_answer  # noqa: PLC0415  few requests bring an answer

            return resume_with_answer(calls, params, request.caller.protocol, on_claim)
        return calls.begin(params["name"], params.get("arguments") or {}, request.call_id, on_claim)

    def _take_over(self, request: ClientRequest, call_id: str) -> None:
        """Continues an earlier call. Progress and cancellation use its id from then on."""
        request.call_id = call_id
        self._notifier.follow(request, call_id)

    def _settle(self, request: ClientRequest, calls: ClientCalls, outcome: Outcome, new_id: str) -> None:
        """A result under another id than the new one was stored for this call."""
        if isinstance(outcome, ParkedCall):
            request.answer(build_call_result(outcome.interim, calls.rail.dialect))
        elif not isinstance(outcome, UnansweredCall) and outcome.tool_call_id == new_id:
            refuse_unknown_tool(outcome)
            request.answer(build_call_result(outcome, calls.rail.dialect))
        else:
            from handrail.mcp.stdio.approval import ask_person, deliver  # noqa: PLC0415  most calls do not ask

            if isinstance(outcome, UnansweredCall):
                self._notifier.follow(request, outcome.call_id)
                ask_person(request, calls, outcome)
            else:
                deliver(request, calls, outcome)


def _is_quick(spec: "ToolSpec | None", params: dict[str, Any], rail: "Handrail") -> bool:
    if spec is None or spec.category != "builtin" or spec.name not in QUICK or has_answer(params):
        return False
    return not spec.side_effects or rail.is_free()
