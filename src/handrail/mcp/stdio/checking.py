"""Checks what a request says about itself: everything that is wrong with it is told at once."""

from collections.abc import Callable
from typing import Any

from handrail.mcp.caller import LEVELS
from handrail.protocol.jsonrpc import INVALID_PARAMS, ProtocolError, is_request_id

Check = Callable[[object], bool]


class ParamField:
    """One of the fields of an object: what it has to be, in words and as a question."""

    def __init__(self, words: str, check: Check, *, needed: bool = True) -> None:
        self.words, self.check, self.needed = words, check, needed


def build_text_field(*, needed: bool = True) -> ParamField:
    """A text."""
    return ParamField("a text", str.__instancecheck__, needed=needed)


def build_object_field(*, needed: bool = True) -> ParamField:
    """An object."""
    return ParamField("an object", dict.__instancecheck__, needed=needed)


def build_level_field(*, needed: bool = True) -> ParamField:
    """How grave something is."""
    return ParamField(f"one of {', '.join(LEVELS)}", LEVELS.__contains__, needed=needed)


def build_token_field() -> ParamField:
    """What a client knows its request by."""
    return ParamField("a text or an integer of 64 bits", is_request_id, needed=False)


def find_problems(given: dict[str, Any], fields: dict[str, ParamField], where: str = "") -> list[str]:
    """What is wrong with the fields of an object; null is as good as nothing where nothing would do."""
    found: list[str] = []
    for name, field in fields.items():
        value = given.get(name)
        if value is None:
            if field.needed:
                found.append(f"{where}{name} is missing: {field.words}")
        elif not field.check(value):
            found.append(f"{where}{name} has to be {field.words}")
    return found


def refuse(method: str, found: list[str]) -> None:
    """ProtocolError where something is wrong."""
    if found:
        raise ProtocolError(INVALID_PARAMS, f"{method}: {'; '.join(found)}.")
