"""The schema of a tool's arguments as models are shown it: with nothing in it that a provider refuses.

A provider that refuses one schema refuses the whole question, and with it every other tool. So each keyword of JSON
Schema is shown where it says what it may say in 2020-12, and left out where not: what is left out is only a hint the
less, since arguments are checked by the schema that the server wrote.
"""

import re
from collections.abc import Callable
from typing import Any, cast

from handrail.runtime.foreign.references import resolve_reference
from handrail.runtime.foreign.values import NOUNS, is_number, to_list, to_mapping

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
