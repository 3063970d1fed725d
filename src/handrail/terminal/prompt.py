"""The question at a terminal: shown whole, answered by one key that was meant for it."""

import termios
from typing import Any, cast

import msgspec

from handrail.protocol.permission import PermissionRequest
from handrail.protocol.reading import converted
from handrail.terminal.keys import Keys, Timing
from handrail.terminal.question import Question
from handrail.terminal.screen import Screen
from handrail.terminal.single_keys import single_keys
from handrail.terminal.source import ALONE, Said, Source

_TAKE_PASTES, _TAKE_PASTES_RAW = "\x1b[?2004h", "\x1b[?2004l"


class Prompt:
    """Asks on one terminal: keys come from the descriptor, what is shown goes to the screen."""

    def __init__(self, descriptor: int, screen: Screen, timing: Timing | None = None) -> None:
        self._descriptor = descriptor
        self._screen = screen
        self._timing = timing or Timing()

    def ask(self, request: PermissionRequest, number: int = 1, of: int = 1, source: Source = ALONE) -> Said:
        """Asks until there is an answer, or it is clear that there will be none. Where the person has it tried again,
        the request that takes its place is asked about."""
        screen, keys = self._screen, Keys(self._descriptor, self._timing)
        question: Question | None = None

        def begin() -> None:
            screen.control(_TAKE_PASTES)
            if question is not None:
                question.hidden = True

        def end() -> None:
            screen.close_page()
            screen.control(f"\r\x1b[K{_TAKE_PASTES_RAW}")

        try:
            with single_keys(self._descriptor, begin, end):
                while True:
                    question = Question(request, _spelled(request, screen), screen, keys, source, (number, of))
                    answer = question.answered()
                    if question.replaced is None:
                        return Said(request, answer)
                    request = question.replaced
        except (OSError, termios.error):  # the terminal is gone
            return Said(request)


def _spelled(request: PermissionRequest, screen: Screen) -> PermissionRequest:
    """The request in characters that the terminal has."""

    def spelled(value: Any) -> Any:
        if isinstance(value, str):
            return screen.spelled(value)
        if isinstance(value, dict):
            return {name: spelled(one) for name, one in cast("dict[str, Any]", value).items()}
        return [spelled(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

    return request if screen.shows_all else converted(spelled(msgspec.to_builtins(request)), PermissionRequest)
