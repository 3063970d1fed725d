"""Puts what waits to the person at the terminal, in the thread that has it."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from handrail.async_api import AsyncHandrail
from handrail.cli.running.view import RunView
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import PermissionRequest, Question, Reply
from handrail.terminal.asking import ask_on_terminal, ask_question_on_terminal, say_answered_elsewhere, say_kept
from handrail.terminal.source import PromptResult, RequestHooks

_ELSEWHERE = Done(results=())
"""Somebody else answered: the loop looks up what came of it."""


class TerminalApprover:
    """Asks until nothing waits, or the person leaves it for later. The loop stands still meanwhile: it has nothing to
    do before there is an answer."""

    def __init__(self, rail: AsyncHandrail, view: RunView, *, plain: bool, interrupted: Callable[[], None]) -> None:
        self._rail, self._view, self._plain, self._interrupted = rail, view, plain, interrupted

    async def __call__(self, parked: Parked) -> Done | Parked:
        """What came of the answers, or what still waits."""
        outcome: Done | Parked = parked
        of = len(parked.requests)
        while isinstance(outcome, Parked) and (outcome.requests or outcome.questions):
            self._view.end()
            try:
                with _interruptible():
                    more = self._put(outcome, of)
            except KeyboardInterrupt:
                self._view.print_line("Left waiting. Your files are untouched. handrail approvals lists it.")
                self._interrupted()
                return outcome
            if more is None:
                return outcome
            outcome = await self._answer(more)
        return outcome

    def _put(self, parked: Parked, of: int) -> "PromptResult | tuple[Question, Reply] | None":
        """Asks the first of what waits; None where it is left for later."""
        if not parked.requests:
            question = parked.questions[0]
            reply = ask_question_on_terminal(question, plain=self._plain)
            return None if reply is None else (question, reply)
        request = parked.requests[0]
        source = RequestHooks(self._is_open, self._rail.rail.outdated, self._rail.rail.retry)
        number = max(1, of - len(parked.requests) + 1)
        said = ask_on_terminal(request, number, max(of, 1), source=source, plain=self._plain)
        return None if said.answer is None and self._is_open(said.request) else said

    async def _answer(self, given: "PromptResult | tuple[Question, Reply]") -> Done | Parked:
        if isinstance(given, tuple):
            return await self._reply(*given)
        outcome: Done | Parked | None = None
        try:
            outcome = await self._rail.answer(given.request, given.answer) if given.answer is not None else None
        except UsageError:
            if self._is_open(given.request):
                raise
            say_answered_elsewhere(given.request)
        if outcome is None:
            return _ELSEWHERE
        own = _result_of(outcome, given.request)
        say_kept(given, own, plain=self._plain)
        return outcome

    async def _reply(self, question: Question, reply: Reply) -> Done | Parked:
        try:
            return await self._rail.reply(question, reply)
        except UsageError:
            if question.tool_call_id in {one.tool_call_id for one in self._rail.rail.waiting_questions()}:
                raise
            self._view.print_line("Somebody else replied before you.")
            return _ELSEWHERE

    def _is_open(self, request: PermissionRequest) -> bool:
        return any((one.id, one.revision) == (request.id, request.revision) for one in self._rail.rail.waiting())


def _result_of(outcome: Done | Parked, request: PermissionRequest) -> Any:
    results = outcome.results if isinstance(outcome, Done) else ()
    return next((one for one in results if one.tool_call_id == request.tool_call_id), None)


@contextmanager
def _interruptible() -> Generator[None]:
    """Lets Ctrl-C, and whoever ends the process, end the question: it gives the terminal back, and raises."""

    def leave(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    wakes = signal.set_wakeup_fd(-1)  # else the loop would hear of it too, afterwards
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakes)
        for number, handler in before.items():
            signal.signal(number, handler)
