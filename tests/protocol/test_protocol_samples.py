"""Every wire type has a sample from a run that its schema allows and its decoder reads."""

import msgspec
import pytest
from jsonschema import Draft202012Validator

from handrail.protocol.schema import WIRE_TYPES, build_wire_schemas, read_wire_samples
from handrail.protocol.wire import encode

every_type = pytest.mark.parametrize("name", WIRE_TYPES)


def test_there_is_a_sample_of_every_wire_type() -> None:
    assert list(read_wire_samples()) == list(WIRE_TYPES)


@every_type
def test_a_sample_is_valid_by_its_schema(name: str) -> None:
    Draft202012Validator(build_wire_schemas()[name]).validate(read_wire_samples()[name])


@every_type
def test_a_sample_decodes_and_encodes_to_the_same_json(name: str) -> None:
    data = msgspec.json.encode(read_wire_samples()[name])
    assert encode(msgspec.json.decode(data, type=WIRE_TYPES[name])) == data


def test_samples_hold_placeholders_where_a_run_differs_from_the_next() -> None:
    text = encode(read_wire_samples()).decode()
    for value in ('"call_1"', '"s_1:1"', '"2026-01-01T00:00:00Z"', '"duration_ms":1.5'):
        assert value in text
    for trace in ("/tmp", "/home", "/root", "handrail-story"):
        assert trace not in text
