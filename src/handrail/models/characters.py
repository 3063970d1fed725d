"""Texts of models, made of whole characters: a halved one can be written neither to the journal nor to a wire."""

from typing import Any


def fix_surrogates(text: str) -> str:
    """The text with halves that belong together joined, and single ones replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def fix_json_surrogates(value: Any) -> Any:
    """The same for every text in a value of JSON."""
    if isinstance(value, str):
        return fix_surrogates(value)
    if isinstance(value, list):
        return [fix_json_surrogates(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {fix_surrogates(str(name)): fix_json_surrogates(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


class SurrogateJoiner:
    """Pieces of one text, in order. What ends in half a character waits for the next piece."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """As much as is whole by now."""
        text = self._half + piece
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return fix_surrogates(text[: len(text) - len(self._half)])

    def rest(self) -> str:
        """What is left when nothing comes any more."""
        left, self._half = fix_surrogates(self._half), ""
        return left
