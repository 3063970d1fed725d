"""Words what is wrong with a value, so that a model can act on it."""

import re
import reprlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec

_NOUNS: dict[str, str] = {
    "str": "a string",
    "int": "an integer",
    "bool": "true or false",
    "float": "a number",
    "null": "null",
    "array": "a list",
    "object": "an object",
    "datetime": "a date and time",
}
_WORDS = (
    (r"Expected `(?:int|float)` >= (\S+)", "must be {} or more"),
    (r"Expected `(?:int|float)` <= (\S+)", "must be {} or less"),
    (r"Expected `(?:int|float)` > (\S+)", "must be more than {}"),
    (r"Expected `(?:int|float)` < (\S+)", "must be less than {}"),
    (r"Expected `(?:int|float)` that's a multiple of (\S+)", "must be a multiple of {}"),
    (r"Expected `str` of length >= (\d+)", "must be at least {} characters long"),
    (r"Expected `str` of length <= (\d+)", "must be at most {} characters long"),
    (r"Expected `array` of length >= (\d+)", "must be a list of at least {}"),
    (r"Expected `array` of length <= (\d+)", "must be a list of at most {}"),
    (r"Expected `array` of length (\d+), got \d+", "must be a list of exactly {}"),
    (r"Expected `object` of length >= (\d+)", "must be an object with at least {} entries"),
    (r"Expected `object` of length <= (\d+)", "must be an object with at most {} entries"),
    (r"Expected `str` matching regex (.+)", "must be text that matches {}"),
    (r"Object missing required field `(.+)`", "must have {}"),
)
"""What msgspec finds, as an instruction."""


def describe_problem(name: str, value: object, kind: Any, message: str) -> tuple[str, str, object]:
    """Where the problem is, the problem in words, and the value there.

    "Expected `int` >= 1" becomes "limit must be 1 or more, got 0"; where only a part is wrong, the part is named.
    """
    parts = re.fullmatch(r"(.*) - at (`key` in )?`\$(.*)`", message, re.DOTALL)
    finding, key, place = parts.groups() if parts else (message, None, "")
    where = f"{name}{place}"
    found = _value_at(value, place)
    words = _words(finding, _kind_at(kind, place))
    return where, f"{'a key of ' if key else ''}{where} {words}, got {render_value(found)}", found


class UnknownField(NamedTuple):
    """A name that an object within an argument must not have."""

    where: str
    key: str
    given: dict[Any, Any]
    names: tuple[str, ...]
    """Those that it may have."""


def find_unknown_field(name: str, value: object, kind: Any, message: str) -> UnknownField | None:
    """What msgspec says about a name that it does not know; None when it says something else."""
    parts = re.fullmatch(r"Object contains unknown field `(.+)` - at `\$(.*)`", message, re.DOTALL)
    parts = parts or re.fullmatch(r"Object contains unknown field `(.+)`()", message, re.DOTALL)
    found = _value_at(value, parts[2]) if parts else None
    if parts is None or not isinstance(found, dict):
        return None
    structs = _structs(_kind_at(kind, parts[2]))
    names = tuple(field.encode_name for struct in structs for field in msgspec.structs.fields(struct))
    return UnknownField(f"{name}{parts[2]}", parts[1], found, names)  # pyright: ignore[reportUnknownArgumentType]


def render_value(value: object) -> str:
    """A value as it may stand in a message: short, printable, JSON-like."""
    return clip_text(_SHORT.repr(value), 80)


def clip_text(text: str, most: int) -> str:
    """The beginning of a text. If it has an unprintable character, everything beyond ASCII is escaped."""
    text = text[: most + 1]  # a megabyte need not be escaped for the part that is kept
    clean = text if text.isprintable() else text.encode("unicode_escape", "surrogatepass").decode("ascii")
    return clean if len(clean) <= most else f"{clean[: most - 3]}…"


def _words(finding: str, kind: Any) -> str:
    for pattern, words in _WORDS:
        match = re.fullmatch(pattern, finding, re.DOTALL)
        if match:
            return words.format(clip_text(match[1], 200))
    match = re.fullmatch(r"Expected `([^`]+)`(?:, got `[^`]+`)?", finding)
    if match:
        return f"must be {' or '.join(_NOUNS.get(noun, noun) for noun in match[1].split(' | '))}"
    choices = [choice if isinstance(choice, str) else render_value(choice) for choice in _choices(kind)]
    if choices and finding.startswith("Invalid enum value"):
        return f"must be one of {', '.join(choices)}"
    return f"is not valid ({clip_text(finding, 200)})"


def _choices(kind: Any) -> tuple[Any, ...]:
    """The values of the Literal that a type is made of."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(choice for part in get_args(kind) for choice in _choices(part))


def _value_at(value: Any, place: str) -> object:
    """What stands at a place such as `[1].name`; as near as the place is known."""
    for index, key in re.findall(r"\[(\d+)\]|\.(\w+)", place.partition("[...]")[0]):
        try:
            value = value[int(index)] if index else value[key]
        except (LookupError, TypeError):
            break
    return value


def _kind_at(kind: Any, place: str) -> Any:
    """The type that a place is meant to have."""
    for key in re.findall(r"\.(\w+)", place):
        fields = [field for struct in _structs(kind) for field in msgspec.structs.fields(struct)]
        kind = next((field.type for field in fields if field.encode_name == key), Any)
    return kind


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for part in get_args(kind):
        yield from _structs(part)


class _Short(reprlib.Repr):
    """Bounded in every direction, and the same on every run: no addresses."""

    def repr1(self, x: Any, level: int) -> str:
        if type(x) in {str, int, list, tuple, dict}:
            return super().repr1(x, level)
        if x is None or isinstance(x, bool):
            return _LITERALS[x]
        return repr(x) if type(x) is float else f"<{type(x).__name__}>"

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to spell integers of more than some thousand digits.
        return super().repr_int(x, level) if x.bit_length() < 2_000 else "<too large>"


_LITERALS = {None: "null", True: "true", False: "false"}
_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxlong = 80
