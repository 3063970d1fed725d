"""Texts of models, made of whole characters: a halved one can be written neither to the journal nor to a wire."""

from typing import Any


def whole(text: str) -> str:
    """The text with halves that belong together joined, and single ones replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def whole_values(value: Any) -> Any:
    """The same for every text in a value of JSON."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [whole_values(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {whole(str(name)): whole_values(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


class Joined:
    """Pieces of one text, in order. What ends in half a character waits for the next piece."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """As much as is whole by now."""
        text = self._half + piece
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return whole(text[: len(text) - len(self._half)])

    def rest(self) -> str:
        """What is left when nothing comes any more."""
        left, self._half = whole(self._half), ""
        return left
