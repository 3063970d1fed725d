"""Where a text is, how often, and in which lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.lines import (
    Span,
    count_lines,
    find_exact_match,
    find_line_end,
    find_line_start,
    list_line_ranges,
    list_places,
)

texts = st.text(st.sampled_from("ab\n"), max_size=30)
parts = st.text(st.sampled_from("ab\n"), min_size=1, max_size=4)


@given(texts, parts)
def test_every_place_is_found_and_those_apart_are_what_replace_takes(text: str, part: str) -> None:
    places = [at for at in range(len(text)) if text.startswith(part, at)]
    match = find_exact_match(text, part)
    if match is None:
        assert not places
        return
    assert [span.start for span in match.overlapping()] == places
    assert match.unique == (len(places) == 1)
    assert list_places(match, 100) == ([Span(at, at + len(part)) for at in places], True)
    apart = list(match.separate())
    assert len(apart) == text.count(part)
    rest = text
    for start, end in reversed(apart):
        rest = f"{rest[:start]}X{rest[end:]}"
    assert rest == text.replace(part, "X")


def test_counting_ends() -> None:
    match = find_exact_match("a" * 50_000, "a")
    assert match is not None
    found, complete = list_places(match, 1_000)
    assert (len(found), complete) == (1_000, False)


def test_counting_long_overlapping_places_ends_soon() -> None:
    match = find_exact_match("a" * 4_000_000, "a" * 2_000_000)
    assert match is not None
    found, complete = list_places(match, 1_000)
    assert (len(found), complete) == (9, False)


@given(texts, st.data())
def test_lines_are_counted_from_one(text: str, data: st.DataObject) -> None:
    starts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    spans = [Span(start, data.draw(st.integers(start, len(text)))) for start in starts]
    expected = [(text.count("\n", 0, start) + 1, text.count("\n", 0, max(start, end - 1)) + 1) for start, end in spans]
    assert list(list_line_ranges(text, spans)) == expected


@given(texts, st.data())
def test_lines_begin_and_end_where_they_do(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    back, on = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    line = text.count("\n", 0, at)
    lines = text.split("\n")
    begin = sum(len(each) + 1 for each in lines[: max(0, line - back)])
    end = min(len(text), sum(len(each) + 1 for each in lines[: line + on + 1]))
    assert find_line_start(text, at, back) == begin
    assert find_line_end(text, at, on) == end


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)])
def test_a_text_has_as_many_lines_as_a_reader_sees(text: str, count: int) -> None:
    assert count_lines(text) == count
