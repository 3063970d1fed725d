"""Makes tools from third-party functions or definitions."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Annotated, Any, Literal, NoReturn, get_type_hints

import msgspec

from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.permissions import PERMISSIONS, Permission
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import Arguments, SideEffect, ToolSpec, parse_major_version
from handrail.protocol.wire import Json, Wire, encode, sanitize_json
from handrail.tools.tool import Context, Output, Tool

ANY_EFFECT: tuple[SideEffect, ...] = ("files", "processes", "network")
"""Effects of a tool that does not declare any."""


class CustomData(Wire, frozen=True, omit_defaults=False):
    """What a custom tool returned."""

    value: Json


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    version: str = "1.0.0",
    permissions: tuple[Permission, ...] = (),
    read_only: bool = False,
    auto_execute: bool = False,
    enabled: bool = True,
    format_error: Callable[[tuple[str, ...]], str] | None = None,
) -> Any:
    """Declares a function as a tool: `@tool` or `@tool(read_only=True, …)`.

    The signature becomes the schema, the docstring the description. A parameter of the type Context, or named
    `context`, gets the context of the call.
    """

    def declare(body: Callable[..., Any]) -> Tool:
        own_name = name or getattr(body, "__name__", "")
        arguments, contexts = _build_arguments(body, own_name)
        spec = ToolSpec(
            name=own_name,
            title=title or own_name.replace("_", " ").capitalize(),
            description=description or inspect.getdoc(body) or _refuse_undescribed(own_name),
            arguments=arguments,
            data=CustomData,
            version=version,
            permissions=permissions,
            side_effects=() if read_only else ANY_EFFECT,
            category="custom",
            auto_execute=auto_execute,
            enabled=enabled,
            format_error=format_error,
        )

        def run(context: Context, given: msgspec.Struct) -> Output:
            values = {field: getattr(given, field) for field in given.__struct_fields__}
            return to_output(body(**dict.fromkeys(contexts, context), **values), own_name)

        return Tool(check_spec(spec), run)

    return declare if function is None else declare(function)


def check_spec(spec: ToolSpec) -> ToolSpec:
    """The spec. UsageError if models cannot be given its schema or calls cannot be checked."""
    problem = None
    if not spec.name:
        problem = "has no name; give it one"
    elif parse_major_version(spec.version) is None:
        problem = f"has the version {render_value(spec.version)}; use numbers such as 1.0.0"
    elif unknown := [permission for permission in spec.permissions if permission not in PERMISSIONS]:
        problem = f"asks for {render_value(unknown[0])}, which is not a permission; there are {', '.join(PERMISSIONS)}"
    else:
        try:
            encode((spec.title, spec.description, msgspec.json.schema(spec.arguments)))
        except (TypeError, ValueError, re.error) as error:
            problem = f"has arguments or a description that no schema can express: {error}"
    if problem:
        raise UsageError(f"the tool {spec.name!r} {problem}")
    return spec


def to_output(value: Any, name: str) -> Output:
    if isinstance(value, Output):
        return value
    try:
        content = encode(value)
    except UnicodeEncodeError:  # lone surrogates, as in names of files: worth showing
        value = sanitize_json(value)[0]
        content = encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        returned = f"{name} returned {render_value(value)}, which is not JSON."
        raise ToolError(
            "INTERNAL", f"{returned} Your arguments are not the cause. Continue without this call."
        ) from None
    text = value if isinstance(value, str) else content.decode()
    return Output(summary=f"{name} is done", content=text, data=CustomData(value=value))


def _build_arguments(body: Callable[..., Any], name: str) -> tuple[type[msgspec.Struct], tuple[str, ...]]:
    """The type of the arguments, and the names of the parameters that get the context."""
    if inspect.iscoroutinefunction(body):
        raise UsageError(f"the tool {name!r} is async; declare a plain function; each call runs in its own thread")
    try:
        hints = get_type_hints(_find_annotated(body), include_extras=True)
        hints["context"] = Context
        parameters = inspect.signature(body).parameters.values()
        fields = {parameter.name: _build_field(parameter, hints, name) for parameter in parameters}
        contexts = tuple(one for one in fields if hints[one] is Context)
        given = [field for one, field in fields.items() if one not in contexts]
        arguments = msgspec.defstruct(f"{name}Arguments", given, bases=(Arguments,), frozen=True, kw_only=True)
        return arguments, contexts
    except (TypeError, ValueError, NameError, AttributeError) as error:
        raise UsageError(f"the tool {name!r} has a signature that no schema can express: {error}") from error


def _find_annotated(body: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the annotations. Partials and callable objects have none."""
    if isinstance(body, functools.partial):
        return _find_annotated(body.func)
    return body if inspect.isroutine(body) else type(body).__call__


def _build_field(parameter: inspect.Parameter, hints: dict[str, Any], name: str) -> Any:
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
        raise UsageError(f"the tool {name!r} has the parameter {parameter}; name each argument instead")
    if parameter.name not in hints:
        raise UsageError(f"the tool {name!r} has the parameter {parameter.name!r} without a type")
    field = (parameter.name, hints[parameter.name])
    return field if parameter.default is parameter.empty else (*field, parameter.default)


def _refuse_undescribed(name: str) -> NoReturn:
    raise UsageError(f"the tool {name!r} has no description; give the function a docstring")


Handler = Callable[[dict[str, Json]], Any]

_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_BOUNDS = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "multipleOf": "multiple_of",
}  # fmt: skip
_COUNTS = {"minItems": "min_length", "maxItems": "max_length"}
_LIMITS: dict[str, dict[str, str]] = {"string": _LENGTHS, "integer": _BOUNDS, "number": _BOUNDS, "array": _COUNTS}


def tool_from_definition(definition: Mapping[str, Json], handler: Handler) -> Tool:
    """Makes a tool from `{"name", "description", "parameters": {…JSON Schema…}}`. The handler gets a dict."""
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("a tool definition needs a name")
    if not callable(handler):
        raise UsageError(f"the tool {name!r} has no handler that can be called")
    schema: Any = definition.get("parameters") or definition.get("input_schema") or {}
    try:
        arguments = _build_struct(name, schema)
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


def _build_struct(name: str, schema: Any) -> type[msgspec.Struct]:
    """The type of an object. Unknown properties are errors."""
    described = _check_mapping(name, schema)
    if described.get("type", "object") != "object":
        raise ValueError(f"{name} is of type {render_value(described['type'])}, not an object")
    properties = _check_mapping(f"properties of {name}", described.get("properties") or {})
    required: set[Any] = set(described.get("required") or ())
    for field in properties:
        if not str(field).isidentifier() or str(field).startswith("__"):
            raise ValueError(f"{render_value(field)} is not a name for a parameter")
    if missing := required - properties.keys():
        raise ValueError(f"{render_value(missing.pop())} is required but not described")
    fields: list[Any] = []
    for field, inner in properties.items():
        kind = _build_type(field, inner)
        fields.append((field, kind) if field in required else (field, kind | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(f"{name}Arguments", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _build_type(name: str, schema: Any) -> Any:
    described = _check_mapping(name, schema)
    kind = _build_choice(name, described) if described.keys() & {"enum", "const"} else _build_union(name, described)
    text = described.get("description")
    return Annotated[kind, msgspec.Meta(description=str(text))] if text and kind is not Any else kind


def _build_choice(name: str, described: dict[str, Any]) -> Any:
    values = [described["const"]] if "const" in described else described["enum"]
    if not values or not all(value is None or isinstance(value, str | bool | int) for value in values):
        can_be = "texts, whole numbers, true, false and null"
        raise ValueError(f"{name} has the choices {render_value(values)}; only {can_be} can be chosen from")
    return Literal[tuple(values)]


def _build_union(name: str, described: dict[str, Any]) -> Any:
    given: Any = described.get("type", "object" if "properties" in described else None)
    if given is None:
        return Any
    kinds = [_build_single(name, kind, described) for kind in ([given] if isinstance(given, str) else given)]
    return reduce(lambda one, other: one | other, kinds)


def _build_single(name: str, kind: str, described: dict[str, Any]) -> Any:
    limits = {ours: described[theirs] for theirs, ours in _LIMITS.get(kind, {}).items() if theirs in described}
    if kind == "array":
        found: Any = list[_build_type(name, described["items"])] if "items" in described else list[Any]
    elif kind == "object":
        found = _build_struct(name, described | {"type": "object"}) if described.get("properties") else dict[str, Any]
    elif kind in _TYPES:
        found = _TYPES[kind]
    else:
        raise ValueError(f"{name} is of type {render_value(kind)}, which JSON Schema does not have")
    return Annotated[found, msgspec.Meta(**limits)] if limits else found


def _check_mapping(name: str, schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ValueError(f"{name} is described by {render_value(schema)}, not by an object")
    return dict(schema)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
