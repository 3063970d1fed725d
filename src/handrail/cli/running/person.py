"""Asks the person at the terminal while a turn runs."""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from handrail.async_api import AsyncHandrail
from handrail.cli.running.view import RunView
from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import ApproverReply, PermissionRequest, Question
from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover


class RunApprover:
    """Asks in the thread of the event loop, which has nothing to do before there is an answer."""

    def __init__(self, rail: AsyncHandrail, view: RunView, *, plain: bool, interrupted: Callable[[], None]) -> None:
        hooks = RequestHooks(rail.rail.is_pending, rail.rail.outdated, rail.rail.retry)
        self._terminal = TerminalApprover(hooks, plain=plain)
        self._rail, self._view, self._interrupted = rail, view, interrupted

    async def ask(self, subject: PermissionRequest | Question, number: int, total: int) -> ApproverReply:
        self._view.end()
        try:
            with _interruptible():
                if isinstance(subject, Question):
                    return ApproverReply(subject, self._terminal.ask_question(subject))
                return self._terminal.ask(subject, number, total)
        except KeyboardInterrupt:
            self._view.print_line("Left waiting. Your files are untouched. handrail approvals lists it.")
            self._interrupted()
            return ApproverReply(self._reload(subject))

    def report(self, reply: ApproverReply, outcome: Done | Parked | None) -> None:
        if isinstance(reply.subject, Question) and outcome is None:
            self._view.print_line("Somebody else replied before you.")
        self._terminal.report(reply, outcome)

    def _reload(self, subject: PermissionRequest | Question) -> PermissionRequest | Question:
        """The request as it is now: the person may have retried it in the prompt that was interrupted."""
        pending = self._rail.rail.waiting() if isinstance(subject, PermissionRequest) else ()
        return next((request for request in pending if request.tool_call_id == subject.tool_call_id), subject)


@contextmanager
def _interruptible() -> Generator[None]:
    """Lets SIGINT and SIGTERM end the prompt, which restores the terminal first."""

    def leave(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    wakes = signal.set_wakeup_fd(-1)  # otherwise the event loop would handle the signal too, afterwards
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakes)
        for number, handler in before.items():
            signal.signal(number, handler)
