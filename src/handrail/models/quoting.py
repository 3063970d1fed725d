"""What a provider says about a question, without what it quotes of the question or of the key."""

from typing import Any

import msgspec

from handrail.models.model import ModelRequest
from handrail.protocol.messages import Message
from handrail.protocol.text import truncate

_MAX_TOLD_CHARS = 200
_MAX_READ_CHARS = 400
"""Characters: more of it is never told."""
_MIN_QUOTE_CHARS, _MIN_KEY_QUOTE_CHARS = 12, 6
"""Characters in a row that are no chance."""
_LEFT_OUT = "…"


def redact_quotes(text: str, request: ModelRequest, key: str | None) -> str:
    """The text in one line, shortened, with three dots for everything that is in the transcript or the key too."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text[:_MAX_READ_CHARS]).split())
    hidden = [False] * len(line)
    if key:
        line = line.replace(key, _LEFT_OUT)
        hidden = _found(line, key, min(_MIN_KEY_QUOTE_CHARS, len(key)))
    said = "\0".join(piece for message in request.messages for piece in _texts(message))
    hidden = [a or b for a, b in zip(hidden, _found(line, said, _MIN_QUOTE_CHARS), strict=True)]
    return truncate("".join(_kept(line, hidden)), _MAX_TOLD_CHARS)


def _found(line: str, source: str, run: int) -> list[bool]:
    """Of every character, whether it is part of a run that the source holds too."""
    found = [False] * len(line)
    for at in range(len(line) - run + 1):
        if line[at : at + run] in source:
            found[at : at + run] = [True] * run
    return found


def _kept(line: str, hidden: list[bool]) -> list[str]:
    kept: list[str] = []
    for character, hide in zip(line, hidden, strict=True):
        if not hide:
            kept.append(character)
        elif not kept or kept[-1] != _LEFT_OUT:
            kept.append(_LEFT_OUT)
    return kept


def _texts(message: Message) -> list[str]:
    """Every text of a message but its pictures: as it is, in one line, and as JSON spells it."""
    values: list[Any] = [msgspec.to_builtins(message)]
    found: list[str] = []
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [one for name, one in value.items() if name != "attachments"]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(value, list | tuple):
            values += value  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, str):
            found += [value, " ".join(value.split()), msgspec.json.encode(value).decode()]
    return found
