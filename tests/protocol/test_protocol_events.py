"""The kinds of events: all in the union, none forgotten, and what was recorded always loads."""

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from handrail.protocol.events import KINDS, AnyEvent, decode_event, get_event_kind
from handrail.protocol.wire import encode

RECORDED = Path(__file__).parent / "recorded_v1"
ALL_KINDS = """
    user text reasoning
    tool_call.start tool_call.running tool_call.update tool_call.end tool_call.error
    tool_call.permission-required tool_call.permission-granted tool_call.permission-denied tool_call.question-required
    display warning usage process network change mode notice end error
"""
every_kind = pytest.mark.parametrize("kind", KINDS, ids=get_event_kind)


def test_the_kinds_are_those_of_the_contract() -> None:
    assert [get_event_kind(kind) for kind in KINDS] == ALL_KINDS.split()


def test_the_union_and_the_list_hold_the_same_kinds() -> None:
    assert get_args(AnyEvent) == KINDS


def test_a_turn_that_ends_and_one_that_fails_have_channels_of_their_own() -> None:
    assert {get_event_kind(kind): kind.channel for kind in KINDS if kind.channel != "response"} == {
        "end": "end",
        "error": "error",
    }


def test_an_event_of_no_known_kind_is_refused() -> None:
    header = {"eventId": "s_1:1", "seq": 1, "sessionId": "s_1", "time": "2026-01-01T00:00:00Z"}
    for kind in ("tool_call", "Text", "", None):
        with pytest.raises(msgspec.ValidationError):
            decode_event(json.dumps({"kind": kind, **header}).encode())


def test_there_is_a_recorded_event_of_every_kind_that_version_1_knows() -> None:
    assert {file.name for file in RECORDED.iterdir()} >= {f"{get_event_kind(kind)}.json" for kind in KINDS}


@pytest.mark.parametrize("file", sorted(RECORDED.iterdir()), ids=lambda file: file.stem)
def test_a_recorded_event_loads_and_loses_nothing(file: Path) -> None:
    """These files are never written again: a session recorded today has to load in every later version."""
    recorded = json.loads(file.read_text(encoding="utf-8"))
    event = decode_event(json.dumps(recorded).encode())
    assert get_event_kind(event) == file.stem
    assert_kept(recorded, json.loads(encode(event)))


def assert_kept(old: Any, new: Any) -> None:
    """Everything of the old is in the new; the new may have more fields."""
    if isinstance(old, dict):
        assert isinstance(new, dict)
        for key, value in old.items():
            assert key in new
            assert_kept(value, new[key])
    elif isinstance(old, list):
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            assert_kept(one, other)
    else:
        assert old == new
