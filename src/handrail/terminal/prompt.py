"""The question at a terminal: shown whole, answered by one key that was meant for it."""

import termios
from collections.abc import Callable
from typing import Any, cast

import msgspec

from handrail.protocol.permission import Answer, PermissionRequest
from handrail.terminal.cells import cut
from handrail.terminal.choices import KEYS, NUMBERS, choice_lines, choices, told
from handrail.terminal.keys import Key, Keys, Timing
from handrail.terminal.reason import ask_reason
from handrail.terminal.request import diff_lines, request_lines, subject, title, why_lines
from handrail.terminal.screen import Screen
from handrail.terminal.single_keys import single_keys

_HELD_UP = "A question waits: it appears when no key was pressed for a second."
_LATER = Key("text", "l")
_TAKE_PASTES, _TAKE_PASTES_RAW = "\x1b[?2004h", "\x1b[?2004l"


class Prompt:
    """Asks on one terminal: keys come from the descriptor, what is shown goes to the screen."""

    def __init__(self, descriptor: int, screen: Screen, timing: Timing | None = None) -> None:
        self._descriptor = descriptor
        self._screen = screen
        self._timing = timing or Timing()

    def ask(
        self, request: PermissionRequest, number: int, of: int, still_open: Callable[[], bool] = lambda: True
    ) -> Answer | None:
        """The answer; None when there is none: left for later, answered elsewhere, or the terminal is gone."""
        screen, keys = self._screen, Keys(self._descriptor, self._timing)
        request = _spelled(request, screen)
        question = _Question(request, screen, keys, title(request, number, of))

        def begin() -> None:
            screen.control(_TAKE_PASTES)
            question.hidden = True

        def end() -> None:
            screen.control(f"\r\x1b[K{_TAKE_PASTES_RAW}")

        try:
            with single_keys(self._descriptor, begin, end):
                return question.answered(still_open)
        except (OSError, termios.error):  # the terminal is gone
            return None


def _spelled(request: PermissionRequest, screen: Screen) -> PermissionRequest:
    """The request in characters that the terminal has."""

    def spelled(value: Any) -> Any:
        if isinstance(value, str):
            return screen.spelled(value)
        if isinstance(value, dict):
            return {name: spelled(one) for name, one in cast("dict[str, Any]", value).items()}
        return [spelled(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

    return request if screen.shows_all else msgspec.convert(spelled(msgspec.to_builtins(request)), PermissionRequest)


class _Question:
    """One question on its way to its answer."""

    def __init__(self, request: PermissionRequest, screen: Screen, keys: Keys, heading: str) -> None:
        self._request = request
        self._screen = screen
        self._keys = keys
        self._heading = heading
        self._below: list[str] = []
        """What has not been shown yet."""
        self._seen = False
        """Whether the question itself was shown to its end."""
        self._possible = {choice.key for choice in choices(request)}
        self.hidden = True
        """Whether it has to be shown, for the first time or again."""

    def answered(self, still_open: Callable[[], bool]) -> Answer | None:
        """Takes keys until one is an answer."""
        while True:
            if self.hidden:
                self._keys.wait_until_quiet(lambda: self._screen.status(_HELD_UP))
                self._show()
            key = self._keys.next()
            if self.hidden:
                continue  # the process was stopped, and goes on: what was pressed was for nobody
            if key is None:
                if not still_open():
                    return self._left(f"Answered elsewhere: {subject(self._request)}")
            elif key.name == "gone":
                return None
            elif key == _LATER:
                return self._left(f"Left for later (handrail approvals lists it): {subject(self._request)}")
            elif (answer := self._answer_of(key)) is not None:
                width = self._screen.size()[0] - 1
                self._end(told(self._request, answer, width=width, plain=self._screen.plain))
                return answer

    def _show(self) -> None:
        """As much of it as the screen has room for; in its first moments it takes no key."""
        screen, width = self._screen, self._screen.width
        self.hidden = self._seen = False
        lines = request_lines(self._request, width=width)
        keys = choice_lines(self._request, width=width, plain=screen.plain)
        screen.clear_status()
        screen.mark()
        self._below = screen.framed_lines(self._heading, [*lines, "", *keys])
        self._go_on(self._page())
        self._keys.drop_early()

    def _left(self, line: str) -> None:
        """There is no answer, and this is why."""
        self._end(cut(line, self._screen.size()[0] - 1))

    def _answer_of(self, key: Key) -> Answer | None:
        """The answer that a key gives; None where it gives none, which it then says or shows something else."""
        letter = NUMBERS.get(key.text, key.text) if key.name == "text" else ""
        if letter == "n" or key.name == "esc":
            reason = ask_reason(self._keys, self._screen)
            if reason is not None:
                return Answer(kind="deny", reason=reason or None)
            self._say_what_is_left()
        elif letter in KEYS and letter in self._possible:
            if self._seen:
                return Answer(kind=KEYS[letter])
            self._screen.status(f"Look at all of it first: space shows more, then {letter}.")
        elif key.name == "paste":
            self._screen.status("A pasted text is no answer. Press one key.")
        else:
            self._look(key.name, letter)
        return None

    def _look(self, name: str, letter: str) -> None:
        """Shows more: the next page or line, the whole change, or why it is asked."""
        width = self._screen.size()[0] - 1
        if name in {"space", "page down"} and self._below:
            self._go_on(self._page())
        elif name == "down" and self._below:
            self._go_on(1)
        elif letter == "x" and self._seen:
            self._more(why_lines(self._request, width))
        elif letter in {"d", "v"} and self._seen and self._request.preview is not None:
            self._more(diff_lines(self._request.preview, width))
        elif letter == "q" and self._seen and self._below:
            self._below = []
            self._go_on(0)

    def _more(self, lines: list[str]) -> None:
        keys = choice_lines(self._request, width=self._screen.width, plain=self._screen.plain)
        self._below = [*lines, "", *keys]
        self._go_on(self._page())

    def _go_on(self, count: int) -> None:
        self._screen.clear_status()
        self._screen.write(self._below[:count])
        self._below = self._below[count:]
        self._seen = self._seen or not self._below
        self._say_what_is_left()

    def _say_what_is_left(self) -> None:
        if not self._below:
            return
        back = " · q back" if self._seen else ""
        self._screen.status(f"{len(self._below)} more lines · space or ↓ shows them{back} · n deny · l later")

    def _page(self) -> int:
        return self._screen.size()[1] - 2

    def _end(self, line: str) -> None:
        self._screen.take_away()
        self._screen.write([line])
