"""One line that a person types: why not."""

from handrail.terminal.cells import cells, wrapped
from handrail.terminal.keys import Keys
from handrail.terminal.screen import Screen
from handrail.terminal.visible import one_line, visible

_LONGEST = 1_000
_ASKED, _ASKED_SHORTLY = "Why not? Enter denies, also without a reason; Esc goes back: ", "Why not? "
_ROOM = 30


def ask_reason(keys: Keys, screen: Screen) -> str | None:
    """What was typed, perhaps nothing; None when the person went back, or the terminal is gone."""
    typed = ""
    _show(screen, typed)
    while True:
        key = keys.next()
        match key and key.name:
            case "enter":
                screen.clear_status()
                return typed.strip()
            case "esc" | "gone":
                screen.clear_status()
                return None
            case "backspace":
                typed = typed[:-1]
            case "clear":
                typed = ""
            case "text" | "space" | "paste":
                more = key.text if key else ""
                typed = (typed + visible(" ".join(more.splitlines())))[:_LONGEST]
            case _:
                continue
        _show(screen, typed)


def _show(screen: Screen, typed: str) -> None:
    """The end of what was typed, where all of it does not fit. In plain form it is echoed when it is sent."""
    if screen.plain:
        if not typed:
            screen.write([_ASKED.rstrip()])
        return
    columns = screen.size()[0] - 2
    asked = _ASKED if columns - cells(_ASKED) >= _ROOM else _ASKED_SHORTLY
    rows = list(wrapped(one_line(typed), max(5, columns - cells(asked))))
    screen.status(asked + (rows[-1] if rows else ""))
