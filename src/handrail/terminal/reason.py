"""One line that a person types: why not."""

from handrail.protocol.text import escape_control, measure_width, to_one_line, wrap
from handrail.terminal.keys import KeyReader
from handrail.terminal.screen import Screen

_MAX_REASON_CHARS = 1_000
_ASKED, _ASKED_SHORTLY = "Why not? Enter denies, also without a reason; Esc goes back: ", "Why not? "
_MIN_ROOM_COLUMNS = 30


def ask_reason(keys: KeyReader, screen: Screen) -> str | None:
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
                typed = (typed + escape_control(" ".join(more.splitlines())))[:_MAX_REASON_CHARS]
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
    asked = _ASKED if columns - measure_width(_ASKED) >= _MIN_ROOM_COLUMNS else _ASKED_SHORTLY
    rows = list(wrap(to_one_line(typed), max(5, columns - measure_width(asked))))
    screen.status(asked + (rows[-1] if rows else ""))
