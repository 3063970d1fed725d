"""Whatever a caller hands in, what goes to the journal can be written and read again."""

import datetime
import decimal
import enum
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.events import ToolCallStart, decode_event
from handrail.protocol.wire import encode, escape_surrogates, sanitize_json


class Whole(int):
    """Not quite an int."""


class Share(float):
    """Not quite a float."""


class Name(str):
    """Not quite a str."""

    __slots__ = ()


class Unspeakable:
    """Cannot even be named."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Colour(enum.Enum):
    """An enumeration of what JSON has not."""

    RED = object()


def recorded(args: Any) -> Any:
    """The arguments as they come back from the journal."""
    header = {"event_id": "s:1", "seq": 1, "session_id": "s", "time": datetime.datetime.now(datetime.UTC)}
    call = {"tool_call_id": "c", "tool_call_name": "n", "trace_id": "t"}
    event = decode_event(encode(ToolCallStart(**header, **call, args=args)))
    assert isinstance(event, ToolCallStart)
    return event.args


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_is_left_alone_and_comes_back_the_same(value: Any) -> None:
    found, was_json = sanitize_json(value)
    assert found is value
    assert was_json
    assert recorded(found) == value


odd_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -(10**400), 10**4000, 2**63, -(2**63), 2**64]),
    st.floats(),
    st.text(st.characters(exclude_categories=[]), max_size=8),
    st.sampled_from(["\ud800", "a\udfff", b"\xff", bytearray(b"x"), 1j, ..., object, object()]),
    st.sampled_from([Whole(3), Whole(10**400), Share(0.5), Share("nan"), Name("x"), Name("\ud800"), Colour.RED, len]),
    st.sampled_from([decimal.Decimal("1.5"), datetime.date(2026, 1, 1), {1, 2}, frozenset({"\ud800"}), range(3)]),
)
odd_keys = odd_leaves.filter(lambda key: not isinstance(key, bytearray | set)) | st.tuples(st.integers())
odd_values = st.recursive(
    odd_leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(odd_keys, inner, max_size=4),
        st.lists(inner, max_size=3).map(lambda items: items.append(items) or items),
        inner.map(lambda item: [*nested(200), item]),
    ),
    max_leaves=12,
)


@given(odd_values)
def test_anything_becomes_something_that_is_written_and_read_again(value: Any) -> None:
    found, was_json = sanitize_json(value)
    recorded(found)
    assert (found is value) or not was_json


@pytest.mark.parametrize(
    ("value", "nearest"),
    [
        ("a\ud800b", "a\\ud800b"),
        (["\udcff", 1, None, True, 1.5], ["\\udcff", 1, None, True, 1.5]),
        ({"\ud800": 1}, {"\\ud800": 1}),
        (object(), "<object>"),
        ([object, len, 1j], ["<type>", "<builtin_function_or_method>", "<complex>"]),
        ({Unspeakable(): Unspeakable()}, {"<Unspeakable>": "<Unspeakable>"}),
        ([Whole(3), Share(0.5), Name("x"), object()], [3, 0.5, "x", "<object>"]),
        ([Whole(2**64), object()], ["<too large>", "<object>"]),
        ({10**5000: "a", (1, 2): "b", 7: "c", None: "d"}, {"<too large>": "a", "<tuple>": "b", "7": "c", "None": "d"}),
        (({"a": (1, object())},), [{"a": [1, "<object>"]}]),
    ],
)
def test_what_is_not_json_leaves_a_trace_of_what_it_was(value: Any, nearest: Any) -> None:
    assert sanitize_json(value) == (nearest, False)
    assert recorded(sanitize_json(value)[0]) == nearest


def test_what_holds_itself_has_an_end() -> None:
    ring: list[Any] = []
    ring.append(ring)
    assert encode(sanitize_json(ring)[0]).count(b"<too deep>") == 1
    bush: list[Any] = ["\ud800"]
    bush.extend([bush] * 10)
    shared: list[Any] = ["\ud800"]
    for _ in range(60):
        shared = [shared, shared]
    for value in (bush, shared):
        assert len(encode(sanitize_json(value)[0])) < 200_000


def test_a_large_value_that_is_not_json_is_kept_in_part() -> None:
    found, was_json = sanitize_json({"all": list(range(1_000_000)), "odd": object()})
    assert not was_json
    assert found["all"][:3] == [0, 1, 2]
    assert len(found["all"]) <= 10_000


@pytest.mark.parametrize("levels", [1, 50, 63, 64, 65, 100, 900, 997, 998, 1_000, 100_000])
def test_nesting_is_kept_as_far_as_any_reader_can_follow(levels: int) -> None:
    found, was_json = sanitize_json(nested(levels))
    assert was_json is (levels < 64)

    def read_from(frames: int) -> Any:
        return recorded(found) if frames == 0 else read_from(frames - 1)

    assert read_from(500) == found


def test_nesting_is_counted_whatever_it_is_made_of() -> None:
    value: Any = "x" * 200
    for _ in range(40):
        value = {"a": [value]}
    assert sanitize_json(value)[1] is False
    assert sanitize_json(value["a"][0]["a"][0]["a"][0]["a"][0]["a"][0]["a"][0]["a"][0]["a"][0])[1] is True


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**30, b"x", datetime.date(2026, 1, 1), {1}, (1, 2)])
def test_what_the_encoder_can_spell_counts_as_json(value: Any) -> None:
    assert sanitize_json(value)[1]
    recorded(value)


def test_readable_text_is_left_alone_and_lone_surrogates_are_shown() -> None:
    for text in ("", "abc", "Grüße, 世界 🙂", "\x00\n"):
        assert escape_surrogates(text) == text
    assert escape_surrogates("Grüße\udc80") == "Grüße\\udc80"
    assert msgspec.json.decode(encode(escape_surrogates("\ud83d"))) == "\\ud83d"
