"""What an expression may cost in Python: counted in steps and sizes, not in seconds."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from handrail.kernel.openat2 import has_openat2
from handrail.protocol.errors import ToolError
from handrail.workspace.search.engine import MAX_LINE_BYTES, Pattern, SearchScope
from handrail.workspace.search.expression import Expression
from handrail.workspace.search.python_engine import PythonEngine
from handrail.workspace.search.regex import threads
from handrail.workspace.search.regex.alphabet import Alphabet
from handrail.workspace.search.regex.effort import Limit
from handrail.workspace.search.regex.parser import parse_pattern
from handrail.workspace.search.regex.patience import TimeBudget
from handrail.workspace.search.regex.searcher import Searcher
from handrail.workspace.search.regex.threads import NfaProgram, StepBudget
from handrail.workspace.search.regex.tree import Characters, Concatenation, Node

IDEOGRAPHS = "".join(map(chr, range(0x3400, 0x9FFF)))
NOTHING: frozenset[str] = frozenset()


def tree(pattern: str) -> Node:
    return parse_pattern(pattern, case_sensitive=True)[0]


def never() -> bool:
    return False


@pytest.mark.parametrize("ways", [10, 30, 90])
def test_following_all_ways_takes_no_more_than_each_step_once_a_character(ways: int) -> None:
    followed, work, line = NfaProgram(tree(".*" * ways + "[cd]"), Alphabet(NOTHING)), StepBudget(never), "ab" * 200
    assert followed.search(line, 0, len(line), work) is None
    assert work.steps <= (len(line) + 1) * (followed.size + 1)


def test_many_matches_in_a_line_share_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind each match, `a.*b` is looked for up to the line's end."""
    monkeypatch.setattr(threads, "_MAX_LINE_STEPS", 200_000)
    with pytest.raises(ToolError) as caught:
        list(Expression("(?:a+)+.*b|a").lines("a" * 3_000 + "\n"))
    assert caught.value.code == "UNAVAILABLE"
    assert "ripgrep" in caught.value.message


def test_a_long_line_is_left_as_soon_as_the_search_is_to_end() -> None:
    asked = count()
    found = list(Expression("(?:a|b|ab)*[cd]").lines("ab" * 100_000 + "c\n", lambda: next(asked) > 5))
    assert found == []
    assert next(asked) < 10


@pytest.mark.parametrize(
    ("pattern", "power"), [(r"\w+[(\[]", 1), ("a*a*[bc]", 2), (".*x.*[yz]", 3), ("abc", 0), ("[ab]{30}", 0)]
)
@pytest.mark.parametrize("lengths", [[10] * 5_000, [400] * 200, [9_900] * 12, [5, 20_000, 5, 300, 0, 0, 100_000]])
def test_what_re_is_given_at_once_is_within_the_budget(pattern: str, power: int, lengths: list[int]) -> None:
    text = "".join("a" * length + "\n" for length in lengths)
    parts = list(Limit(tree(pattern), Alphabet(NOTHING)).stretches(text))
    assert "".join(text[start:end] for start, end, _ in parts) == text
    for start, end, cheap in parts:
        longest = max(map(len, text[start:end].split("\n")))
        assert text[end - 1] == "\n"
        assert (end - start) * longest**power <= 10**7 if cheap else text.count("\n", start, end) == 1


def test_short_lines_are_given_to_re_many_at_a_time() -> None:
    parts = list(Limit(tree(".*x.*[yz]"), Alphabet(NOTHING)).stretches("some text\n" * 1_000))
    assert len(parts) < 50


@pytest.mark.parametrize("pattern", ["a*a*[bc]", r"(\w+) (\w*)", "a*?|b"])
def test_where_re_turns_out_slow_the_rest_is_followed_with_the_same_result(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "aaa aab\nb c\n\naa\n" * 3_000
    followed = followed_lines(monkeypatch)
    seconds = count()
    slow = Searcher(tree(pattern), NOTHING, lambda: TimeBudget(lambda: next(seconds)))
    patient = Searcher(tree(pattern), NOTHING, lambda: TimeBudget(lambda: 0))
    expected = list(patient.lines(text, never))
    assert not followed
    assert list(slow.lines(text, never)) == expected
    assert followed


def followed_lines(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where threads began to search."""
    positions: list[int] = []
    search: Callable[..., tuple[int, int] | None] = NfaProgram.search

    def noted(self: NfaProgram, text: str, position: int, end: int, work: StepBudget) -> tuple[int, int] | None:
        positions.append(position)
        return search(self, text, position, end, work)

    monkeypatch.setattr(NfaProgram, "search", noted)
    return positions


def test_equal_sets_share_their_members() -> None:
    alphabet = Alphabet(frozenset(IDEOGRAPHS))
    found = tree(r"[^a]" * 50 + r"\w\w[^[a]][[:alpha:]]\W\W")
    assert isinstance(found, Concatenation)
    sets = [alphabet.members(part) for part in found.parts if isinstance(part, Characters)]
    assert len(sets) == 56
    assert len({id(members) for members in sets}) == 4
    assert alphabet.held < 4 * len(IDEOGRAPHS)


def test_a_set_is_spelled_in_few_words_however_its_text_is_scattered() -> None:
    alphabet = Alphabet(frozenset(IDEOGRAPHS[::2]))
    (not_one,) = {alphabet.members(Characters(lambda character: character != IDEOGRAPHS[100]))}
    assert len(alphabet.spelled(not_one)) < 100


def test_more_sets_than_can_be_held_are_left_to_ripgrep() -> None:
    different = "".join(f"[^{character}]" for character in IDEOGRAPHS[:100])
    for pattern in (different, "[^a]" * 1_000):
        with pytest.raises(ToolError) as caught:
            list(Expression(pattern).lines(IDEOGRAPHS))
        assert caught.value.code == "UNAVAILABLE"
        assert "sets" in caught.value.message


def test_sets_mean_the_same_beside_what_is_no_character() -> None:
    """Ranges reach over what does not occur, but never over a byte that is no UTF-8, nor over a line's end."""
    text = "a\udc80\ue000\r\nb\udcffz\n"
    assert [line.spans for line in Expression("[^q]+").lines(text)] == [[(0, 1), (2, 3)], [(0, 1), (2, 3)]]


def test_a_match_in_a_line_too_long_to_be_shown_is_counted(workspace: Path) -> None:
    (workspace / "file").write_bytes(b"x" * (MAX_LINE_BYTES - 8) + b"hit\n")
    engine, pattern = PythonEngine(), Pattern("hit")
    folder = os.open(workspace, os.O_RDONLY)
    where = SearchScope(folder, folder, ".", has_openat2())
    assert list(engine.hits(where, pattern, never)) == []
    assert where.notes.oversized == 1
    descriptor = os.open(workspace / "file", os.O_RDONLY)
    found = engine.stream(descriptor, pattern, never)
    assert found is not None
    assert (found.lines, found.oversized) == ((), 1)
    os.close(descriptor)
    os.close(folder)
