"""Other servers' schemas: every problem is told at once, nothing is refused that they allow, none takes for ever."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from handrail.runtime.foreign.schema import clean_schema, find_argument_problems
from handrail.runtime.foreign.source import ForeignTool, find_tool_problem

ISSUE = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3, "maxLength": 10},
        "labels": {"type": "array", "items": {"type": "string", "enum": ["bug", "idea"]}, "maxItems": 2},
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "owner": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "when": {"type": ["string", "null"], "minLength": 4},
    },
    "required": ["title", "owner"],
    "additionalProperties": False,
}
RIGHT = {"title": "broken", "owner": {"name": "ann", "age": 3}, "labels": ["bug"], "priority": 2.0, "when": None}


def words(schema: dict[str, Any], value: object) -> list[str]:
    return [one.problem for one in find_argument_problems(schema, value)]


def test_what_fits_has_no_problem() -> None:
    assert words(ISSUE, RIGHT) == []


def test_every_problem_is_told_at_once_and_where_it_is() -> None:
    wrong = {"title": "x", "labels": ["bug", "no", 3], "priority": 9, "owner": {}, "when": "1x", "titel": "y"}
    assert words(ISSUE, wrong) == [
        "title must be at least 3 characters long, got 'x'",
        "labels[1] must be one of bug, idea, got 'no'",
        "labels[2] must be a string, got 3",
        "labels[2] must be one of bug, idea, got 3",
        "labels must be a list of at most 2, got ['bug', 'no', 3]",
        "priority must be 5 or less, got 9",
        "owner.name is required",
        "when must be at least 4 characters long, got '1x'",
        "titel is not an argument; there are title, labels, priority, owner, when",
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [None, [], "{}", 3])
def test_arguments_are_an_object(arguments: object) -> None:
    (problem,) = words({}, arguments)
    assert problem.startswith("arguments must be an object, got")


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"const": 1}, 1.0, True),
        ({"enum": [[1, {"a": None}]]}, [1.0, {"a": None}], [1, {"a": 0}]),
        ({"type": ["string", "null"]}, None, 1),
        ({"minItems": 1}, [0], []),
        ({"additionalProperties": {"type": "string"}}, {"y": "a"}, {"y": 1}),
        (False, None, None),
    ],
)
def test_keywords_mean_what_the_standard_says(schema: Any, right: object, wrong: object) -> None:
    whole = {"properties": {"x": schema}}
    if schema is not False:
        assert words(whole, {"x": right}) == []
    assert words(whole, {"x": wrong}) != []


_NAMES = st.sampled_from(["a", "b", "ab", "x"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 6) | st.floats(-3, 6, width=16) | st.text("ab1", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_SMALL = st.integers(0, 4)
_LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": _KINDS | st.lists(_KINDS, min_size=1, max_size=3, unique=True),
        "enum": st.lists(_VALUES, min_size=1, max_size=3),
        "const": _VALUES,
        "minimum": _SMALL, "maximum": _SMALL, "exclusiveMinimum": _SMALL, "exclusiveMaximum": _SMALL,
        "multipleOf": st.integers(1, 3), "minLength": _SMALL, "maxLength": _SMALL, "minItems": _SMALL,
        "maxItems": _SMALL, "minProperties": _SMALL, "maxProperties": _SMALL, "uniqueItems": st.booleans(),
        "required": st.lists(_NAMES, max_size=2, unique=True),
        "pattern": st.sampled_from(["^a", "b$", "^[ab]+$", "a|b", "1?b", "^(?:a)b{2,}", "(a+)+$"]),
        "$ref": st.sampled_from(["#", "#/$defs/one"]),
        "dependentRequired": st.dictionaries(_NAMES, st.lists(_NAMES, max_size=2, unique=True), max_size=2),
        "unknownKeyword": _VALUES,
    },
)  # fmt: skip
_SCHEMAS = st.recursive(
    st.booleans() | _LEAVES,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(_NAMES, inner, max_size=3),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "(x*)*y"]), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=3), "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=3), "not": inner, "if": inner, "then": inner, "else": inner,
        },
    ),
    max_leaves=8,
)  # fmt: skip


@given(_SCHEMAS, _LEAVES, st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_nothing_is_refused_that_the_standard_allows(schema: Any, one: Any, value: dict[str, Any]) -> None:
    whole = {"properties": {"a": schema, "b": schema}, "$defs": {"one": one}}
    found = find_argument_problems(whole, value)
    try:
        allowed = Draft202012Validator(whole).is_valid(value)
    except RecursionError:
        return  # references without end: nobody can say
    if found:
        assert not allowed


def test_a_value_with_more_parts_than_are_checked_is_left_to_its_server() -> None:
    schema = {"properties": {"z": {"items": {"type": "string"}}, "a": {"type": "string"}}}
    assert words(schema, {"z": ["x"] * 30_000, "a": 1}) == []
    assert words(schema, {"z": ["x"], "a": 1}) == ["a must be a string, got 1"]


LEFT_TO_THE_SERVER: list[Any] = [
    {"pattern": "(a+)+$"},
    {"multipleOf": 3},
    {"uniqueItems": True, "prefixItems": [{"type": "string"}], "items": False},
    {"items": [{"type": "string"}]},
    {"patternProperties": {"(a+)+$": False}, "additionalProperties": False},
    {"dependentRequired": {"a": ["b"]}, "minProperties": 9},
    {"oneOf": [{"type": "null"}]},
    {"not": {}, "if": {}, "then": False},
    {"anyOf": [{"type": "null"}], "allOf": [{"type": "null"}]},
    {"exclusiveMinimum": 1, "exclusiveMaximum": 1},
    {"$ref": "#/$defs/nothing", "type": "null"},
    {"unknownKeyword": False},
]


@pytest.mark.parametrize("schema", LEFT_TO_THE_SERVER)
@pytest.mark.parametrize("value", ["a" * 50_000 + "!", 1, [1, 1], {"a": 1}])
def test_a_keyword_that_is_not_checked_is_left_to_the_server(schema: Any, value: object) -> None:
    assert words({"properties": {"x": schema}, "$defs": {"nothing": {"type": "null"}}}, {"x": value}) == []


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return {"properties": {"a": schema}}


UNFIT = [
    (None, "its inputSchema is null, not an object"),
    ({"type": "string"}, "its inputSchema is of type 'string', not an object"),
    ({"properties": []}, "its inputSchema has properties that are not an object"),
    ({"properties": {"a b": {}}}, "it has an argument 'a b', a name that models cannot use"),
    ({"properties": {"a" * 65: {}}}, "it has an argument"),
    ({"properties": {"a": {"$ref": "https://example.org/a"}}}, "refers to 'https://example.org/a', which is in "
        "another document"),
    ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "refers to '#/$defs/b', which does not exist"),
    ({"description": "x" * 70_000}, "has 70,018 bytes; it may have 65,536"),
    (deep(40), "its inputSchema is nested too deeply, or has too many parts"),
    ({"enum": [[]] * 6_000}, "its inputSchema is nested too deeply, or has too many parts"),
    ({"default": object()}, "its inputSchema is not JSON"),
    ({"properties": {1: {}}}, "its inputSchema is not JSON"),
    ({"description": "\ud800"}, "its inputSchema is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "why"), UNFIT)
def test_a_schema_that_cannot_be_offered_is_refused_with_the_reason(schema: Any, why: str) -> None:
    assert why in find_tool_problem(ForeignTool(name="a", input_schema=schema))


def test_an_output_schema_is_looked_at_too() -> None:
    assert "outputSchema" in find_tool_problem(ForeignTool(name="a", output_schema={"$ref": "https://example.org"}))
    assert find_tool_problem(ForeignTool(name="a", output_schema={"type": "array"})) == ""


NO_TOOLS: list[Any] = [
    None,
    "a",
    ForeignTool(name=""),
    ForeignTool(name="a" * 257),
    ForeignTool(name=3),  # type: ignore[arg-type]
    ForeignTool(name="a", read_only="yes"),  # type: ignore[arg-type]
    ForeignTool(name="\ud800"),
]


@pytest.mark.parametrize("tool", NO_TOOLS)
def test_what_is_no_tool_is_refused(tool: object) -> None:
    assert find_tool_problem(tool)


def test_models_are_shown_a_schema_that_every_provider_takes() -> None:
    told = {"$schema": "x", "anyOf": [{"required": ["a"]}], "properties": {"a": {"anyOf": [{}]}}, "required": ["a"]}
    assert clean_schema(told) == {"type": "object", "properties": {"a": {"anyOf": [{}]}}, "required": ["a"]}
    assert clean_schema({}) == {"type": "object", "properties": {}}


@given(_SCHEMAS, st.text(max_size=5))
def test_looking_at_a_schema_never_fails(schema: Any, name: str) -> None:
    assert isinstance(find_tool_problem(ForeignTool(name=name, input_schema=schema)), str)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ({"type": "str"}, {}),
        ({"type": ["string", "string"]}, {}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"], "items": 3}, {"type": ["array", "null"], "items": {}}),
        (
            {"type": "array", "items": [{"type": "string"}]},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {}},
        ),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"type": "number", "minimum": 1}),
        ({"minimum": "3", "multipleOf": 0, "maxLength": 1.5, "minLength": -1}, {}),
        ({"enum": []}, {}),
        ({"anyOf": [], "oneOf": {"type": "string"}}, {}),
        ({"anyOf": [{"type": "str"}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        ({"pattern": "(", "format": 3, "description": ["x"], "required": ["a", "a", 1]}, {"required": ["a"]}),
        ({"pattern": "^(?!x)[a-z]+$"}, {"pattern": "^(?!x)[a-z]+$"}),
        ({"pattern": "[[a]"}, {}),
        (True, {}),
        (False, {"not": {}}),
        ({"properties": {"b": 3, "c": True}}, {"properties": {"c": {}}}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"default": {"$ref": "#/no"}}, {"default": {"$ref": "#/no"}}),
        ({"properties": {"$ref": {"type": "string"}}}, {"properties": {"$ref": {"type": "string"}}}),
        ({"patternProperties": {"(": {}, "^x": {}}}, {"patternProperties": {"^x": {}}}),
        ({"$id": "::", "$anchor": "1 2", "$dynamicRef": "http://x", "dependencies": 3, "x-hint": 1}, {"x-hint": 1}),
        ({"$ref": 3}, {}),
        ({"$ref": "#/$defs/one"}, {"$ref": "#/$defs/one"}),
        ({"$ref": "#/dependentSchemas/one"}, {}),
        ({"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}),
    ],
)  # fmt: skip
def test_what_a_provider_would_refuse_is_not_shown(written: Any, shown: Any) -> None:
    more = {"$defs": {"one": {"type": "string"}}, "dependentSchemas": {"one": {}}}
    told = clean_schema({"type": "object", "properties": {"a": written}, **more})
    assert told == {"type": "object", "properties": {"a": shown}, "$defs": {"one": {"type": "string"}}}


@given(_SCHEMAS)
def test_whatever_is_offered_is_shown_as_a_valid_schema(schema: Any) -> None:
    if find_tool_problem(ForeignTool(name="x", input_schema=schema)) == "":
        shown = clean_schema(schema)
        Draft202012Validator.check_schema(shown)
        assert clean_schema(shown) == shown


ODD = [
    "type", "enum", "const", "required", "properties", "additionalProperties", "items", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "allOf", "anyOf", "$ref",
    "$defs", "$anchor", "title", "format", "examples", "patternProperties", "dependentRequired", "prefixItems",
    "uniqueItems", "multipleOf", "minProperties", "maxProperties", "pattern", "oneOf", "not", "if",
]  # fmt: skip


@given(st.sampled_from([ISSUE]), st.data())
def test_a_keyword_that_says_anything_at_all_leaves_a_valid_schema(schema: dict[str, Any], data: st.DataObject) -> None:
    keyword = data.draw(st.sampled_from(ODD))
    said = data.draw(_SCHEMAS)
    shown = clean_schema({**schema, "properties": {**schema["properties"], "odd": {keyword: said}}})
    Draft202012Validator.check_schema(shown)
