"""The keywords of JSON Schema that are checked here, each one function: what is wrong with a value by this keyword."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Protocol, cast

from handrail.protocol.arguments import Problem
from handrail.protocol.wording import shown, visible
from handrail.runtime.foreign.patterns import pattern
from handrail.runtime.foreign.values import NOUNS, entries, inside, is_number, is_of, mapping, problem, same

_MOST_COMPARED = 300
"""Entries of a list that are held against each other."""


class Checker(Protocol):
    """Checks what is inside."""

    def of(self, schema: Any, value: Any, where: str) -> Iterator[Problem]:
        """What is wrong with a value at a place."""
        ...

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether nothing is wrong."""
        ...

    def step_often(self, steps: int) -> None:
        """Counts what a keyword does many times."""
        ...


Keyword = Callable[[Checker, dict[str, Any], Any, str], Iterator[Problem]]
"""A schema that has the keyword, the value and its place."""


def _type(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    names = entries(schema["type"]) or [schema["type"]]
    if all(isinstance(name, str) and name in NOUNS for name in names) and not any(is_of(value, name) for name in names):
        yield problem(where, f"must be {' or '.join(NOUNS[name] for name in names)}", value)


def _choice(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    choices: Any = schema["enum"]
    if isinstance(choices, list) and not any(same(one, value) for one in cast("list[Any]", choices)):
        told = ", ".join(one if isinstance(one, str) else shown(one) for one in cast("list[Any]", choices)[:20])
        yield problem(where, f"must be one of {visible(told, 300)}", value)


def _const(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if not same(schema["const"], value):
        yield problem(where, f"must be {shown(schema['const'])}", value)


def _bound(keyword: str, words: str, wrong: Callable[[Any, Any], bool]) -> Keyword:
    def check(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
        limit = schema[keyword]
        if is_number(value) and is_number(limit) and wrong(value, limit):
            yield problem(where, f"must be {words.format(limit)}", value)

    return check


def _size(keyword: str, kind: type[Any], words: str, wrong: Callable[[int, Any], bool]) -> Keyword:
    def check(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
        limit = schema[keyword]
        if isinstance(value, kind) and is_number(limit) and wrong(len(value), limit):
            yield problem(where, f"must be {words.format(limit)}", value)

    return check


def _multiple(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    step = schema["multipleOf"]
    if not (is_number(value) and is_number(step)) or step <= 0:
        return
    # As it is written: what differs only by how machines keep decimals is let be.
    if Fraction(str(value)) % Fraction(str(step)) and float(value) % float(step):
        yield problem(where, f"must be a multiple of {step}", value)


def _pattern(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    source = schema["pattern"]
    if isinstance(value, str) and isinstance(source, str) and _matches(source, value) is False:
        yield problem(where, f"must be text that matches {visible(source, 200)}", value)


def _required(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    names: Any = schema["required"]
    if isinstance(value, dict) and isinstance(names, list):
        for name in cast("list[Any]", names)[:200]:
            if isinstance(name, str) and name not in value:
                yield Problem(field=inside(where, name), problem=f"{inside(where, name)} is required")


def _properties(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    named: Any = schema["properties"]
    if isinstance(value, dict) and isinstance(named, dict):
        for name, inner in cast("dict[str, Any]", named).items():
            if name in value:
                yield from check.of(inner, cast("dict[str, Any]", value)[name], inside(where, name))


def _pattern_properties(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if isinstance(value, dict) and isinstance(schema["patternProperties"], dict):
        given = cast("dict[str, Any]", value)
        for source, inner in cast("dict[str, Any]", schema["patternProperties"]).items():
            for name in given:
                check.step_often(1)
                if _matches(source, name):
                    yield from check.of(inner, given[name], inside(where, name))


def _others(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    """Names that the schema does not list."""
    if not isinstance(value, dict):
        return
    named, patterns = mapping(schema.get("properties")), mapping(schema.get("patternProperties"))
    for name, inner in cast("dict[str, Any]", value).items():
        check.step_often(len(patterns))
        if name in named or any(_matches(source, name) is not False for source in patterns):
            continue
        if schema["additionalProperties"] is False:
            known = f"; there are {', '.join(list(named)[:20])}" if named else ""
            yield problem(inside(where, name), f"is not an argument{visible(known, 300)}", inner, got=False)
        else:
            yield from check.of(schema["additionalProperties"], inner, inside(where, name))


def _first_items(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if "items" not in schema:
        yield from _items(check, schema, value, where)


def _items(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if not isinstance(value, list):
        return
    first, rest = schema.get("prefixItems"), schema.get("items")
    if isinstance(rest, list):  # as older versions wrote it
        first, rest = cast("Any", rest), schema.get("additionalItems")
    inner = cast("list[Any]", first) if isinstance(first, list) else []
    for number, one in enumerate(cast("list[Any]", value)):
        yield from check.of(inner[number] if number < len(inner) else rest, one, f"{where}[{number}]")


def _unique(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if schema["uniqueItems"] is True and isinstance(value, list):
        given = cast("list[Any]", value)
        if len(given) <= _MOST_COMPARED:
            check.step_often(len(given))
            if any(same(one, other) for number, one in enumerate(given) for other in given[:number]):
                yield problem(where, "must be a list without repetitions", value)


def _all(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    for inner in entries(schema["allOf"]):
        yield from check.of(inner, value, where)


def _any(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    choices = entries(schema["anyOf"])
    if choices and not any(check.fits(inner, value) for inner in choices):
        yield from _of_none(check, choices, value, where)


def _one(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    choices = entries(schema["oneOf"])
    fitting = sum(check.fits(inner, value) for inner in choices)
    if choices and not fitting:
        yield from _of_none(check, choices, value, where)
    elif fitting > 1:
        yield problem(where, f"must fit one of {len(choices)} shapes, and fits {fitting}", value)


def _of_none(check: Checker, choices: list[Any], value: Any, where: str) -> Iterator[Problem]:
    """Where there is one choice only, or one of the right type, what is wrong with that says more."""
    shapes = [mapping(one) for one in choices]
    near = [one for one in shapes if "type" in one and check.fits({"type": one["type"]}, value)]
    if len(near) == 1:
        yield from check.of(near[0], value, where)
    else:
        yield problem(where, f"fits none of the {len(choices)} shapes that it may have", value)


def _not(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if isinstance(schema["not"], dict | bool) and check.fits(schema["not"], value):
        yield problem(where, "is just what it must not be", value)


def _if(check: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    yield from check.of(schema.get("then" if check.fits(schema["if"], value) else "else"), value, where)


def _dependent(_: Checker, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
    if isinstance(value, dict):
        for name, needed in mapping(schema["dependentRequired"]).items():
            for other in entries(needed) if name in value else ():
                if isinstance(other, str) and other not in value:
                    yield Problem(field=inside(where, other), problem=f"{inside(where, other)} is required with {name}")


def _fewer(size: int, limit: Any) -> bool:
    return size < limit


def _more(size: int, limit: Any) -> bool:
    return size > limit


def _matches(source: str, text: str) -> bool | None:
    found = pattern(source)
    return None if found is None else found.matches(text)


KEYWORDS: dict[str, Keyword] = {
    "type": _type,
    "enum": _choice,
    "const": _const,
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _others,
    "dependentRequired": _dependent,
    "prefixItems": _first_items,
    "items": _items,
    "uniqueItems": _unique,
    "minimum": _bound("minimum", "{} or more", lambda value, limit: value < limit),
    "maximum": _bound("maximum", "{} or less", lambda value, limit: value > limit),
    "exclusiveMinimum": _bound("exclusiveMinimum", "more than {}", lambda value, limit: value <= limit),
    "exclusiveMaximum": _bound("exclusiveMaximum", "less than {}", lambda value, limit: value >= limit),
    "multipleOf": _multiple,
    "minLength": _size("minLength", str, "at least {} characters long", _fewer),
    "maxLength": _size("maxLength", str, "at most {} characters long", _more),
    "minItems": _size("minItems", list, "a list of at least {}", _fewer),
    "maxItems": _size("maxItems", list, "a list of at most {}", _more),
    "minProperties": _size("minProperties", dict, "an object with at least {} entries", _fewer),
    "maxProperties": _size("maxProperties", dict, "an object with at most {} entries", _more),
    "pattern": _pattern,
    "allOf": _all,
    "anyOf": _any,
    "oneOf": _one,
    "not": _not,
    "if": _if,
}
