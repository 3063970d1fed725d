"""JSON Schema of wire types, flat: without references."""

from functools import lru_cache
from pkgutil import get_data
from typing import Any, cast

import msgspec

from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.changes import ChangeRecord, ChangeSet
from handrail.protocol.decisions import Decision, Facts
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.events import KIND_NAMES
from handrail.protocol.messages import AssistantMessage, ResultsMessage, SummaryMessage, SystemMessage, UserMessage
from handrail.protocol.permissions import Answer, PermissionRequest, Question, Reply
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import ToolDescription, ToolSpec
from handrail.protocol.wire import Json, decode_json

_ENVELOPE: dict[str, Json] = {
    "ok": {"type": "boolean"},
    "content": {"type": "string"},
    "error": {"type": ["object", "null"]},
    "meta": {"type": "object"},
}
"""The fields of every result that a client of MCP tools needs, besides its data."""
_FOR_SENDERS = frozenset(("description", "default", "additionalProperties"))
DIALECT = "https://json-schema.org/draft/2020-12/schema"

MESSAGES: dict[str, Any] = {
    "tool_call": ToolCall,
    "tool_result": ToolResult[Any],
    "error": ErrorInfo,
    "tool_description": ToolDescription,
    "facts": Facts,
    "decision": Decision,
    "permission_request": PermissionRequest,
    "answer": Answer,
    "change_set": ChangeSet,
    "change_record": ChangeRecord,
    "process_record": ProcessRecord,
    "done": Done,
    "parked": Parked,
    "question": Question,
    "reply": Reply,
    "message.system": SystemMessage,
    "message.user": UserMessage,
    "message.assistant": AssistantMessage,
    "message.results": ResultsMessage,
    "message.summary": SummaryMessage,
}
EVENTS: dict[str, Any] = {f"event.{name}": kind for kind, name in KIND_NAMES.items()}
WIRE_TYPES: dict[str, Any] = MESSAGES | EVENTS
"""Every wire type by the name of its schema."""


def build_wire_schemas() -> dict[str, dict[str, Any]]:
    return {name: {"$schema": DIALECT, "title": name, **build_flat_schema(shape)} for name, shape in WIRE_TYPES.items()}


def read_wire_samples() -> dict[str, Any]:
    """A sample of every wire type by the name of its schema, recorded by `scripts/protocol`."""
    return decode_json(get_data("handrail.protocol", "samples.json") or b"", dict[str, Any])


def describe(spec: ToolSpec) -> ToolDescription:
    foreign = spec.foreign
    return ToolDescription(
        name=spec.name,
        title=spec.title,
        enabled=spec.enabled,
        version=spec.version,
        description=spec.description,
        category=spec.category,
        auto_execute=spec.auto_execute,
        permissions=spec.permissions,
        side_effects=spec.side_effects,
        input_schema=build_flat_schema(spec.arguments) if foreign is None else foreign.input_schema,
        output_schema=build_flat_schema(spec.data) if foreign is None else foreign.output_schema or {},
    )


def get_input_schema(spec: ToolSpec) -> dict[str, Json]:
    """The schema of its arguments. It is cached, so callers must not change it."""
    return _get_cached_schema(spec.arguments) if spec.foreign is None else spec.foreign.input_schema


def to_openai_tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": describe(spec).input_schema}
    return {"type": "function", "function": function}


def to_anthropic_tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "input_schema": describe(spec).input_schema}


def to_mcp_tool(spec: ToolSpec) -> dict[str, Any]:
    """The entry of an MCP tool list.

    The output is a whole ToolResult, also for an error or an interim answer. Its schema has only what differs between
    tools: a client waits for the list, and most models get it. For the tool of another server the data may be anything.
    """
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": get_input_schema(spec),
        "outputSchema": _build_result_schema(None if spec.foreign else spec.data),
        "annotations": _build_mcp_hints(spec),
    }


def _build_mcp_hints(spec: ToolSpec) -> dict[str, Any]:
    """Hints about a tool as the MCP specification defines them.

    Overwriting a file is destructive even if it can be undone: undo is a person's act, and no client can count on it.
    The transcript only grows. Commands reach the outside, since a person may open the network to them.
    """
    effects = set(spec.side_effects)
    return {
        "title": spec.title,
        "readOnlyHint": not effects,
        "destructiveHint": bool(effects - {"conversation"}),
        "idempotentHint": spec.idempotent or not effects,
        "openWorldHint": bool(effects & {"processes", "network"}) or "net.connect" in spec.permissions,
    }


@lru_cache(256)
def _get_cached_schema(shape: Any) -> dict[str, Json]:
    return build_flat_schema(shape)


@lru_cache(256)
def _build_result_schema(data: Any) -> dict[str, Json]:
    """A result with this data. None: with any data."""
    options: list[Json] = [{}] if data is None else [_get_cached_schema(data), {"type": "null"}]
    described = _outline({"anyOf": options})
    return {"type": "object", "properties": {**_ENVELOPE, "data": described}, "required": [*_ENVELOPE, "data"]}


def _outline(node: Any) -> Any:
    """A schema of what is sent: without prose, and without defaults, which only senders need."""
    if isinstance(node, list):
        return [_outline(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = {key: value for key, value in cast("dict[str, Any]", node).items() if key not in _FOR_SENDERS}
    match schema.get("anyOf"):
        case [{"type": str(kind)} as only, {"type": "null"}]:
            return _outline({**only, "type": [kind, "null"]})
        case _:
            properties = {name: _outline(value) for name, value in schema.pop("properties", {}).items()}
            brief = {key: _outline(value) for key, value in schema.items()}
            return {**brief, "properties": properties} if properties else brief


def build_flat_schema(shape: Any) -> dict[str, Any]:
    """The schema of one type, with everything that it refers to inlined."""
    (schema,), components = msgspec.json.schema_components([shape], ref_template="{name}")
    return _inline(schema, components)


def _inline(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, components) for item in node]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if reference is not None:
        return _inline(components[str(reference)], components)  # pyright: ignore[reportUnknownArgumentType]
    return {key: _inline(value, components) for key, value in node.items() if not _is_noise(key, value)}  # pyright: ignore[reportUnknownVariableType]


def _is_noise(key: Any, value: Any) -> bool:
    """A title repeats the class name (a property called title is a mapping, not a text).

    `items: false` repeats `maxItems` of a tuple, and some readers reject a schema that is a plain `false`.
    """
    return (key == "title" and isinstance(value, str)) or (key == "items" and value is False)
