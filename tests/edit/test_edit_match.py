"""Where a text is, and how often."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.lines import Span, find_places
from handrail.edit.match import list_places

texts = st.text(st.sampled_from("ab\n"), max_size=30)
parts = st.text(st.sampled_from("ab\n"), min_size=1, max_size=4)


@given(texts, parts)
def test_every_place_is_found_and_those_apart_are_what_replace_takes(text: str, part: str) -> None:
    places = [at for at in range(len(text)) if text.startswith(part, at)]
    assert [span.start for span in find_places(text, part)] == places
    assert list_places(text, part, 100) == ([Span(at, at + len(part)) for at in places], True)
    apart = list(find_places(text, part, overlapping=False))
    assert len(apart) == text.count(part)
    rest = text
    for start, end in reversed(apart):
        rest = f"{rest[:start]}X{rest[end:]}"
    assert rest == text.replace(part, "X")


def test_counting_ends() -> None:
    found, complete = list_places("a" * 50_000, "a", 1_000)
    assert (len(found), complete) == (1_000, False)


def test_counting_long_overlapping_places_ends_soon() -> None:
    found, complete = list_places("a" * 4_000_000, "a" * 2_000_000, 1_000)
    assert (len(found), complete) == (9, False)
