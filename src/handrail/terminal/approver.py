"""The person at the terminal, as an approver."""

import os
import sys
import termios
import threading
from typing import Any, TextIO, cast

import msgspec

from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question, Reply
from handrail.protocol.wire import convert
from handrail.terminal.keys import KeyReader, KeyTiming
from handrail.terminal.question import NO_HOOKS, RequestDialog, RequestHooks
from handrail.terminal.replying import ask_for_reply
from handrail.terminal.request import describe_subject
from handrail.terminal.screen import Screen
from handrail.terminal.single_keys import enter_raw_mode
from handrail.terminal.told import is_kept, render_kept_line

_TAKE_PASTES, _TAKE_PASTES_RAW = "\x1b[?2004h", "\x1b[?2004l"


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


class PermissionPrompt:
    """Asks on one terminal: reads keys from the descriptor and writes to the screen."""

    def __init__(self, descriptor: int, screen: Screen, timing: KeyTiming | None = None) -> None:
        self._descriptor = descriptor
        self._screen = screen
        self._timing = timing or KeyTiming()

    def ask(
        self, request: PermissionRequest, number: int = 1, of: int = 1, source: RequestHooks = NO_HOOKS
    ) -> ApproverReply:
        """Asks until there is an answer, or there will be none. If the person retries the request, asks about the new
        one."""
        screen, keys = self._screen, KeyReader(self._descriptor, self._timing)
        question: RequestDialog | None = None

        def begin() -> None:
            screen.control(_TAKE_PASTES)
            if question is not None:
                question.hidden = True

        def end() -> None:
            screen.close_page()
            screen.control(f"\r\x1b[K{_TAKE_PASTES_RAW}")

        try:
            with enter_raw_mode(self._descriptor, begin, end):
                while True:
                    question = RequestDialog(
                        request, _to_encodable(request, screen), screen, keys, source, (number, of)
                    )
                    answer = question.wait_for_answer()
                    if question.replaced is None:
                        return ApproverReply(request, answer)
                    request = question.replaced
        except (OSError, termios.error):  # the terminal is gone
            return ApproverReply(request)


def _to_encodable(request: PermissionRequest, screen: Screen) -> PermissionRequest:
    """The request in characters that the terminal can show."""

    def convert_texts(value: Any) -> Any:
        if isinstance(value, str):
            return screen.to_encodable(value)
        if isinstance(value, dict):
            return {name: convert_texts(one) for name, one in cast("dict[str, Any]", value).items()}
        return [convert_texts(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

    return request if screen.shows_all else convert(convert_texts(msgspec.to_builtins(request)), PermissionRequest)
