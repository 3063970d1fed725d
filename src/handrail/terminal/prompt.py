"""The question at a terminal: shown whole, answered by one key that was meant for it."""

import termios
from typing import Any, cast

import msgspec

from handrail.protocol.permissions import ApproverReply, PermissionRequest
from handrail.protocol.wire import convert
from handrail.terminal.keys import KeyReader, KeyTiming
from handrail.terminal.question import RequestDialog
from handrail.terminal.screen import Screen
from handrail.terminal.single_keys import enter_raw_mode
from handrail.terminal.source import NO_HOOKS, RequestHooks

_TAKE_PASTES, _TAKE_PASTES_RAW = "\x1b[?2004h", "\x1b[?2004l"


class PermissionPrompt:
    """Asks on one terminal: keys come from the descriptor, what is shown goes to the screen."""

    def __init__(self, descriptor: int, screen: Screen, timing: KeyTiming | None = None) -> None:
        self._descriptor = descriptor
        self._screen = screen
        self._timing = timing or KeyTiming()

    def ask(
        self, request: PermissionRequest, number: int = 1, of: int = 1, source: RequestHooks = NO_HOOKS
    ) -> ApproverReply:
        """Asks until there is an answer, or it is clear that there will be none. Where the person has it tried again,
        the request that takes its place is asked about."""
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
                    question = RequestDialog(request, _spelled(request, screen), screen, keys, source, (number, of))
                    answer = question.wait_for_answer()
                    if question.replaced is None:
                        return ApproverReply(request, answer)
                    request = question.replaced
        except (OSError, termios.error):  # the terminal is gone
            return ApproverReply(request)


def _spelled(request: PermissionRequest, screen: Screen) -> PermissionRequest:
    """The request in characters that the terminal has."""

    def spelled(value: Any) -> Any:
        if isinstance(value, str):
            return screen.to_encodable(value)
        if isinstance(value, dict):
            return {name: spelled(one) for name, one in cast("dict[str, Any]", value).items()}
        return [spelled(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

    return request if screen.shows_all else convert(spelled(msgspec.to_builtins(request)), PermissionRequest)
