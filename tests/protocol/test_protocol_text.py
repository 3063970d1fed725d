"""Text helpers: what is escaped, how wide a text is, where it is cut, how ages are written."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.records import format_age
from handrail.protocol.text import (
    escape_control,
    escape_unprintable,
    measure_width,
    truncate,
    truncate_to_width,
    wrap,
)

ANY = st.text(st.characters(exclude_categories=()), max_size=200)
VISIBLE = [
    pytest.param("plain text, tab\tand\nnewline", "plain text, tab\tand\nnewline", id="plain"),
    pytest.param(
        "Grüße, 你好, ✓, e\u0301, a\u00a0b, 全\u3000角", "Grüße, 你好, ✓, e\u0301, a\u00a0b, 全\u3000角", id="letters"
    ),
    pytest.param("👍🏽 ⚠️", "👍🏽 ⚠️", id="emoji"),
    pytest.param("\x1b[2J", "\\u001b[2J", id="escape"),
    pytest.param("\x9b2J\x7f\x00\r", "\\u009b2J\\u007f\\u0000\\u000d", id="control"),
    pytest.param(
        "\u202eexe\u202c \u2066x\u2069 \u200f\u061c", "\\u202eexe\\u202c \\u2066x\\u2069 \\u200f\\u061c", id="bidi"
    ),
    pytest.param("a\u200bb\u200dc\u2060\ufeff\u00ad", "a\\u200bb\\u200dc\\u2060\\ufeff\\u00ad", id="zero width"),
    pytest.param("\u3164\u115f\u034f", "\\u3164\\u115f\\u034f", id="blank letters"),
    pytest.param("\U000e0041\U000e0100", "\\udb40\\udc41\\udb40\\udd00", id="tags and selectors"),
    pytest.param("\udcff\ud800", "\\udcff\\ud800", id="lone surrogates"),
    pytest.param("\u2028\u2029", "\\u2028\\u2029", id="line separators"),
]


@pytest.mark.parametrize(("text", "expected"), VISIBLE)
def test_what_steers_a_terminal_or_shows_nothing_is_written_out(text: str, expected: str) -> None:
    assert escape_control(text) == expected


@given(ANY, st.integers(1, 60))
def test_rows_hold_every_character_and_are_no_wider_than_they_may_be(text: str, width: int) -> None:
    line = text.replace("\n", " ").replace("\t", " ")
    rows = list(wrap(line, width))
    assert "".join(rows) == line
    assert all(measure_width(row) <= width or len(row) == 1 for row in rows)
    assert [row.removeprefix("  ") for row in wrap(line.strip(), 100, "  ")] or not line.strip()


@given(ANY, st.integers(1, 60))
def test_a_truncated_text_has_at_most_so_many_characters_and_shows_that_it_is_cut(text: str, most: int) -> None:
    assert truncate(text, most) == (text if len(text) <= most else f"{text[: most - 1]}…")
    assert len(truncate(text, most)) <= most


def test_a_text_is_truncated_by_its_columns() -> None:
    assert truncate_to_width("日本語", 6) == "日本語"
    assert truncate_to_width("日本語", 5) == "日本…"


@given(ANY)
def test_an_escaped_text_is_printable_and_a_printable_text_stays(text: str) -> None:
    assert escape_unprintable(text).isprintable()
    assert escape_unprintable(text) == text or not text.isprintable()


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-5, "0 s"), (7.5, "7 s"), (90, "1 min"), (7_300, "2 h"), (3 * 86_400 + 60, "3 d")],
)
def test_an_age_is_written_in_its_largest_unit(seconds: float, expected: str) -> None:
    assert format_age(timedelta(seconds=seconds)) == expected
