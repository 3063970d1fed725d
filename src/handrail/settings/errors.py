"""What is raised when settings cannot be used, and how foreign values are shown in it."""

from collections.abc import Sequence

from handrail.protocol.error import HandrailError

_SHOWN_CHARACTERS = 80


class SettingsError(HandrailError):
    """Settings that cannot be used; `problems` holds one line for each thing to correct."""

    def __init__(self, headline: str, problems: Sequence[str], advice: str) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join((f"{headline}:", *(f"  {problem}" for problem in self.problems), advice)))


def clip(text: str) -> str:
    """The text, cut to what fits in a message."""
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def plain(text: str) -> str:
    """The text on one line, with what a terminal could be misled by written out."""
    return text if text.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shown(value: object) -> str:
    """A value as a message shows it: on one line, escaped, cut."""
    try:
        return clip(repr(value))
    except (ValueError, RecursionError):  # an integer with too many digits; tables nested by a long dotted key
        return "a value too large to show"


def shown_path(path: str) -> str:
    """A path as a message shows it: whole, and escaped only where a terminal could be misled."""
    return path if path.isprintable() else repr(path)
