"""Makes a tool out of a definition with a JSON Schema and a handler."""

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Annotated, Any, Literal

import msgspec

from handrail.protocol.errors import UsageError
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Json
from handrail.tools.contract import Context, Output, Tool
from handrail.tools.custom import ANY_EFFECT, CustomData, check_spec, to_output

Handler = Callable[[dict[str, Json]], Any]

_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_BOUNDS = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "multipleOf": "multiple_of",
}  # fmt: skip
_COUNTS = {"minItems": "min_length", "maxItems": "max_length"}
_LIMITS: dict[str, dict[str, str]] = {"string": _LENGTHS, "integer": _BOUNDS, "number": _BOUNDS, "array": _COUNTS}


def tool_from_definition(definition: Mapping[str, Json], handler: Handler) -> Tool:
    """The tool of `{"name", "description", "parameters": {…JSON Schema…}}`; the handler gets a dict."""
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("a tool definition needs a name")
    if not callable(handler):
        raise UsageError(f"the tool {name!r} has no handler that can be called")
    schema: Any = definition.get("parameters") or definition.get("input_schema") or {}
    try:
        arguments = _object(name, schema)
    except (TypeError, ValueError, re.error) as error:
        raise UsageError(f"the tool {name!r} has parameters that cannot be checked: {error}") from error
    spec = ToolSpec(
        name=name,
        title=str(definition.get("title") or name),
        description=str(definition.get("description") or ""),
        arguments=arguments,
        data=CustomData,
        version=str(definition.get("version") or "1.0.0"),
        side_effects=ANY_EFFECT,
        category="custom",
    )

    def run(_: Context, arguments: msgspec.Struct) -> Output:
        return to_output(handler(msgspec.to_builtins(arguments)), name)

    return Tool(check_spec(spec), run)


def _object(name: str, schema: Any) -> type[msgspec.Struct]:
    """An object with named properties, and no others: a name that is not there is a mistake."""
    described = _mapping(name, schema)
    if described.get("type", "object") != "object":
        raise ValueError(f"{name} is of type {render_value(described['type'])}, not an object")
    properties = _mapping(f"properties of {name}", described.get("properties") or {})
    required: set[Any] = set(described.get("required") or ())
    for field in properties:
        if not str(field).isidentifier() or str(field).startswith("__"):
            raise ValueError(f"{render_value(field)} is no name for a parameter")
    if missing := required - properties.keys():
        raise ValueError(f"{render_value(missing.pop())} is required and not described")
    fields: list[Any] = []
    for field, inner in properties.items():
        kind = _type(field, inner)
        fields.append((field, kind) if field in required else (field, kind | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(f"{name}Arguments", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _type(name: str, schema: Any) -> Any:
    described = _mapping(name, schema)
    kind = _choice(name, described) if described.keys() & {"enum", "const"} else _union(name, described)
    text = described.get("description")
    return Annotated[kind, msgspec.Meta(description=str(text))] if text and kind is not Any else kind


def _choice(name: str, described: dict[str, Any]) -> Any:
    values = [described["const"]] if "const" in described else described["enum"]
    if not values or not all(value is None or isinstance(value, str | bool | int) for value in values):
        can_be = "texts, whole numbers, true, false and null"
        raise ValueError(f"{name} has the choices {render_value(values)}; only {can_be} can be chosen from")
    return Literal[tuple(values)]


def _union(name: str, described: dict[str, Any]) -> Any:
    given: Any = described.get("type", "object" if "properties" in described else None)
    if given is None:
        return Any
    kinds = [_single(name, kind, described) for kind in ([given] if isinstance(given, str) else given)]
    return reduce(lambda one, other: one | other, kinds)


def _single(name: str, kind: str, described: dict[str, Any]) -> Any:
    limits = {ours: described[theirs] for theirs, ours in _LIMITS.get(kind, {}).items() if theirs in described}
    if kind == "array":
        found: Any = list[_type(name, described["items"])] if "items" in described else list[Any]
    elif kind == "object":
        found = _object(name, described | {"type": "object"}) if described.get("properties") else dict[str, Any]
    elif kind in _TYPES:
        found = _TYPES[kind]
    else:
        raise ValueError(f"{name} is of type {render_value(kind)}, which JSON Schema does not have")
    return Annotated[found, msgspec.Meta(**limits)] if limits else found


def _mapping(name: str, schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ValueError(f"{name} is described by {render_value(schema)}, not by an object")
    return dict(schema)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
