"""JSON values as JSON Schema takes them, and how a problem with one is worded."""

from collections.abc import Callable
from math import isfinite
from typing import Any, cast

from handrail.protocol.errors import Problem
from handrail.protocol.text import render_value

NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def is_number(value: Any) -> bool:
    """Whether it is a number that JSON can hold; true is none."""
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": is_number,
}


def is_json_type(value: Any, kind: str) -> bool:
    """Whether a value is of a type of JSON Schema, where 1.0 is an integer."""
    return _KINDS[kind](value)


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON: true is not 1, and 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        these, those = cast("list[Any]", one), cast("list[Any]", other)
        return len(these) == len(those) and all(map(is_same_json, these, those))
    if isinstance(one, dict) and isinstance(other, dict):
        this, that = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return this.keys() == that.keys() and all(is_same_json(this[name], that[name]) for name in this)
    return one == other


def to_mapping(value: Any) -> dict[str, Any]:
    """The value where it is an object; else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def to_list(value: Any) -> list[Any]:
    """The value where it is a list; else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def join_path(where: str, name: str) -> str:
    """The place of an entry: `labels[0].name`."""
    spelled = name if name.isidentifier() and len(name) <= 80 else render_value(name)
    return f"{where}.{spelled}" if where else spelled


def build_problem(where: str, words: str, value: Any, *, got: bool = True) -> Problem:
    """What is wrong with a value, and what it is."""
    told = f"{where or 'the arguments'} {words}" + (f", got {render_value(value)}" if got else "")
    return Problem(field=where, problem=told, value=render_value(value))
