"""Schemas of foreign tools."""

import re
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, Protocol, cast

from handrail.policy.names import remove_invisible
from handrail.protocol.errors import Problem
from handrail.protocol.text import clip_text, render_value
from handrail.protocol.wire import encode, sanitize_json
from handrail.runtime.foreign.source import ForeignTool

# § [runtime.foreign.references] References within one schema: `#` and `#/…`. What lies elsewhere is never fetched.


def resolve_reference(root: dict[str, Any], reference: Any) -> Any:
    """What a reference leads to; None where it is none, or leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for part in reference[1:].split("/")[1:] if reference.startswith("#/") else reference[1:] and [reference]:
        found = _inside(found, part.replace("~1", "/").replace("~0", "~"))
    return found


def _inside(found: Any, name: str) -> Any:
    if isinstance(found, dict):
        return cast("dict[str, Any]", found).get(name)
    if isinstance(found, list) and name.isascii() and name.isdigit() and len(name) < 6:
        entries = cast("list[Any]", found)
        return entries[int(name)] if int(name) < len(entries) else None
    return None


# § [runtime.foreign.accepting] What of another server's listing can be offered: within bounds, and in a form that
# § every provider takes.

MAX_LISTED_TOOLS = 256
"""Of one server."""
_MAX_SCHEMA_BYTES = 64 * 1024
_MAX_LEVELS = 32
_MAX_SCHEMA_PARTS = 5_000
_MAX_NAME_CHARS = 256
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What providers let an argument be called."""


def find_tool_problem(tool: object) -> str:
    """Why a tool cannot be offered, in words; empty where it can be."""
    if not isinstance(tool, ForeignTool):
        return f"it is listed as {render_value(tool)}"
    if not all(isinstance(text, str) for text in (tool.name, tool.title, tool.description)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its name, title or description is no text"
    if not all(isinstance(hint, bool) for hint in (tool.read_only, tool.destructive, tool.idempotent, tool.open_world)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "its hints are neither true nor false"
    if not sanitize_json((tool.name, tool.title, tool.description))[1]:
        return "its name, title or description is no valid Unicode"
    if not tool.name or len(tool.name) > _MAX_NAME_CHARS:
        return f"its name has {len(tool.name)} characters; it may have 1 to {_MAX_NAME_CHARS}"
    return _why_no_arguments(tool.input_schema) or _why_unfit(tool.output_schema or {}, "outputSchema")


def _why_no_arguments(schema: object) -> str:
    if unfit := _why_unfit(schema, "inputSchema"):
        return unfit
    known = cast("dict[str, Any]", schema)
    if known.get("type", "object") != "object":
        return f"its inputSchema is of type {render_value(known['type'])}, not an object"
    properties: Any = known.get("properties", {})
    if not isinstance(properties, dict):
        return "its inputSchema has properties that are no object"
    for name in cast("dict[str, Any]", properties):
        if not _PROPERTY.fullmatch(name):
            return f"it has an argument {render_value(name)}, and no model can be told of one that is called so"
    return ""


def _why_unfit(schema: object, what: str) -> str:
    if not isinstance(schema, dict):
        return f"its {what} is {render_value(schema)}, not an object"
    try:
        size = len(encode(schema))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return f"its {what} is not JSON"
    if size > _MAX_SCHEMA_BYTES:
        return f"its {what} has {size:,} bytes; it may have {_MAX_SCHEMA_BYTES:,}"
    return _SchemaInspection(cast("dict[str, Any]", schema), what).why_unfit()


class _SchemaInspection:
    """One look through a schema."""

    def __init__(self, root: dict[str, Any], what: str) -> None:
        self._root, self._what = root, what
        self._left = _MAX_SCHEMA_PARTS

    def why_unfit(self) -> str:
        return self._of(self._root, _MAX_LEVELS)

    def _of(self, node: Any, depth: int) -> str:
        if not isinstance(node, dict | list):
            return ""
        self._left -= 1
        if depth == 0 or self._left < 0:
            return f"its {self._what} is nested too deeply, or has too many parts"
        if isinstance(node, dict) and not all(isinstance(name, str) for name in cast("dict[object, Any]", node)):
            return f"its {self._what} is not JSON"
        if isinstance(node, dict) and (broken := self._broken(cast("dict[str, Any]", node).get("$ref"))):
            return broken
        inner = cast("dict[str, Any]", node).values() if isinstance(node, dict) else cast("list[Any]", node)
        return next((why for one in inner if (why := self._of(one, depth - 1))), "")

    def _broken(self, reference: Any) -> str:
        if not isinstance(reference, str):
            return ""
        if not reference.startswith("#"):
            return f"its {self._what} refers to {render_value(reference)}, which is elsewhere"
        leads = (
            reference == "#" or not reference.startswith("#/") or resolve_reference(self._root, reference) is not None
        )
        return "" if leads else f"its {self._what} refers to {render_value(reference)}, which is not there"


# § [runtime.foreign.values] JSON values as JSON Schema takes them, and how a problem with one is worded.

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


# § [runtime.foreign.showing] The schema of a tool's arguments as models are shown it: with nothing in it that a
# § provider refuses. A provider that refuses one schema refuses the whole question, and with it every other tool.
# § So each keyword of JSON Schema is shown where it says what it may say in 2020-12, and left out where not: what
# § is left out is only a hint the less, since arguments are checked by the schema that the server wrote.

_NOT_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const")
"""What providers refuse at the top, whatever it says."""
_NAMED = ("properties", "$defs", "definitions", "patternProperties")
"""What holds schemas by names."""
_NOT_SHOWN = {
    "id", "additionalItems", "contentEncoding", "contentMediaType", "contentSchema", "dependencies",
    "dependentRequired", "dependentSchemas", "maxContains", "minContains", "readOnly", "unevaluatedItems", "writeOnly",
}  # fmt: skip
"""Words of JSON Schema, of this version or others, that help no model."""
_MAX_PATTERN_CHARS = 500
_AMBIGUOUS = re.compile(r"\[\[|--|&&|~~|\|\|")
"""What a later Python may read otherwise, and this one warns of."""


def clean_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, cleaned."""
    told = {key: value for key, value in _cleaned(schema).items() if key not in _NOT_AT_THE_TOP}
    shown: dict[str, Any] = {**told, "type": "object", "properties": told.get("properties", {})}
    _without_dead_ends(shown, shown)
    return shown


def _cleaned(schema: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in schema.items() if _is_shown(key, value)}
    for key in shown.keys() & _HOLDS.keys():
        shown[key] = _HOLDS[key](shown[key])
    if isinstance(schema.get("items"), list):  # as older versions wrote it
        shown.pop("items", None)
        shown |= {"prefixItems": _list(to_list(schema["items"]))} if _is_schemas(schema["items"]) else {}
    if "array" in (shown.get("type"), *to_list(shown.get("type"))):
        shown.setdefault("items", {})  # without them, one provider refuses it
    return shown


def _without_dead_ends(schema: Any, root: dict[str, Any]) -> None:
    """Leaves references out that lead nowhere by now."""
    known = to_mapping(schema)
    if "$ref" in known and not isinstance(resolve_reference(root, known["$ref"]), dict):
        del known["$ref"]
    for key in known.keys() & _HOLDS.keys():  # not what only looks like one, as a default may
        held = known[key]
        inner = to_mapping(held).values() if key in _NAMED else to_list(held) or (held,)
        for one in inner:
            _without_dead_ends(one, root)


def _one(schema: Any) -> dict[str, Any]:
    """Written out, where it is true or false: not every provider knows these."""
    return _cleaned(schema) if isinstance(schema, dict) else {} if schema else {"not": {}}  # pyright: ignore[reportUnknownArgumentType]


def _or_none(schema: Any) -> Any:
    return schema if isinstance(schema, bool) else _one(schema)


def _list(schemas: list[Any]) -> list[Any]:
    return [_one(one) for one in schemas]


def _named(schemas: dict[str, Any]) -> dict[str, Any]:
    return {name: _one(one) for name, one in schemas.items() if _is_schema(one)}


def _by_pattern(schemas: dict[str, Any]) -> dict[str, Any]:
    return {source: one for source, one in _named(schemas).items() if _is_pattern(source)}


def _names(given: list[Any]) -> list[Any]:
    return list(dict.fromkeys(one for one in given if isinstance(one, str)))


_HOLDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("items", "contains", "propertyNames", "not", "if", "then", "else"), _one),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _or_none),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _list),
    **dict.fromkeys(_NAMED, _named),
    "patternProperties": _by_pattern,
    "required": _names,
}
"""What is inside a keyword is cleaned too."""


def _is_shown(key: str, value: Any) -> bool:
    """A word that is none of JSON Schema's is nobody's business but the model's."""
    return _SAYS[key](value) if key in _SAYS else not key.startswith("$") and key not in _NOT_SHOWN


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


def _is_schemas(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(map(_is_schema, cast("list[Any]", value)))


def _is_type(value: Any) -> bool:
    names = to_list(value) or [value]
    known = all(isinstance(name, str) and name in NOUNS for name in names)
    return known and len({*names}) == len(names)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pattern(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > _MAX_PATTERN_CHARS or _AMBIGUOUS.search(value):
        return False
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_SAYS: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": lambda value: isinstance(value, list) and value != [],
    "const": lambda _: True,
    "default": lambda _: True,
    "examples": lambda value: isinstance(value, list),
    "required": lambda value: isinstance(value, list),
    "pattern": _is_pattern,
    "multipleOf": lambda value: is_number(value) and value > 0,
    **dict.fromkeys(("title", "description", "format", "$ref"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("uniqueItems", "deprecated"), lambda value: isinstance(value, bool)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("items", "contains", "propertyNames", "not", "if", "then", "else"), _is_schema),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _is_schema),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _is_schemas),
    **dict.fromkeys(_NAMED, lambda value: isinstance(value, dict)),
}
"""The keywords that are shown, each with what it may say."""


# § [runtime.foreign.unseen] Takes out of a server's words what a person does not see and a model reads: there words
# § could be hidden.

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_EXACT = frozenset({"enum", "const", "default", "examples", "pattern"})
"""What counts by every character: left out as a whole, since another value would be a wrong one."""


def strip_invisible(text: str) -> str:
    """The text as a person sees it."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("", remove_invisible(text))


def strip_invisible_schema(value: Any) -> Any:
    """The same of all texts in a schema. A name with something unseen in it is not shown, nor what it is for."""
    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, list):
        return [strip_invisible_schema(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {
            key: strip_invisible_schema(one)
            for key, one in known.items()
            if strip_invisible(key) == key and _can_be_shown(key, one)
        }
    return value


def _can_be_shown(key: str, value: Any) -> bool:
    return key not in _EXACT or strip_invisible_schema(value) == value


# § [runtime.foreign.keywords] The common keywords of JSON Schema, one function each: what is wrong with a value by
# § this keyword.


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


# § [runtime.foreign.checking] Checks arguments against the JSON Schema of another server, and words every problem
# § at once. A schema is a stranger's: checking it takes a bounded number of steps, and follows references within it
# § only. What cannot be checked so, and keywords that are not known here, are left to the server, which checks what
# § it is sent too. Nothing is refused here that the schema allows; nothing that policy says depends on it.

_MAX_STEPS = 20_000
_MAX_PROBLEMS = 20
_MAX_DEPTH_CHECKED = 100
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")
"""The versions of JSON Schema in which nothing counts beside a `$ref`."""


class _TooMuchError(Exception):
    """The check has had its steps."""


def find_argument_problems(schema: dict[str, Any], given: object) -> tuple[Problem, ...]:
    """All that is wrong with the arguments, as far as it can be told."""
    if not isinstance(given, dict):
        text = f"arguments must be an object, got {render_value(given)}"
        return (Problem(field="", problem=text, value=render_value(given)),)
    found: list[Problem] = []
    check = SchemaCheck(schema)
    try:
        for one in check.of(schema, cast("object", given), ""):
            found.append(one)
            if len(found) >= _MAX_PROBLEMS:
                break
    except (_TooMuchError, ValueError, OverflowError, RecursionError):
        pass  # what was found is wrong, the rest is the server's
    return tuple(found)


class SchemaCheck:
    """One check of a value. It has so many steps, whatever the schema is."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._steps = _MAX_STEPS
        self._depth = 0
        self._only_refers = any(version in str(root.get("$schema")) for version in _OLD)

    def of(self, schema: Any, value: Any, where: str) -> Iterator[Problem]:
        """What is wrong with a value at a place."""
        self._step()
        if schema is False:
            yield build_problem(where, "is not allowed here", value)
        if not isinstance(schema, dict):
            return
        known = cast("dict[str, Any]", schema)
        self._depth += 1
        if self._depth > _MAX_DEPTH_CHECKED:
            raise _TooMuchError
        yield from self._reference(known, value, where)
        if not (self._only_refers and "$ref" in known):
            for keyword, check in KEYWORDS.items():
                if keyword in known:
                    self._step()
                    yield from check(self, known, value, where)
        self._depth -= 1

    def fits(self, schema: Any, value: Any) -> bool:
        """Whether nothing is wrong."""
        depth = self._depth
        fits = next(self.of(schema, value, ""), None) is None
        self._depth = depth
        return fits

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise _TooMuchError

    def _reference(self, schema: dict[str, Any], value: Any, where: str) -> Iterator[Problem]:
        target = resolve_reference(self._root, schema.get("$ref"))
        if target is not None:
            yield from self.of(target, value, where)
