"""Asks the person at the terminal."""

import os
import sys
import threading
from typing import TextIO

from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question, Reply
from handrail.terminal.prompt import PermissionPrompt
from handrail.terminal.replying import ask_for_reply
from handrail.terminal.request import describe_subject
from handrail.terminal.screen import Screen
from handrail.terminal.source import NO_HOOKS, RequestHooks
from handrail.terminal.told import is_kept, render_kept_line


class TerminalApprover:
    """Asks on stdin and stderr."""

    def __init__(self, hooks: RequestHooks = NO_HOOKS, *, plain: bool = False) -> None:
        self._hooks, self._plain = hooks, plain

    def is_available(self) -> bool:
        return is_person_present()

    def ask(self, request: PermissionRequest, number: int = 1, total: int = 1) -> ApproverReply:
        screen = Screen(sys.stderr, os.environ, plain=self._plain)
        return PermissionPrompt(sys.stdin.fileno(), screen).ask(request, number, total, self._hooks)

    def ask_question(self, question: Question) -> Reply | None:
        """The reply to a question of the model. None: it is left for later."""
        return ask_for_reply(sys.stdin.fileno(), Screen(sys.stderr, os.environ, plain=self._plain), question)

    def report(self, reply: ApproverReply, outcome: Done | Parked | None) -> None:
        request, answer = reply.subject, reply.answer
        if isinstance(request, PermissionRequest) and isinstance(answer, Answer):
            if outcome is None:
                text = f"Answered elsewhere before you: {describe_subject(request)}"
                Screen(sys.stderr, os.environ).write([text])
            elif is_kept(request, answer):
                self._report_commit(request, answer, outcome)

    def _report_commit(self, request: PermissionRequest, answer: Answer, outcome: Done | Parked) -> None:
        results = outcome.results if isinstance(outcome, Done) else ()
        result = next((one for one in results if one.tool_call_id == request.tool_call_id), None)
        screen = Screen(sys.stderr, os.environ, plain=self._plain)
        width = screen.size()[0] - 1
        screen.write([render_kept_line(request, answer, result, width=width, plain=screen.plain)])


def is_person_present() -> bool:
    """Whether stdin and stderr are a terminal with a person at it. False in CI. Only the main thread asks: otherwise
    two threads could ask at once."""
    if os.environ.get("CI") or threading.current_thread() is not threading.main_thread():
        return False
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr) and _is_in_front(sys.stdin)


def _is_in_front(stream: TextIO) -> bool:
    """Whether this process is in the foreground of the terminal."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # not the controlling terminal, so no other job reads its keys
        return True


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty() and os.isatty(stream.fileno())
    except (OSError, ValueError):  # closed, or no stream of the system
        return False
