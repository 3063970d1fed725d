"""Makes tools from third-party functions or definitions."""

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import reduce
from typing import Annotated, Any, Literal, NoReturn, get_args, get_type_hints

import msgspec

from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.permissions import PERMISSIONS, Permission
from handrail.protocol.text import clip_text, render_value
from handrail.protocol.tool_spec import (
    Arguments,
    SideEffect,
    ToolSpec,
    parse_major_version,
)
from handrail.protocol.wire import Json, Wire, convert, decode_json, encode, sanitize_json
from handrail.tools.tool import CUSTOM_SECONDS, Context, Output, Tool

ANY_EFFECT: tuple[SideEffect, ...] = ("files", "processes", "network")
"""Effects of a tool that does not declare any."""
_PARAMETER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TYPES_TO_USE = "str, int, float, bool, list, dict, Literal, an Enum, a dataclass, a TypedDict or a msgspec.Struct"
_MAX_RETURNED_BYTES = 16 * 1024 * 1024
_NOT_ENCODED = (TypeError, ValueError, OverflowError, RecursionError)
"""What `encode` raises."""
_CANCEL_POLL_SECONDS = 0.02


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
    timeout: float = CUSTOM_SECONDS,
    format_error: Callable[[tuple[str, ...]], str] | None = None,
) -> Any:
    """Declares a function as a tool: `@tool` or `@tool(read_only=True, …)`. An `async def` is a tool too.

    The signature becomes the schema, the docstring the description. A parameter of the type Context gets the context of
    the call, and so does one named `context` without a type. A call gets its result after `timeout` seconds at the
    latest. Read-only tools of one batch run in parallel.
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
            return to_output(_finish(body(**dict.fromkeys(contexts, context), **values), context), own_name)

        return Tool(check_spec(spec), run, timeout=_check_timeout(timeout, own_name))

    return declare if function is None else declare(function)


def check_spec(spec: ToolSpec) -> ToolSpec:
    """The spec. UsageError if models cannot be given its schema or calls cannot be checked."""
    spec.check_name()
    problem = None
    if parse_major_version(spec.version) is None:
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


def _check_timeout(seconds: float, name: str) -> float:
    if not isinstance(seconds, int | float) or not 0 < seconds <= 86_400:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"the tool {name!r} has the timeout {render_value(seconds)}; use seconds, at most a day")
    return seconds


def _finish(value: Any, context: Context) -> Any:
    """What an `async def` returns, once it ran in an event loop of this thread. Any other value as it is."""
    if not inspect.isawaitable(value):
        return value
    import asyncio  # noqa: PLC0415  few tools are async

    async def run(awaitable: Awaitable[Any]) -> Any:
        task = asyncio.ensure_future(awaitable)
        is_stopped = False
        while not task.done():
            if not is_stopped and context.cancelled():
                is_stopped = task.cancel()
            await asyncio.wait((task,), timeout=_CANCEL_POLL_SECONDS)
        if is_stopped and task.cancelled():
            raise ToolError("CANCELLED", "The call was cancelled.")
        return task.result()

    return asyncio.run(run(value))


def check_output(output: object, name: str) -> Output:
    """The output, if it is one that can be stored. ToolError INTERNAL or LIMIT_EXCEEDED if not."""
    if not isinstance(output, Output):
        raise _build_return_error(name, f"something that is not a result ({type(output).__name__})")
    parts = (output.summary, output.content, output.whole, output.data, output.title, output.meta)
    try:
        size = len(encode((*parts, output.files_changed, output.commands_run, output.attachments, output.warnings)))
    except _NOT_ENCODED as error:
        raise _build_return_error(name, f"something that is not a result ({clip_text(str(error), 200)})") from None
    if size > 2 * _MAX_RETURNED_BYTES:  # a value is both content and data
        most = f"more than a tool can return: {_MAX_RETURNED_BYTES:,} bytes"
        raise ToolError("LIMIT_EXCEEDED", f"{name} returned {most}. Ask it for less.")
    return output


def to_output(value: Any, name: str) -> Output:
    if isinstance(value, Output):
        return value
    try:
        content = encode(value)
    except UnicodeEncodeError:  # lone surrogates, as in names of files: worth showing
        value = sanitize_json(value)[0]
        content = encode(value)
    except _NOT_ENCODED:
        raise _build_return_error(name, f"{render_value(value)}, which is not JSON") from None
    text = value if isinstance(value, str) else content.decode()
    # A copy, since the tool may keep and change what it returned.
    return Output(summary=f"{name} is done", content=text, data=CustomData(value=decode_json(content, Any)))


def _build_return_error(name: str, returned: str) -> ToolError:
    advice = "Your arguments are not the cause. Continue without this call."
    return ToolError("INTERNAL", f"{name} returned {returned}. {advice}")


def _build_arguments(body: Callable[..., Any], name: str) -> tuple[type[msgspec.Struct], tuple[str, ...]]:
    """The type of the arguments, and the names of the parameters that get the context."""
    try:
        hints = _resolve_hints(body)
        parameters = inspect.signature(body).parameters.values()
        contexts = tuple(one.name for one in parameters if _is_context(one, hints))
        fields = [_build_field(one, hints, name) for one in parameters if _check_kind(one, name) not in contexts]
        arguments = msgspec.defstruct(f"{name}Arguments", fields, bases=(Arguments,), frozen=True, kw_only=True)
        return arguments, contexts
    except NameError as error:
        reason = f"{error.name!r} is not defined at the top of its module; import or define the type there"
        raise UsageError(f"the tool {name!r} has a type that cannot be found: {reason}") from error
    except (TypeError, ValueError, AttributeError, SyntaxError) as error:
        raise UsageError(f"the tool {name!r} has a signature that no schema can express: {error}") from error


def _resolve_hints(body: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters. A module may import Context for type checkers only."""
    annotated = _find_annotated(body)
    try:
        return get_type_hints(annotated, include_extras=True)
    except NameError:
        names = {"Context": Context, **getattr(inspect.unwrap(annotated), "__globals__", {})}
        return get_type_hints(annotated, names, names, include_extras=True)


def _is_context(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    """Whether a parameter has the type Context, perhaps optional, or is named `context` and has any type."""
    kind = hints.get(parameter.name, Any)
    return kind is Context or Context in get_args(kind) or (parameter.name == "context" and kind is Any)


def _find_annotated(body: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the annotations. Partials and callable objects have none."""
    if isinstance(body, functools.partial):
        return _find_annotated(body.func)
    return body if inspect.isroutine(body) else type(body).__call__


def _check_kind(parameter: inspect.Parameter, name: str) -> str:
    """The name of a parameter. Each is passed by its name, also the context."""
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
        raise UsageError(f"the tool {name!r} has the parameter {parameter}; name each argument instead")
    return parameter.name


def _build_field(parameter: inspect.Parameter, hints: dict[str, Any], name: str) -> Any:
    named = f"the tool {name!r} has the parameter {parameter.name!r}"
    if parameter.name not in hints:
        raise UsageError(f"{named} without a type; use {_TYPES_TO_USE}")
    if not _PARAMETER_NAME.fullmatch(parameter.name):
        raise UsageError(f"{named}, which model providers reject; use letters, digits and _, at most 64")
    kind, has_default = hints[parameter.name], parameter.default is not parameter.empty
    try:
        msgspec.json.schema(kind)
    except (TypeError, ValueError, re.error) as error:
        reason = "JSON cannot express it" if "custom types" in str(error) else str(error).partition("\n")[0]
        shown = f"{inspect.formatannotation(kind)}, which has no schema: {reason}"
        raise UsageError(f"{named} of the type {shown}; use {_TYPES_TO_USE}") from error
    if not has_default:
        return (parameter.name, kind)
    try:
        convert(parameter.default, kind)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        instead = f"{inspect.formatannotation(kind)} | None" if parameter.default is None else "another default"
        shown = render_value(parameter.default)
        raise UsageError(f"{named} with the default {shown} ({error}); use {instead}") from error
    return (parameter.name, kind, parameter.default)


def _refuse_undescribed(name: str) -> NoReturn:
    raise UsageError(f"the tool {name!r} has no description; give the function a docstring")


Handler = Callable[..., Any]
"""`handler(arguments)` or `handler(arguments, context)`. Its signature decides. It may be async."""

_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}
_LENGTHS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_BOUNDS = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "multipleOf": "multiple_of",
}  # fmt: skip
_COUNTS = {"minItems": "min_length", "maxItems": "max_length"}
_LIMITS: dict[str, dict[str, str]] = {"string": _LENGTHS, "integer": _BOUNDS, "number": _BOUNDS, "array": _COUNTS}


def tool_from_definition(definition: Mapping[str, Json], handler: Handler) -> Tool:
    """Makes a tool from `{"name", "description", "parameters": {…JSON Schema…}}`.

    The handler gets a dict. If its second parameter is required, has the type Context or is named `context`, it also
    gets the context of the call.
    """
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("a tool definition needs a name")
    if not callable(handler):
        raise UsageError(f"the tool {name!r} has no handler that can be called")
    context_name = _find_handler_context(handler, name)
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

    def run(context: Context, arguments: msgspec.Struct) -> Output:
        given = (msgspec.to_builtins(arguments), *((context,) if context_name == "" else ()))
        named = {context_name: context} if context_name else {}
        return to_output(_finish(handler(*given, **named), context), name)

    return Tool(check_spec(spec), run)


def _find_handler_context(handler: Handler, name: str) -> str | None:
    """How a handler gets the context: by this name, as the second argument if it is empty, not at all if None."""
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return None  # many builtins have none
    try:
        hints = _resolve_hints(handler)
    except (TypeError, NameError, AttributeError, SyntaxError):
        hints = {}
    rest = list(signature.parameters.values())[1:]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wanted = [one for one in rest if one.name == "context" or _is_context(one, hints)]
    required = [one for one in rest if one.default is one.empty and one.kind in positional]
    chosen = next(iter((*wanted, *required)), None)
    keyword = "" if chosen is None or chosen.kind is chosen.POSITIONAL_ONLY else chosen.name
    try:
        signature.bind({}, *(("",) if chosen and not keyword else ()), **({keyword: ""} if keyword else {}))
    except TypeError as error:
        text = "a handler is called as handler(arguments) or handler(arguments, context)"
        raise UsageError(f"the tool {name!r} has a handler that cannot be called: {error}; {text}") from None
    return None if chosen is None else keyword


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
    try:
        kind = _build_choice(name, described) if described.keys() & {"enum", "const"} else _build_union(name, described)
    except (TypeError, re.error) as error:
        raise ValueError(f"{name}: {error}") from error
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
