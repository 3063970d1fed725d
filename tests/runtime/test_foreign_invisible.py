"""What a person does not see of a server's words, no model reads: neither in a description nor anywhere in a schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.wire import encode
from handrail.runtime.foreign.call import build_foreign_spec
from handrail.runtime.foreign.source import ForeignTool

UNSEEN = (
    *("\u200b", "\u200d", "\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u202e", "\u2028", "\u2066", "\u3164"),
    *("\ufe01", "\ufe0f", "\ufeff", "\uffa0", "\U000e0041", "\U000e0101", "\x1b", "\x07", "\x9b"),
)


def shown(schema: dict[str, Any], description: str = "") -> tuple[str, dict[str, Any]]:
    listed = ForeignTool(name="x", description=description, input_schema=schema, output_schema=schema)
    spec = build_foreign_spec("a", listed, read_only=False)
    assert spec.foreign is not None
    return spec.description, dict(spec.foreign.input_schema)


@pytest.mark.parametrize("unseen", UNSEEN)
def test_nothing_unseen_is_left_in_words(unseen: str) -> None:
    argument = {"type": "string", "description": f"the p{unseen}ath", "x-note": [f"a{unseen}b"]}
    told, schema = shown({"type": "object", "properties": {"path": argument}}, f"Re{unseen}ads.")
    assert told == "Reads."
    assert schema["properties"]["path"] == {"type": "string", "description": "the path", "x-note": ["ab"]}


@pytest.mark.parametrize(
    "said", [{"enum": ["a", "b\u200b"]}, {"const": "\u200b"}, {"default": {"a": "\u200b"}}, {"pattern": "a\u200b"}]
)
def test_a_value_that_counts_by_every_character_is_left_out_and_not_made_another(said: dict[str, Any]) -> None:
    _, schema = shown({"properties": {"one": {"type": "string", **said}}})
    assert schema["properties"] == {"one": {"type": "string"}}


def test_a_name_with_something_unseen_is_not_shown_and_nothing_refers_to_it() -> None:
    inner = {"type": "object", "properties": {"a\u200b": {"description": "hidden"}, "b": {"type": "string"}}}
    _, schema = shown({"properties": {"one": inner, "two": {"$ref": "#/$defs/c\u200b"}}, "$defs": {"c\u200b": {}}})
    assert schema["properties"]["one"]["properties"] == {"b": {"type": "string"}}
    assert schema["properties"]["two"] == {}


def test_words_of_every_language_stay() -> None:
    text = "Größe in Mètres: 長さ، طول, длина 🙂 “so”\n\tand so"
    told, schema = shown({"properties": {"one": {"description": text, "enum": ["größer", "長い"]}}}, text)
    assert told == text
    assert schema["properties"]["one"] == {"description": text, "enum": ["größer", "長い"]}


words = st.text(st.sampled_from(["a", *UNSEEN]), max_size=4)
values = st.recursive(
    words | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            words | st.sampled_from(["items", "enum", "description", "anyOf", "$defs"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(words | st.sampled_from(["description", "items", "$defs", "properties"]), values, max_size=4))
def test_nothing_unseen_is_left_whatever_the_schema_is(schema: dict[str, Any]) -> None:
    spec = build_foreign_spec("a", ForeignTool(name="x", input_schema=schema, output_schema=schema), read_only=False)
    assert spec.foreign is not None
    text = encode((spec.foreign.input_schema, spec.foreign.output_schema)).decode()
    assert not any(encode(unseen).decode()[1:-1] in text for unseen in UNSEEN)
