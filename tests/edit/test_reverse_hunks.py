"""Hunks of a diff are taken back out of a text that changed since: exactly where they are as they were, else not."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.edit.diff import build_unified_diff
from handrail.edit.diff_parser import reverse_hunks

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "+", "-x", "\\ no", "@@ -1 +1 @@"]), max_size=40)
TEXTS = st.tuples(LINES, st.sampled_from(["", "\n"])).map(lambda pair: "\n".join(pair[0]) + pair[1])


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(count))


def test_a_diff_is_taken_back_out_of_the_very_text_it_made() -> None:
    old = numbered(40)
    new = old.replace("line 3\n", "three\n").replace("line 30\n", "")
    taken = reverse_hunks(build_unified_diff(old, new, "a").text, old, new)
    assert taken == (old, 2, 0)


def test_a_hunk_whose_surroundings_changed_stays() -> None:
    old = numbered(40)
    new = old.replace("line 3\n", "three\n").replace("line 30\n", "thirty\n")
    since = new.replace("line 31\n", "theirs\n")
    taken = reverse_hunks(build_unified_diff(old, new, "a").text, old, since)
    assert taken == (since.replace("three\n", "line 3\n"), 1, 1)


def test_a_hunk_that_is_there_twice_stays() -> None:
    old, new = "a\nb\nc\n", "a\nB\nc\n"
    assert reverse_hunks(build_unified_diff(old, new, "a").text, old, new + new) == (new + new, 0, 1)


def test_a_hunk_moves_with_its_lines() -> None:
    old = numbered(40)
    new = old.replace("line 20\n", "twenty\n")
    since = "above\n" * 100 + new
    assert reverse_hunks(build_unified_diff(old, new, "a").text, old, since) == ("above\n" * 100 + old, 1, 0)


def test_a_missing_newline_at_the_end_comes_back_as_it_was() -> None:
    for old, new in (("a\nb", "a\nc\n"), ("a\nb\n", "a\nc"), ("a", "b"), ("", "b"), ("a\nb", "a\nb\nc")):
        assert reverse_hunks(build_unified_diff(old, new, "a").text, old, new) == (old, 1, 0)


def test_what_was_there_twice_when_it_was_made_is_not_taken_for_the_other() -> None:
    old = "one\nx\ntwo\n" + numbered(20) + "one\ny\ntwo\n"
    new = "one\ny\ntwo\n" + numbered(20) + "one\ny\ntwo\n"
    hunk_only = build_unified_diff(old, new, "a").text
    since = numbered(20) + "one\ny\ntwo\n"
    taken = reverse_hunks(hunk_only, old, since)
    assert taken is not None
    assert (taken.text, taken.done) == (since, 0)


def test_a_line_without_its_end_is_put_at_the_end_only() -> None:
    assert reverse_hunks(build_unified_diff("a", "b\n", "f").text, "a", "b\nuser\n") == ("b\nuser\n", 0, 1)


def test_a_diff_of_another_text_says_nothing() -> None:
    assert reverse_hunks(build_unified_diff("a\nb\n", "a\nc\n", "f").text, "x\ny\n", "a\nc\n") is None


def test_a_diff_that_is_cut_off_or_none_says_nothing() -> None:
    long = build_unified_diff(numbered(20_000), numbered(20_000).replace("line", "row"), "a")
    assert long.truncated
    for diff in (long.text, "", "(the old content is binary or over 8 MiB: no diff)\n"):
        assert reverse_hunks(diff, "", "anything") is None


@given(old=TEXTS, new=TEXTS)
def test_whatever_changed_each_hunk_is_taken_back_or_left(old: str, new: str) -> None:
    if old == new:
        return
    taken = reverse_hunks(build_unified_diff(old, new, "a").text, old, new)
    assert taken is not None
    assert taken.done + taken.left > 0
    if taken.left == 0 and taken.done == 1:
        assert taken.text == old
