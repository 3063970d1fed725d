"""JSON Schema of every wire type, flat: no references to follow."""

from typing import Any

import msgspec

from handrail.protocol.calls import Done, Parked, ToolCall
from handrail.protocol.changes import ChangeRecord, ChangeSet
from handrail.protocol.decisions import Decision, Facts
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.events import KINDS, get_event_kind
from handrail.protocol.messages import AssistantMessage, ResultsMessage, SummaryMessage, SystemMessage, UserMessage
from handrail.protocol.permissions import Answer, PermissionRequest, Question, Reply
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import ToolDescription

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
EVENTS: dict[str, Any] = {f"event.{get_event_kind(kind)}": kind for kind in KINDS}
WIRE_TYPES: dict[str, Any] = MESSAGES | EVENTS
"""Every type of the contract by the name its schema is exported under."""


def build_flat_schema(shape: Any) -> dict[str, Any]:
    """The schema of one type with everything it refers to put in place."""
    (schema,), components = msgspec.json.schema_components([shape], ref_template="{name}")
    return _inline(schema, components)


def build_wire_schemas() -> dict[str, dict[str, Any]]:
    """Every schema of the contract by name."""
    return {name: {"$schema": DIALECT, "title": name, **build_flat_schema(shape)} for name, shape in WIRE_TYPES.items()}


def _inline(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, components) for item in node]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if reference is not None:
        return _inline(components[str(reference)], components)  # pyright: ignore[reportUnknownArgumentType]
    return {key: _inline(value, components) for key, value in node.items() if not _says_nothing(key, value)}  # pyright: ignore[reportUnknownVariableType]


def _says_nothing(key: Any, value: Any) -> bool:
    """A class name repeated as a title; a property called title is a mapping, not a text. That a tuple has no items
    more, which `maxItems` says: some readers take no schema that is a plain `false`."""
    return (key == "title" and isinstance(value, str)) or (key == "items" and value is False)
