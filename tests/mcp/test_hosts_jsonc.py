"""JSON with comments, changed in place: what was there stays, byte for byte."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonc_texts import texts, values

from handrail.mcp.hosts.jsonc import Edit, build_edits, merge_jsonc, parse_jsonc
from handrail.mcp.hosts.merge import (
    CannotMerge,
    ConfigSyntaxError,
    ListContains,
    ServerEntry,
    is_same_json,
    merge_value,
)

SERVER = {"command": "uvx", "args": ["handrail", "mcp", "--workspace", "."]}
WANTED: dict[str, Any] = {
    "mcpServers": {"handrail": ServerEntry(SERVER)},
    "permissions": {"allow": ListContains(()), "deny": ListContains(("Bash", "Edit"))},
}


def value_of(text: str) -> Any:
    place = parse_jsonc(text)
    return None if place is None else place.value


@given(values().flatmap(lambda value: st.tuples(st.just(value), texts(value))))
def test_a_text_is_read_as_what_it_says(case: tuple[Any, str]) -> None:
    value, text = case
    assert is_same_json(value_of(text), value)


FILES = st.dictionaries(st.sampled_from(["mcpServers", "permissions", "x"]), values(), max_size=3).flatmap(texts)


@given(FILES)
def test_what_was_there_stays_byte_for_byte_around_what_is_put_in(text: str) -> None:
    try:
        made = sorted(build_edits(text, parse_jsonc(text), WANTED))
    except CannotMerge:
        with pytest.raises(CannotMerge):
            merge_jsonc(text, WANTED)
        return
    result = merge_jsonc(text, WANTED)
    assert pieces(text, [(edit.start, edit.end) for edit in made]) == pieces(result, moved(made))
    assert is_same_json(value_of(result), merge_value(value_of(text), WANTED))
    for edit in made:  # an insertion, or a value that said something else
        assert edit.start == edit.end or not is_same_json(value_of(text[edit.start : edit.end]), value_of(edit.text))


@given(FILES)
def test_a_second_time_changes_nothing(text: str) -> None:
    with suppress(CannotMerge):
        once = merge_jsonc(text, WANTED)
        assert merge_jsonc(once, WANTED) == once


def pieces(text: str, between: list[tuple[int, int]]) -> list[str]:
    """What stands around some places of a text."""
    starts, ends = [0, *(end for _, end in between)], [*(start for start, _ in between), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def moved(made: list[Edit]) -> list[tuple[int, int]]:
    """Where what edits put in stands in the new text."""
    found, by = list[tuple[int, int]](), 0
    for edit in made:
        found.append((edit.start + by, edit.start + by + len(edit.text)))
        by += len(edit.text) - (edit.end - edit.start)
    return found


DENY = {"permissions": {"deny": ListContains(("Bash", "Edit"))}}
PLACED = [
    pytest.param("", '{\n  "permissions": {\n    "deny": ["Bash", "Edit"]\n  }\n}\n', id="nothing"),
    pytest.param("// mine\n", '// mine\n{\n  "permissions": {\n    "deny": ["Bash", "Edit"]\n  }\n}\n', id="a comment"),
    pytest.param("{}", '{\n  "permissions": {\n    "deny": ["Bash", "Edit"]\n  }\n}', id="an empty object"),
    pytest.param(
        '{\n\t"a": 1 // one\n}\n',
        '{\n\t"a": 1, // one\n\t"permissions": {\n\t\t"deny": ["Bash", "Edit"]\n\t}\n}\n',
        id="behind a comment",
    ),
    pytest.param(
        '{\n    "a": 1,\n}\n',
        '{\n    "a": 1,\n    "permissions": {\n        "deny": ["Bash", "Edit"]\n    },\n}\n',
        id="a comma too many",
    ),
    pytest.param('{"a": 1}', '{"a": 1, "permissions": {"deny": ["Bash", "Edit"]}}', id="one line"),
    pytest.param(
        '{"permissions": {"deny": ["Read(.env)"]}}',
        '{"permissions": {"deny": ["Read(.env)", "Bash", "Edit"]}}',
        id="a list on one line",
    ),
    pytest.param(
        '{\n  "permissions": {\n    "deny": [\n      "Bash" // no shell\n    ]\n  }\n}',
        '{\n  "permissions": {\n    "deny": [\n      "Bash", // no shell\n      "Edit"\n    ]\n  }\n}',
        id="a list over lines",
    ),
    pytest.param(
        '{\r\n  "a": 1\r\n}\r\n',
        '{\r\n  "a": 1,\r\n  "permissions": {\r\n    "deny": ["Bash", "Edit"]\r\n  }\r\n}\r\n',
        id="carriage returns",
    ),
]


@pytest.mark.parametrize(("text", "expected"), PLACED)
def test_what_is_new_is_written_as_the_file_is(text: str, expected: str) -> None:
    assert merge_jsonc(text, DENY) == expected


def test_what_a_person_added_to_the_entry_stays() -> None:
    text = '{"mcpServers": {"handrail": {"command": "old", "env": {"A": "1"}}}}'
    result = merge_jsonc(text, {"mcpServers": {"handrail": ServerEntry(SERVER)}})
    assert json.loads(result)["mcpServers"]["handrail"] == {**SERVER, "env": {"A": "1"}}


def test_an_entry_with_an_address_is_another_kind_and_is_exchanged() -> None:
    text = '{"mcpServers": {"handrail": {"url": "http://127.0.0.1:1/mcp"}}}'
    result = merge_jsonc(text, {"mcpServers": {"handrail": ServerEntry(SERVER)}})
    assert json.loads(result)["mcpServers"]["handrail"] == SERVER


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "not a JSON object"),
        ('{"permissions": []}', "permissions is a list"),
        ('{"permissions": null}', "permissions is null"),
        ('{"permissions": {"deny": "Bash"}}', "permissions.deny is a text"),
        ('{"permissions": {}, "permissions": {}}', "permissions twice"),
    ],
)
def test_a_file_that_says_something_else_there_is_left_alone(text: str, why: str) -> None:
    with pytest.raises(CannotMerge, match=why):
        merge_jsonc(text, DENY)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1, column 2: a name in quotes was expected"),
        ('{"a": 1 "b": 2}', "line 1, column 9: a comma or the end is missing"),
        ('{\n"a" 1}', "line 2, column 5: a colon is missing"),
        ('{"a": }', "a value was expected"),
        ('{"a": 1} x', "something follows"),
        ('{"a": 01}', "is not a value"),
        ("{'a': 1}", "a name in quotes"),
        ('{"a": "\n"}', "a value was expected"),
        ('{"a": 1} /* open', "something follows"),
        ("[" * 200, "levels deep"),
        ("[,]", "a value was expected"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ConfigSyntaxError, match=why):
        merge_jsonc(text, DENY)


@given(st.text(alphabet='{}[]",: \n/*ab1\\', max_size=40))
def test_no_text_makes_it_do_anything_but_edit_or_refuse(text: str) -> None:
    try:
        result = merge_jsonc(text, DENY)
    except (ConfigSyntaxError, CannotMerge):
        return
    assert is_same_json(value_of(result), merge_value(value_of(text), DENY))
