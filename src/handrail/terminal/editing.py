"""One line that a person changes: a command that is to be tried in other words."""

from handrail.protocol.text import escape_char, escape_control, measure_width
from handrail.terminal.keys import KeyPress, KeyReader
from handrail.terminal.screen import Screen

_MAX_TEXT_CHARS = 100_000
_ASKED = "$ "
_HOW = "Change the command; Enter tries it in a copy, Esc goes back."
_PLAINLY = "Type the whole new command; Enter tries it in a copy, Esc goes back:"


def edit_command(keys: KeyReader, screen: Screen, command: str) -> str | None:
    """The command as it is to be tried; None when the person went back. In plain form, where nothing typed can be
    shown, it is typed anew: what was understood is shown with the question that follows."""
    line = _LineEditor("" if screen.plain else command)
    screen.status(_PLAINLY if screen.plain else _HOW)
    if not screen.plain:
        screen.write([""])
    while True:
        if not screen.plain:
            line.draw(screen)
        key = keys.next()
        if key is None:
            continue
        if key.name == "enter" or key.name in {"esc", "gone"}:
            screen.clear_status()
            typed = line.text.strip()
            return typed if key.name == "enter" and typed else None
        line.press(key)


class _LineEditor:
    """A text and the place in it where something is typed. A line break is one sign of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = len(text)

    def press(self, key: KeyPress) -> None:
        match key.name:
            case "left" | "right":
                self._at = max(0, min(len(self.text), self._at + (1 if key.name == "right" else -1)))
            case "home" | "end":
                self._at = 0 if key.name == "home" else len(self.text)
            case "backspace":
                self._cut(max(0, self._at - 1), self._at)
            case "delete":
                self._cut(self._at, self._at + 1)
            case "clear":
                self._cut(0, self._at)
            case "text" | "space" | "paste":
                self._put(key.text.replace("\r\n", "\n").replace("\r", "\n"))
            case _:
                pass

    def draw(self, screen: Screen) -> None:
        """The part of it around the place, where all of it does not fit."""
        room = screen.size()[0] - len(_ASKED) - 2
        before, after = _shown(self.text[: self._at]), _shown(self.text[self._at :])
        while measure_width(before) > room:
            before = before[max(1, len(before) // 2) :] if measure_width(before) > 2 * room else before[1:]
        screen.status(f"{_ASKED}{before}{after}", measure_width(_ASKED + before))

    def _cut(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self._at = start

    def _put(self, more: str) -> None:
        more = more[: _MAX_TEXT_CHARS - len(self.text)]
        self.text = self.text[: self._at] + more + self.text[self._at :]
        self._at += len(more)


def _shown(text: str) -> str:
    return escape_control(text).replace("\n", "⏎").replace("\t", escape_char("\t"))
