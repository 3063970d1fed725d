"""Every wire type has a schema, and the schema says what the decoder does."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from handrail.protocol.calls import Done, Parked
from handrail.protocol.events import KINDS, AnyEvent, PermissionEvent, ToolEvent, get_event_kind
from handrail.protocol.messages import Message
from handrail.protocol.schema import (
    DIALECT,
    WIRE_TYPES,
    build_flat_schema,
    build_wire_schemas,
    describe,
    read_wire_samples,
)
from handrail.protocol.tool_spec import BASE_NAMES
from handrail.tools.ls import LS
from handrail.tools.read import READ
from handrail.tools.write import WRITE

SCHEMAS = build_wire_schemas()
MESSAGES = (
    "tool_call tool_result error tool_description facts decision permission_request answer change_set change_record "
    "process_record done parked question reply "
    "message.system message.user message.assistant message.results message.summary"
)
TIMES = {"time", "timestamp", "started", "ended"}
every_type = pytest.mark.parametrize("name", WIRE_TYPES)
every_tool = pytest.mark.parametrize("spec", [READ, WRITE, LS], ids=lambda spec: spec.name)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object anywhere in a schema."""
    if isinstance(schema, dict):
        yield schema
    for item in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from nodes(item)


def decodes(name: str, value: Any) -> bool:
    """Read as it is read in earnest: among its like, by the tag that tells them apart."""
    unions = {"event": AnyEvent, "message": Message, "done": Done | Parked, "parked": Done | Parked}
    like = unions.get(name.partition(".")[0], WIRE_TYPES[name])
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=like)
    except msgspec.ValidationError:
        return False
    return True


def test_every_message_and_every_event_has_a_schema() -> None:
    assert list(SCHEMAS) == [*MESSAGES.split(), *(f"event.{get_event_kind(kind)}" for kind in KINDS)]


@every_type
def test_a_schema_is_valid_and_says_what_it_is(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == DIALECT
    assert SCHEMAS[name]["title"] == name
    assert SCHEMAS[name]["description"]


@every_type
def test_a_schema_has_no_references_to_follow(name: str) -> None:
    assert not [node for node in nodes(SCHEMAS[name]) if {"$ref", "$defs", "definitions"} & node.keys()]


@every_type
def test_a_schema_allows_no_field_it_does_not_name(name: str) -> None:
    objects = [node for node in nodes(SCHEMAS[name]) if "properties" in node and node.get("type") == "object"]
    assert objects
    assert all(node["additionalProperties"] is False for node in objects)


@every_tool
def test_the_schemas_of_a_tool_allow_no_field_they_do_not_name(spec: Any) -> None:
    for schema in (describe(spec).input_schema, describe(spec).output_schema):
        Draft202012Validator.check_schema(schema)
        objects = [node for node in nodes(schema) if node.get("type") == "object"]
        assert objects
        assert all(node["additionalProperties"] is False for node in objects)
        assert not [node for node in nodes(schema) if "$ref" in node]
    assert spec.name in BASE_NAMES


@every_type
def test_schema_and_decoder_refuse_the_same_values(name: str) -> None:
    """Each field of the sample is left out and replaced in turn, and one is added."""
    sample, validator = read_wire_samples()[name], Draft202012Validator(SCHEMAS[name])
    altered = [{**sample, "surprise": 1}, [sample], None]
    for key in sample:
        altered.append({other: item for other, item in sample.items() if other != key})
        # That "x" is no time is a matter of the format, which a schema only annotates.
        odd = (None, True, 7, -1.5, [], [None], {}, {"x": 1}, *(() if key in TIMES else ("x",)))
        altered += [{**sample, key: value} for value in odd]
    verdicts = [(value, validator.is_valid(value), decodes(name, value)) for value in altered]
    assert [value for value, valid, decoded in verdicts if valid != decoded] == []
    assert not all(valid for _, valid, _ in verdicts)


def test_a_time_says_in_the_schema_that_it_is_one() -> None:
    for name, schema in SCHEMAS.items():
        for field in ("time", "timestamp"):
            if field in schema["properties"]:
                assert schema["properties"][field] == {"type": "string", "format": "date-time"}, name


@pytest.mark.parametrize("kind", KINDS, ids=get_event_kind)
def test_an_event_always_has_its_kind_id_number_session_and_time(kind: Any) -> None:
    schema = SCHEMAS[f"event.{get_event_kind(kind)}"]
    assert {"kind", "eventId", "seq", "sessionId", "time"} <= set(schema["required"])
    assert schema["properties"]["kind"] == {"enum": [get_event_kind(kind)]}
    assert not {"event_id", "session_id", "message_id"} & schema["properties"].keys()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if get_event_kind(kind).startswith(("tool_call.", "change"))])
def test_an_event_about_a_call_always_names_it(kind: Any) -> None:
    assert issubclass(kind, ToolEvent)
    assert {"tool_call_id", "tool_call_name"} <= set(SCHEMAS[f"event.{get_event_kind(kind)}"]["required"])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "permission" in get_event_kind(kind)], ids=get_event_kind)
def test_a_permission_event_always_has_the_whole_request(kind: Any) -> None:
    assert issubclass(kind, PermissionEvent)
    schema = SCHEMAS[f"event.{get_event_kind(kind)}"]
    assert "permission_request" in schema["required"]
    request = {key: value for key, value in SCHEMAS["permission_request"].items() if key not in {"$schema", "title"}}
    assert schema["properties"]["permission_request"] == request
    assert {"toolName", "serverName", "permissionType", "description", "id", "sessionId", "batchId"} <= set(
        request["required"]
    )


def test_a_property_called_title_stays_and_a_class_name_goes() -> None:
    schema = build_flat_schema(WIRE_TYPES["tool_result"])
    assert schema["properties"]["title"] == {"type": "string"}
    assert "title" not in schema
    assert "title" not in schema["properties"]["meta"]
