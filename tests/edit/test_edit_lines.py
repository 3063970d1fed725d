"""In which line a position is, and where lines start and end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.lines import Span, count_lines, find_line_end, find_line_start, list_line_ranges

texts = st.text(st.sampled_from("ab\n"), max_size=30)


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
