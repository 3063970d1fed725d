"""Every wire type has a sample from a run that its schema allows and its decoder reads."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from handrail.protocol import samples
from handrail.protocol.samples import build_wire_samples
from handrail.protocol.samples.recorded import RECORDED
from handrail.protocol.schema import WIRE_TYPES, build_wire_schemas
from handrail.protocol.wire import encode

every_type = pytest.mark.parametrize("name", WIRE_TYPES)


def test_there_is_a_sample_of_every_wire_type() -> None:
    assert list(build_wire_samples()) == list(WIRE_TYPES)


@every_type
def test_a_sample_is_valid_by_its_schema(name: str) -> None:
    Draft202012Validator(build_wire_schemas()[name]).validate(build_wire_samples()[name])


@every_type
def test_a_sample_decodes_and_encodes_to_the_same_json(name: str) -> None:
    data = msgspec.json.encode(build_wire_samples()[name])
    assert encode(msgspec.json.decode(data, type=WIRE_TYPES[name])) == data


def test_no_sample_is_made_by_hand() -> None:
    assert {file.name for file in Path(samples.__file__).parent.glob("*.py")} == {"__init__.py", "recorded.py"}
    assert build_wire_samples() == RECORDED


def test_samples_hold_placeholders_where_a_run_differs_from_the_next() -> None:
    text = encode(build_wire_samples()).decode()
    for value in ('"call_1"', '"s_1:1"', '"2026-01-01T00:00:00Z"', '"duration_ms":1.5'):
        assert value in text
    for trace in ("/tmp", "/home", "/root", "handrail-story"):
        assert trace not in text


def test_samples_cost_nothing_before_they_are_asked_for() -> None:
    source = (
        "import sys, handrail, handrail.rail, handrail.protocol.schema, handrail.protocol.samples\n"
        "print([name for name in sys.modules if name.startswith('handrail.protocol.samples.')])"
    )
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
