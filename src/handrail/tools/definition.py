"""Makes a tool out of a definition with a JSON Schema and a handler."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from handrail.protocol.error import UsageError
from handrail.protocol.tool import ToolSpec
from handrail.protocol.wire import Json
from handrail.tools.contract import Context, Output, Tool
from handrail.tools.custom import ANY_EFFECT, CustomData, as_output

Handler = Callable[[dict[str, Json]], Any]
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}


def tool_from_definition(definition: Mapping[str, Json], handler: Handler) -> Tool:
    """The tool of `{"name", "description", "parameters": {…JSON Schema…}}`; the handler gets a dict."""
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("a tool definition needs a name")
    schema = definition.get("parameters") or definition.get("input_schema") or {"type": "object"}
    spec = ToolSpec(
        name=name,
        title=str(definition.get("title") or name),
        description=str(definition.get("description") or ""),
        arguments=_arguments(name, schema),
        data=CustomData,
        side_effects=ANY_EFFECT,
        category="custom",
    )

    def run(_: Context, arguments: msgspec.Struct) -> Output:
        given = {
            field: value
            for field in arguments.__struct_fields__
            if (value := getattr(arguments, field)) is not msgspec.UNSET
        }
        return as_output(handler(given), name)

    return Tool(spec, run)


def _arguments(name: str, schema: Mapping[str, Json]) -> type[msgspec.Struct]:
    required = set[str](schema.get("required") or ())
    fields: list[Any] = []
    for field, described in dict[str, Any](schema.get("properties") or {}).items():
        if not field.isidentifier():
            raise UsageError(f"the tool {name!r} has the parameter {field!r}, which is no name")
        kind = _type(described)
        fields.append((field, kind) if field in required else (field, kind | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(f"{name}Arguments", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _type(described: Mapping[str, Json]) -> Any:
    if "enum" in described:
        return Literal[tuple(described["enum"])]
    kind = _TYPES.get(str(described.get("type")), Any)
    bounds = {
        "ge": described.get("minimum"),
        "le": described.get("maximum"),
        "description": described.get("description"),
    }
    given = {key: value for key, value in bounds.items() if value is not None}
    return Annotated[kind, msgspec.Meta(**given)] if given and kind is not Any else kind
