"""The common keywords of JSON Schema, one function each: what is wrong with a value by this keyword."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

from handrail.protocol.errors import Problem
from handrail.protocol.text import clip_text, render_value
from handrail.runtime.foreign.values import (
    NOUNS,
    build_problem,
    is_json_type,
    is_number,
    is_same_json,
    join_path,
    to_list,
    to_mapping,
)


class Checker(Protocol):
    """Checks what is inside."""

    def of(self, schema: Any, value: Any, where: str) -> Iterator[Problem]:
        """What is wrong with a value at a place."""
        ...

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether nothing is wrong."""
        ...


Keyword = Callable[[Checker, dict[str, Any], Any, str], Iterator[Problem]]
"""A schema that has the keyword, the value and its place."""


def _type(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    names = to_list(schema["type"]) or [schema["type"]]
    if all(isinstance(name, str) and name in NOUNS for name in names) and not any(
        is_json_type(value, name) for name in names
    ):
        yield build_problem(where, f"must be {' or '.join(NOUNS[name] for name in names)}", value)


def _choice(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    choices: Any = schema["enum"]
    if isinstance(choices, list) and not any(is_same_json(one, value) for one in cast("list[Any]", choices)):
        told = ", ".join(one if isinstance(one, str) else render_value(one) for one in cast("list[Any]", choices)[:20])
        yield build_problem(where, f"must be one of {clip_text(told, 300)}", value)


def _const(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if not is_same_json(schema["const"], value):
        yield build_problem(where, f"must be {render_value(schema['const'])}", value)


def _bound(keyword: str, words: str, wrong: Callable[[Any, Any], bool]) -> Keyword:
    def check(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
        limit = schema[keyword]
        if is_number(value) and is_number(limit) and wrong(value, limit):
            yield build_problem(where, f"must be {words.format(limit)}", value)

    return check


def _size(keyword: str, kind: type[Any], words: str, wrong: Callable[[int, Any], bool]) -> Keyword:
    def check(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
        limit = schema[keyword]
        if isinstance(value, kind) and is_number(limit) and wrong(len(value), limit):
            yield build_problem(where, f"must be {words.format(limit)}", value)

    return check


def _required(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    names: Any = schema["required"]
    if isinstance(value, dict) and isinstance(names, list):
        for name in cast("list[Any]", names)[:200]:
            if isinstance(name, str) and name not in value:
                yield Problem(field=join_path(where, name), problem=f"{join_path(where, name)} is required")


def _properties(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    named: Any = schema["properties"]
    if isinstance(value, dict) and isinstance(named, dict):
        for name, inner in cast("dict[str, Any]", named).items():
            if name in value:
                yield from check.of(inner, cast("dict[str, Any]", value)[name], join_path(where, name))


def _others(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    """Names that the schema does not list. Which ones `patternProperties` lists is not checked."""
    if not isinstance(value, dict) or "patternProperties" in schema:
        return
    named = to_mapping(schema.get("properties"))
    for name, inner in cast("dict[str, Any]", value).items():
        if name in named:
            continue
        if schema["additionalProperties"] is False:
            known = f"; there are {', '.join(list(named)[:20])}" if named else ""
            yield build_problem(join_path(where, name), f"is not an argument{clip_text(known, 300)}", inner, got=False)
        else:
            yield from check.of(schema["additionalProperties"], inner, join_path(where, name))


def _items(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    """Entries of one kind; lists whose entries have a schema each are left to the server."""
    if isinstance(value, list) and not isinstance(schema["items"], list) and "prefixItems" not in schema:
        for number, one in enumerate(cast("list[Any]", value)):
            yield from check.of(schema["items"], one, f"{where}[{number}]")


def _all(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    for inner in to_list(schema["allOf"]):
        yield from check.of(inner, value, where)


def _any(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    choices = to_list(schema["anyOf"])
    if choices and not any(check.fits(inner, value) for inner in choices):
        yield from _of_none(check, choices, value, where)


def _of_none(check: Checker, choices: list[Any], value: Any, where: str) -> Iterator[Problem]:
    """Where there is one choice only, or one of the right type, what is wrong with that says more."""
    shapes = [to_mapping(one) for one in choices]
    near = [one for one in shapes if "type" in one and check.fits({"type": one["type"]}, value)]
    if len(near) == 1:
        yield from check.of(near[0], value, where)
    else:
        yield build_problem(where, f"fits none of the {len(choices)} shapes that it may have", value)


def _fewer(size: int, limit: Any) -> bool:
    return size < limit


def _more(size: int, limit: Any) -> bool:
    return size > limit


KEYWORDS: dict[str, Keyword] = {
    "type": _type,
    "enum": _choice,
    "const": _const,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _others,
    "items": _items,
    "minimum": _bound("minimum", "{} or more", lambda value, limit: value < limit),
    "maximum": _bound("maximum", "{} or less", lambda value, limit: value > limit),
    "exclusiveMinimum": _bound("exclusiveMinimum", "more than {}", lambda value, limit: value <= limit),
    "exclusiveMaximum": _bound("exclusiveMaximum", "less than {}", lambda value, limit: value >= limit),
    "minLength": _size("minLength", str, "at least {} characters long", _fewer),
    "maxLength": _size("maxLength", str, "at most {} characters long", _more),
    "minItems": _size("minItems", list, "a list of at least {}", _fewer),
    "maxItems": _size("maxItems", list, "a list of at most {}", _more),
    "allOf": _all,
    "anyOf": _any,
}
