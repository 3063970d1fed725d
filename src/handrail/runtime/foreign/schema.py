"""Schemas of foreign tools: accepted within bounds, cleaned for models, used to check arguments.

A schema is written by a stranger. Each function below does a bounded amount of work on it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isfinite
from operator import ge, le
from typing import Any, NamedTuple, cast

from handrail.policy.names import remove_invisible
from handrail.protocol.errors import Problem
from handrail.protocol.text import clip_text, render_value
from handrail.protocol.wire import encode

_MAX_SCHEMA_BYTES = 64 * 1024
_MAX_LEVELS = 32
_MAX_SCHEMA_PARTS = 5_000
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments that providers accept."""


def find_input_problem(schema: object) -> str:
    """The reason why a tool with this input schema cannot be offered, or an empty text."""
    if problem := find_schema_problem(schema, "inputSchema"):
        return problem
    known = _to_dict(schema)
    if known.get("type", "object") != "object":
        return f"its inputSchema is of type {render_value(known['type'])}, not an object"
    properties: Any = known.get("properties", {})
    if not isinstance(properties, dict):
        return "its inputSchema has properties that are not an object"
    for name in cast("dict[str, Any]", properties):
        if not _PROPERTY.fullmatch(name):
            return f"it has an argument {render_value(name)}, a name that models cannot use"
    return ""


def find_schema_problem(schema: object, title: str) -> str:
    if not isinstance(schema, dict):
        return f"its {title} is {render_value(schema)}, not an object"
    try:
        size = len(encode(schema))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return f"its {title} is not JSON"
    if size > _MAX_SCHEMA_BYTES:
        return f"its {title} has {size:,} bytes; it may have {_MAX_SCHEMA_BYTES:,}"
    problem = next(_list_part_problems(cast("dict[str, Any]", schema)), "")
    return f"its {title} {problem}" if problem else ""


def _list_part_problems(root: dict[str, Any]) -> Iterator[str]:
    """Problems of all objects and lists of a schema, outer ones first."""
    parts: list[Any] = [root]
    count = 0
    for level in range(_MAX_LEVELS + 1):
        count += len(parts)
        if parts and (level == _MAX_LEVELS or count > _MAX_SCHEMA_PARTS):
            yield "is nested too deeply, or has too many parts"
            return
        objects = [_to_dict(part) for part in parts]
        if not all(isinstance(name, str) for known in objects for name in cast("dict[object, Any]", known)):
            yield "is not JSON"
        yield from filter(None, (_find_reference_problem(root, known.get("$ref")) for known in objects))
        inner = (one for part in parts for one in [*_to_dict(part).values(), *_to_list(part)])
        parts = [one for one in inner if isinstance(one, dict | list)]


def _find_reference_problem(root: dict[str, Any], reference: Any) -> str:
    if not isinstance(reference, str):
        return ""
    if not reference.startswith("#"):
        return f"refers to {render_value(reference)}, which is in another document"
    is_dangling = reference.startswith("#/") and _resolve_reference(root, reference) is None
    return f"refers to {render_value(reference)}, which does not exist" if is_dangling else ""


def _resolve_reference(root: dict[str, Any], reference: Any) -> Any:
    """The target of `#` or `#/…`. None for any other reference: other documents are never fetched."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict):
            target = cast("dict[str, Any]", target).get(name)
        elif isinstance(target, list) and name.isascii() and name.isdigit() and len(name) < 6:
            entries = cast("list[Any]", target)
            target = entries[int(name)] if int(name) < len(entries) else None
        else:
            return None
    return target


# Cleaning. A provider that rejects one schema rejects the request with all other tools. So a keyword of JSON Schema
# stays only if its value is valid by the draft of 2020-12. A dropped keyword is a lost hint, because arguments are
# checked against the schema that the server wrote.

_NOT_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const")
"""Keywords that providers reject at the top."""
_SINGLE = ("items", "contains", "propertyNames", "not", "if", "then", "else")
_SINGLE_OR_BOOL = ("additionalProperties", "unevaluatedProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_BY_NAME = ("properties", "$defs", "definitions", "patternProperties")
_UNHELPFUL = {
    "id", "additionalItems", "contentEncoding", "contentMediaType", "contentSchema", "dependencies",
    "dependentRequired", "dependentSchemas", "maxContains", "minContains", "readOnly", "unevaluatedItems", "writeOnly",
}  # fmt: skip
"""Keywords of this draft or others that help no model."""
_DROP: Any = object()
"""Stands for a value that is dropped with its keyword."""
_MAX_PATTERN_CHARS = 500
_AMBIGUOUS = re.compile(r"\[\[|--|&&|~~|\|\|")
"""Set operations: Python warns that it may read them differently in future."""


def clean_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of arguments without anything that a provider rejects."""
    kept = {key: value for key, value in _clean_keywords(schema).items() if key not in _NOT_AT_THE_TOP}
    cleaned: dict[str, Any] = {**kept, "type": "object", "properties": kept.get("properties", {})}
    _drop_dangling_references(cleaned, cleaned)
    return cleaned


def _clean_keywords(schema: dict[str, Any]) -> dict[str, Any]:
    values = {key: _clean_value(key, value) for key, value in schema.items()}
    cleaned = {key: value for key, value in values.items() if value is not _DROP}
    if isinstance(schema.get("items"), list) and (entries := _clean_list(schema["items"])) is not _DROP:
        cleaned["prefixItems"] = entries  # older drafts have one schema for each entry in `items`
    if "array" in (cleaned.get("type"), *_to_list(cleaned.get("type"))):
        cleaned.setdefault("items", {})  # one provider requires it
    return cleaned


def _clean_value(key: str, value: Any) -> Any:
    """Names that are no keywords of JSON Schema are kept as hints for the model."""
    if key in _CLEANERS:
        return _CLEANERS[key](value)
    return _DROP if key.startswith("$") or key in _UNHELPFUL else value


def _drop_dangling_references(schema: Any, root: dict[str, Any]) -> None:
    known = _to_dict(schema)
    if "$ref" in known and not isinstance(_resolve_reference(root, known["$ref"]), dict):
        del known["$ref"]
    for key in known.keys() & {*_SINGLE, *_SINGLE_OR_BOOL, *_LISTS, *_BY_NAME}:  # a `default` is no schema
        held = known[key]
        for inner in _to_dict(held).values() if key in _BY_NAME else _to_list(held) or (held,):
            _drop_dangling_references(inner, root)


def _clean_single(schema: Any) -> Any:
    """A schema as an object: not every provider accepts true and false."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return _clean_keywords(_to_dict(schema)) if isinstance(schema, dict) else _DROP


def _clean_list(schemas: Any) -> Any:
    cleaned = [_clean_single(schema) for schema in _to_list(schemas)]
    return cleaned if cleaned and not any(schema is _DROP for schema in cleaned) else _DROP


def _clean_by_name(schemas: Any) -> Any:
    if not isinstance(schemas, dict):
        return _DROP
    cleaned = {name: _clean_single(schema) for name, schema in _to_dict(schemas).items()}
    return {name: schema for name, schema in cleaned.items() if schema is not _DROP}


def _clean_by_pattern(schemas: Any) -> Any:
    cleaned = _clean_by_name(schemas)
    return _DROP if cleaned is _DROP else {source: cleaned[source] for source in cleaned if _is_pattern(source)}


def _clean_names(names: Any) -> Any:
    if not isinstance(names, list):
        return _DROP
    return list(dict.fromkeys(name for name in _to_list(names) if isinstance(name, str)))


def _is_type(value: Any) -> bool:
    names = _to_list(value) or [value]
    return all(isinstance(name, str) and name in _TYPES for name in names) and len({*names}) == len(names)


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


def _is_number(value: Any) -> bool:
    """Whether a value is a number that JSON can hold."""
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _keep_if(is_valid: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: value if is_valid(value) else _DROP


_CLEANERS: dict[str, Callable[[Any], Any]] = {
    "type": _keep_if(_is_type),
    "enum": _keep_if(lambda value: isinstance(value, list) and value != []),
    "examples": _keep_if(lambda value: isinstance(value, list)),
    "pattern": _keep_if(_is_pattern),
    "multipleOf": _keep_if(lambda value: _is_number(value) and value > 0),
    **dict.fromkeys(("title", "description", "format", "$ref"), _keep_if(lambda value: isinstance(value, str))),
    **dict.fromkeys(("uniqueItems", "deprecated"), _keep_if(lambda value: isinstance(value, bool))),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _keep_if(_is_number)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _keep_if(_is_count)),
    **dict.fromkeys(("minProperties", "maxProperties"), _keep_if(_is_count)),
    **dict.fromkeys(_SINGLE, _clean_single),
    **dict.fromkeys(_SINGLE_OR_BOOL, lambda value: value if isinstance(value, bool) else _clean_single(value)),
    **dict.fromkeys(_LISTS, _clean_list),
    **dict.fromkeys(_BY_NAME, _clean_by_name),
    "patternProperties": _clean_by_pattern,
    "required": _clean_names,
}


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_EXACT = frozenset({"enum", "const", "default", "examples", "pattern"})
"""Keywords whose value must not be changed. It is dropped if it holds invisible characters."""


def strip_invisible(text: str) -> str:
    """The text without characters that a model reads and a person does not see."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("", remove_invisible(text))


def strip_invisible_schema(value: Any) -> Any:
    """A schema with all its texts stripped. A key with invisible characters is dropped with its value."""
    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, list):
        return [strip_invisible_schema(entry) for entry in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            key: stripped
            for key, inner in cast("dict[str, Any]", value).items()
            if strip_invisible(key) == key
            and ((stripped := strip_invisible_schema(inner)) == inner or key not in _EXACT)
        }
    return value


# Checking. Only common keywords are checked. Other keywords and references are left to the server, which checks the
# arguments too. Nothing is refused that the schema allows, and no decision depends on the check.

_MAX_STEPS = 20_000
_MAX_PROBLEMS = 20
_MAX_REQUIRED = 200


class _TooManyStepsError(Exception):
    pass


def find_argument_problems(schema: dict[str, Any], arguments: object) -> tuple[Problem, ...]:
    if not isinstance(arguments, dict):
        text = f"arguments must be an object, got {render_value(arguments)}"
        return (Problem(field="", problem=text, value=render_value(arguments)),)
    problems: list[Problem] = []
    with suppress(_TooManyStepsError, ValueError, OverflowError, RecursionError):  # the rest is left to the server
        for problem in _ArgumentCheck().list_problems(schema, cast("object", arguments), ""):
            problems.append(problem)
            if len(problems) >= _MAX_PROBLEMS:
                break
    return tuple(problems)


class _ArgumentCheck:
    """One check of a value, in a bounded number of steps."""

    def __init__(self) -> None:
        self._steps = 0

    def list_problems(self, schema: Any, value: Any, path: str) -> Iterator[Problem]:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise _TooManyStepsError
        if schema is False:
            yield _build_problem(path, "is not allowed here", value)
        known = _to_dict(schema)
        if "$ref" in known:  # older drafts ignore the keywords beside it
            return
        yield from (_build_problem(path, f"must be {words}", value) for words in _list_mismatches(known, value))
        if isinstance(value, dict):
            yield from self._list_object_problems(known, cast("dict[str, Any]", value), path)
        if isinstance(value, list) and "items" in known:
            yield from self._list_entry_problems(known, cast("list[Any]", value), path)
        yield from (_build_problem(path, f"must be {words}", value) for words in _list_exceeded_limits(known, value))

    def _list_object_problems(self, schema: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[Problem]:
        for name in _to_list(schema.get("required"))[:_MAX_REQUIRED]:
            if isinstance(name, str) and name not in value:
                missing = _join_path(path, name)
                yield Problem(field=missing, problem=f"{missing} is required")
        properties = _to_dict(schema.get("properties"))
        for name, inner in properties.items():
            if name in value:
                yield from self.list_problems(inner, value[name], _join_path(path, name))
        if "additionalProperties" in schema and "patternProperties" not in schema:
            for name, inner in value.items():
                if name not in properties:
                    yield from self._list_extra_problems(schema, inner, _join_path(path, name))

    def _list_extra_problems(self, schema: dict[str, Any], value: Any, path: str) -> Iterator[Problem]:
        if schema["additionalProperties"] is not False:
            yield from self.list_problems(schema["additionalProperties"], value, path)
            return
        names = ", ".join(list(_to_dict(schema.get("properties")))[:20])
        hint = clip_text(f"; there are {names}", 300) if names else ""
        yield Problem(field=path, problem=f"{path} is not an argument{hint}", value=render_value(value))

    def _list_entry_problems(self, schema: dict[str, Any], value: list[Any], path: str) -> Iterator[Problem]:
        if not isinstance(schema["items"], list) and "prefixItems" not in schema:
            for number, entry in enumerate(value):
                yield from self.list_problems(schema["items"], entry, f"{path}[{number}]")


def _list_mismatches(schema: dict[str, Any], value: Any) -> Iterator[str]:
    """The requirements of `type`, `enum` and `const` that a value does not meet."""
    names = _to_list(schema.get("type")) or [schema.get("type")]
    types = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    if len(types) == len(names) and not any(has_type(value) for _, has_type in types):
        yield " or ".join(noun for noun, _ in types)
    choices = schema.get("enum")
    if isinstance(choices, list) and not any(_is_same(choice, value) for choice in cast("list[Any]", choices)):
        shown = [choice if isinstance(choice, str) else render_value(choice) for choice in _to_list(choices)[:20]]
        yield f"one of {clip_text(', '.join(shown), 300)}"
    if "const" in schema and not _is_same(schema["const"], value):
        yield render_value(schema["const"])


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "integer": ("an integer", _is_integer),
    "number": ("a number", _is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
    "array": ("a list", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
}
"""The types of JSON Schema: how a message names each, and whether a value has it."""


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON, where 1 is 1.0 but not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        these, those = cast("list[Any]", one), cast("list[Any]", other)
        return len(these) == len(those) and all(map(_is_same, these, those))
    if isinstance(one, dict) and isinstance(other, dict):
        this, that = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return this.keys() == that.keys() and all(_is_same(this[name], that[name]) for name in this)
    return one == other


class _Limit(NamedTuple):
    type: str
    """The JSON type of the values that it limits."""
    is_met: Callable[[Any, Any], bool]
    words: str


_LIMITS = {
    "minimum": _Limit("number", ge, "{} or more"),
    "maximum": _Limit("number", le, "{} or less"),
    "minLength": _Limit("string", ge, "at least {} characters long"),
    "maxLength": _Limit("string", le, "at most {} characters long"),
    "minItems": _Limit("array", ge, "a list of at least {}"),
    "maxItems": _Limit("array", le, "a list of at most {}"),
}


def _list_exceeded_limits(schema: dict[str, Any], value: Any) -> Iterator[str]:
    for keyword, limit in _LIMITS.items():
        bound = schema.get(keyword)
        if _is_number(bound) and _TYPES[limit.type][1](value):
            size = value if limit.type == "number" else len(value)
            if not limit.is_met(size, bound):
                yield limit.words.format(bound)


def _build_problem(path: str, words: str, value: Any) -> Problem:
    shown = render_value(value)
    return Problem(field=path, problem=f"{path or 'the arguments'} {words}, got {shown}", value=shown)


def _join_path(path: str, name: str) -> str:
    """The path of an entry, such as `labels[0].name`."""
    spelled = name if name.isidentifier() and len(name) <= 80 else render_value(name)
    return f"{path}.{spelled}" if path else spelled


def _to_dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _to_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
