"""What is made of a SKILL.md, whatever is in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.skills.parser import FrontMatterError, parse_front_matter, split_front_matter
from handrail.workspace.text import decode_text

FRONT = "---\nname: x\n---\n"


def test_the_front_matter_ends_at_the_second_line_of_dashes() -> None:
    assert split_front_matter("---\nname: x\n---\n\nOne\n---\nTwo\n") == ("name: x", "One\n---\nTwo")


@pytest.mark.parametrize("text", ["", "# No front matter", "---\nname: x\n", "--- # not\nname: x\n---\n"])
def test_a_text_without_one_is_told_as_that(text: str) -> None:
    with pytest.raises(FrontMatterError, match="front matter"):
        split_front_matter(text)


def test_every_value_is_a_text_a_list_or_a_table_of_them() -> None:
    found = parse_front_matter("a: 1.0\nb: 2024-01-01\nc: true\nd: [x, 2]\ne: {f: null}\ng:\n")
    assert found == {"a": "1.0", "b": "2024-01-01", "c": "true", "d": ["x", "2"], "e": {"f": "null"}, "g": ""}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: [", "not valid YAML"),
        ("name: 'x", "not valid YAML"),
        ("a: b: c", "not valid YAML: mapping values are not allowed .* in line 2"),
        ("- a\n- b", "not a table of names and values"),
        ("only words", "not a table of names and values"),
        ("", "not a table of names and values"),
        ("a: &x [1]\nb: *x", "references"),
        ("a: " + "[" * 8_000, "nested too deeply"),
        ("? [a, b]\n: c", "YAML|key"),
        ("a: !!python/object/apply:os.system [id]\nb: *x", "references"),
        ("a: " + "x" * 9_000, "more than 8192 characters"),
        ("a: \x07", "not valid YAML"),
    ],
)
def test_one_that_cannot_be_used_says_why(text: str, why: str) -> None:
    with pytest.raises(FrontMatterError, match=why):
        parse_front_matter(text)


def test_tags_make_no_objects() -> None:
    assert parse_front_matter("a: !!python/object/apply:os.system [id]") == {"a": ["id"]}


@given(st.text(max_size=300))
def test_no_text_at_all_makes_it_crash(text: str) -> None:
    found: Any
    try:
        found = parse_front_matter(text)
    except FrontMatterError:
        return
    assert isinstance(found, dict)


@given(st.binary(max_size=200))
def test_neither_do_bytes(data: bytes) -> None:
    text = decode_text(FRONT.encode() + data)
    assert text is None or split_front_matter(text.text)[0] == "name: x"
