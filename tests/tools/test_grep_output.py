"""What grep makes of the lines that were found: how often it goes through them, and where it cuts."""

from collections.abc import Iterator

import pytest

from handrail.tools.grep import GrepArguments, build_grep_output
from handrail.workspace.search.engine import FileHits, HitLine, SearchStats
from handrail.workspace.search.python_engine import PythonEngine
from handrail.workspace.search.search import Engines, SearchResult

ENGINES = Engines(PythonEngine(), PythonEngine())


class Watched(tuple[HitLine, ...]):
    """Lines that count how often somebody begins to go through them."""

    __slots__ = ()
    times = 0

    def __iter__(self) -> Iterator[HitLine]:
        Watched.times += 1
        return super().__iter__()


def test_the_lines_of_a_file_are_gone_through_a_few_times_however_many_they_are() -> None:
    """With a look at all lines at every gap between two of them, 40,000 hits took 40 seconds."""
    counts: list[int] = []
    for hits in (10, 1_000):
        lines = Watched(HitLine(2 * number + 1, 8 * number, b"hit", is_hit=True) for number in range(hits))
        Watched.times = 0
        found = SearchResult([FileHits(b"a", lines)], hits, True, (), 0, SearchStats())
        output = build_grep_output(GrepArguments(pattern="hit"), found, "a", ENGINES, bytes.decode, "")
        assert output.meta["total"] == hits
        counts.append(Watched.times)
    assert max(counts) < 20


def cut(lines: tuple[HitLine, ...]) -> tuple[str, ...]:
    """What follows the first match, where no more than that is asked for."""
    found = SearchResult([FileHits(b"a", lines)], sum(line.is_hit for line in lines), False, (), 0, SearchStats())
    arguments = GrepArguments(pattern="hit", context_lines=2, max_results=1)
    (match,) = build_grep_output(arguments, found, "a", ENGINES, bytes.decode, "").data.matches
    return match.after


def test_what_follows_the_last_match_ends_at_the_next_one_whichever_run_found_it() -> None:
    first, near, far = (HitLine(number, 6 * number, b"hit", is_hit=True) for number in (1, 3, 4))
    between = HitLine(2, 12, b"other")
    assert cut((first, between, near)) == ("other",)
    assert cut((first, between, near, far)) == ("other",)
    assert cut((first, HitLine(2, 12, b"hit", is_hit=True), HitLine(3, 18, b"other"))) == ()


def test_an_empty_answer_of_a_search_that_did_not_come_to_its_end_does_not_say_that_there_is_nothing() -> None:
    for exact, words in ((True, "No matches. Searched a."), (False, "No matches so far: the search did not come")):
        output = build_grep_output(
            GrepArguments(pattern="hit"),
            SearchResult([], 0, exact, (), 0, SearchStats()),
            "a",
            ENGINES,
            str,
            "Searched a.",
        )
        assert output.content.startswith(words)
        assert (output.summary == "No matches") == exact


def test_a_whole_that_is_too_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.tools.grep.MAX_RESULT_BYTES", 100)
    for hits, kept in ((5, True), (50, False)):
        lines = tuple(HitLine(number + 1, 4 * number, b"hit", is_hit=True) for number in range(hits))
        found = SearchResult([FileHits(b"a", lines)], hits, True, (), 0, SearchStats())
        output = build_grep_output(GrepArguments(pattern="hit", max_results=1), found, "a", ENGINES, bytes.decode, "")
        assert (output.whole is not None) == kept
