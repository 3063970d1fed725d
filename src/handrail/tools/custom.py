"""Makes a tool out of a plain function: its signature is the schema, its docstring the description."""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.permissions import PERMISSIONS, Permission
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import Arguments, SideEffect, ToolSpec, parse_major_version
from handrail.protocol.wire import Json, Wire, encode, sanitize_json
from handrail.tools.contract import Context, Output, Tool

ANY_EFFECT: tuple[SideEffect, ...] = ("files", "processes", "network")
"""What a tool that says nothing about its effects is taken to have."""


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
    """Declares a function as a tool: `@tool` or `@tool(read_only=True, …)`. A parameter of the type Context, or named
    `context`, gets the context of the call."""

    def declare(body: Callable[..., Any]) -> Tool:
        own_name = name or getattr(body, "__name__", "")
        arguments, contexts = _arguments(body, own_name)
        spec = ToolSpec(
            name=own_name,
            title=title or own_name.replace("_", " ").capitalize(),
            description=description or inspect.getdoc(body) or _undescribed(own_name),
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
        return Tool(check_spec(spec), _runner(body, own_name, contexts))

    return declare if function is None else declare(function)


def check_spec(spec: ToolSpec) -> ToolSpec:
    """The spec, if a model can be told about it and calls of it can be checked: better now than at the first call."""
    problem = None
    if not spec.name:
        problem = "has no name; give it one"
    elif parse_major_version(spec.version) is None:
        problem = f"has the version {render_value(spec.version)}; use numbers such as 1.0.0"
    elif unknown := [permission for permission in spec.permissions if permission not in PERMISSIONS]:
        problem = f"asks for {render_value(unknown[0])}, which is no permission; there are {', '.join(PERMISSIONS)}"
    else:
        try:
            encode((spec.title, spec.description, msgspec.json.schema(spec.arguments)))
        except (TypeError, ValueError, re.error) as error:
            problem = f"has arguments or a description that no schema can express: {error}"
    if problem:
        raise UsageError(f"the tool {spec.name!r} {problem}")
    return spec


def to_output(value: Any, name: str) -> Output:
    """What a custom tool returned, as the runtime takes it."""
    if isinstance(value, Output):
        return value
    try:
        content = encode(value)
    except UnicodeEncodeError:  # lone surrogates, as in names of files: worth showing
        value = sanitize_json(value)[0]
        content = encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        returned = f"{name} returned {render_value(value)}, which is not JSON."
        raise ToolError("INTERNAL", f"{returned} It is not your arguments; go on without it.") from None
    text = value if isinstance(value, str) else content.decode()
    return Output(summary=f"{name} is done", content=text, data=CustomData(value=value))


def _arguments(body: Callable[..., Any], name: str) -> tuple[type[msgspec.Struct], tuple[str, ...]]:
    """The arguments of a tool, and the names of the parameters that get its context."""
    if inspect.iscoroutinefunction(body):
        raise UsageError(f"the tool {name!r} is async; declare a plain function, calls run in threads of their own")
    try:
        hints = get_type_hints(_annotated(body), include_extras=True)
        hints["context"] = Context
        parameters = inspect.signature(body).parameters.values()
        fields = {parameter.name: _field(parameter, hints, name) for parameter in parameters}
        contexts = tuple(one for one in fields if hints[one] is Context)
        given = [field for one, field in fields.items() if one not in contexts]
        arguments = msgspec.defstruct(f"{name}Arguments", given, bases=(Arguments,), frozen=True, kw_only=True)
        return arguments, contexts
    except (TypeError, ValueError, NameError, AttributeError) as error:
        raise UsageError(f"the tool {name!r} has a signature that no schema can express: {error}") from error


def _annotated(body: Callable[..., Any]) -> Callable[..., Any]:
    """What carries the annotations: a partial and an object that can be called have none of their own."""
    if isinstance(body, functools.partial):
        return _annotated(body.func)
    return body if inspect.isroutine(body) else type(body).__call__


def _field(parameter: inspect.Parameter, hints: dict[str, Any], name: str) -> Any:
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
        raise UsageError(f"the tool {name!r} has the parameter {parameter}; name each argument instead")
    if parameter.name not in hints:
        raise UsageError(f"the tool {name!r} has the parameter {parameter.name!r} without a type")
    field = (parameter.name, hints[parameter.name])
    return field if parameter.default is parameter.empty else (*field, parameter.default)


def _runner(body: Callable[..., Any], name: str, contexts: tuple[str, ...]) -> Callable[[Context, Any], Output]:
    def run(context: Context, arguments: msgspec.Struct) -> Output:
        given = {field: getattr(arguments, field) for field in arguments.__struct_fields__}
        return to_output(body(**dict.fromkeys(contexts, context), **given), name)

    return run


def _undescribed(name: str) -> str:
    raise UsageError(f"the tool {name!r} has no description; give the function a docstring")
