"""Makes a tool out of a plain function: its signature is the schema, its docstring the description."""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from handrail.protocol.error import UsageError
from handrail.protocol.permission import Permission
from handrail.protocol.tool import Arguments, SideEffect, ToolSpec
from handrail.protocol.wire import Json, Wire, encode
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
    """Declares a function as a tool: `@tool` or `@tool(read_only=True, …)`. A parameter `context` gets the call's."""

    def declare(body: Callable[..., Any]) -> Tool:
        own_name = name or body.__name__
        spec = ToolSpec(
            name=own_name,
            title=title or own_name.replace("_", " ").capitalize(),
            description=description or inspect.getdoc(body) or _undescribed(own_name),
            arguments=_arguments(body, own_name),
            data=CustomData,
            version=version,
            permissions=permissions,
            side_effects=() if read_only else ANY_EFFECT,
            category="custom",
            auto_execute=auto_execute,
            enabled=enabled,
            format_error=format_error,
        )
        return Tool(spec, _runner(body))

    return declare if function is None else declare(function)


def as_output(value: Any, name: str) -> Output:
    """What a custom tool returned, as the runtime takes it."""
    if isinstance(value, Output):
        return value
    content = value if isinstance(value, str) else encode(value).decode()
    return Output(summary=f"{name} is done", content=content, data=CustomData(value=value))


def _arguments(body: Callable[..., Any], name: str) -> type[msgspec.Struct]:
    hints = get_type_hints(body, include_extras=True)
    fields: list[Any] = []
    for parameter in inspect.signature(body).parameters.values():
        if parameter.name == "context":
            continue
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
            raise UsageError(f"the tool {name!r} has the parameter {parameter}; name each argument instead")
        if parameter.name not in hints:
            raise UsageError(f"the tool {name!r} has the parameter {parameter.name!r} without a type")
        field = (parameter.name, hints[parameter.name])
        fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
    return msgspec.defstruct(f"{name}Arguments", fields, bases=(Arguments,), frozen=True, kw_only=True)


def _runner(body: Callable[..., Any]) -> Callable[[Context, Any], Output]:
    wants_context = "context" in inspect.signature(body).parameters

    def run(context: Context, arguments: msgspec.Struct) -> Output:
        given = {field: getattr(arguments, field) for field in arguments.__struct_fields__}
        return as_output(body(context=context, **given) if wants_context else body(**given), body.__name__)

    return run


def _undescribed(name: str) -> str:
    raise UsageError(f"the tool {name!r} has no description; give the function a docstring")
