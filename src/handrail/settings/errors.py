"""What is raised when settings cannot be used, and how foreign values are shown in it."""

from collections.abc import Sequence

from handrail.protocol.error import HandrailError
from handrail.protocol.text import truncate

MAX_SHOWN_CHARACTERS = 80


class SettingsError(HandrailError):
    """Settings that cannot be used; `problems` holds one line for each thing to correct."""

    def __init__(self, headline: str, problems: Sequence[str], advice: str) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join((f"{headline}:", *(f"  {problem}" for problem in self.problems), advice)))


def truncate_repr(value: object) -> str:
    """The repr of a value, truncated. It is always one line."""
    try:
        return truncate(repr(value), MAX_SHOWN_CHARACTERS)
    except (ValueError, RecursionError):  # an integer with too many digits; tables nested by a long dotted key
        return "a value too large to show"


def quote_path(path: str) -> str:
    """The path, or its repr if it has unprintable characters. It is never truncated."""
    return path if path.isprintable() else repr(path)
