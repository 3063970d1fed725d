"""Trees and files that are too much: the answer is bounded, says so, and is the same again."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.workspace.search import engine, search
from handrail.workspace.search.engine import MAX_HITS, MAX_LINE_BYTES, MAX_SHOWN_BYTES

Rail = Callable[..., Handrail]


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail()


@pytest.fixture
def patient(rail: Rail) -> Handrail:
    """Searches in Python, which has so much time that it is never the time that ends a search here."""
    return rail(settings=Settings(search=Search(engine="python")))


def test_many_hits_give_the_same_first_ones_every_time(one: Handrail, workspace: Path) -> None:
    for name in ("a", "b"):
        (workspace / name).write_text("hit\n" * (MAX_HITS - 10))
    results = [one.grep("hit", max_results=10) for _ in range(3)]
    assert len({result.content for result in results}) == 1
    for result in results:
        assert [match.line for match in result.data.matches] == list(range(1, 11))
        assert (result.meta.truncated, result.meta.total_is_lower_bound, result.meta.output) == (True, True, None)
        assert result.meta.total > 10
        assert "narrow path, filePattern or pattern" in result.warnings[0]


def test_more_hits_than_are_counted_end_the_search_which_says_so(patient: Handrail, workspace: Path) -> None:
    """More are asked for than can be there at once: all are searched for, and they are too many."""
    each = 9_000
    for number in range(MAX_HITS // each + 1):
        (workspace / f"f{number:02}").write_text("hit\n" * each)
    result = patient.grep("hit", max_results=10_000, context_lines=1)
    assert result.meta.limits == ("search.hits",)
    assert [(match.path, match.line) for match in result.data.matches] == [
        (f"f{number // each:02}", number % each + 1) for number in range(10_000)
    ]
    assert (result.meta.returned, result.meta.total_is_lower_bound) == (10_000, True)
    assert result.warnings[0] == f"The search was ended at {MAX_HITS:,} results: narrow path, filePattern or pattern."


def test_of_too_many_hits_those_that_were_seen_are_the_least_there_are(
    patient: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs saw some, and the one that fills the answer saw fewer."""
    monkeypatch.setattr(search, "MAX_HITS", 50)
    monkeypatch.setattr(search, "_ATTEMPT_SECONDS", -1)
    for number in range(60):
        (workspace / f"f{number:02}").write_text("hit\n")
    result = patient.grep("hit", max_results=10)
    assert (result.meta.limits, result.meta.returned, result.meta.total) == (("search.hits",), 10, 51)
    assert result.meta.total_is_lower_bound


def test_more_text_than_is_held_ends_the_search_which_says_so(
    patient: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch, deep: bool
) -> None:
    """Each hit comes with forty neighbours, so there are too few hits for any other limit."""
    if not deep:
        monkeypatch.setattr(engine, "MAX_RESULT_BYTES", 3 << 20)
    neighbours = ("x" * (MAX_SHOWN_BYTES - 1) + "\n") * 20
    text = f"{neighbours}hit\n{neighbours}" * 100
    files = engine.MAX_RESULT_BYTES // len(text) + 2
    for number in range(files):
        (workspace / f"f{number:02}").write_text(text)
    result = patient.grep("hit", max_results=10_000, context_lines=20)
    assert result.meta.limits == ("search.size",)
    assert 0 < result.meta.returned < files * 100
    assert (result.meta.truncated, result.meta.total_is_lower_bound) == (True, True)
    assert "MB of matching lines: narrow" in result.warnings[0]


def test_a_line_too_long_to_be_taken_in_is_passed_over_and_told(one: Handrail, workspace: Path) -> None:
    (workspace / "long").write_text("hit " + "x" * (MAX_LINE_BYTES + 10) + "\nhit again\n")
    result = one.grep("hit")
    assert [(match.line, match.text) for match in result.data.matches] == [(2, "hit again")]
    assert "1 matching line" in " ".join(result.warnings)


def test_many_long_lines_are_shown_within_bounds(one: Handrail, workspace: Path) -> None:
    (workspace / "long").write_text(("x" * 100_000 + "hit" + "y" * 100_000 + "\n") * 50)
    result = one.grep("hit", context_lines=1)
    assert result.meta.returned == 50
    assert len(result.content) < 50 * 600
    assert all(match.text.startswith("…x") and match.text.endswith("y…") for match in result.data.matches)


@pytest.mark.parametrize("ignored", [3, 1_500])
def test_protected_names_are_counted_however_much_is_ignored(
    one: Handrail, workspace: Path, protected: Callable[..., set[bytes]], ignored: int
) -> None:
    (workspace / ".gitignore").write_text("*.o\n")
    for number in range(ignored):
        (workspace / f"f{number}.o").write_text("hit\n")
    for name in (".env", "big", "small"):
        (workspace / name).write_text("hit\n")
    one.exec("true")
    for _ in range(2):
        result = one.grep("hit")
        assert [match.path for match in result.data.matches] == ["big", "small"]
        assert result.meta.protected == 1
    assert (protected(), protected(last=b"-")) == ({b".env"}, set())


def test_many_files_are_found_and_searched_or_the_time_is_named(one: Handrail, workspace: Path, deep: bool) -> None:
    files, every = (200_000, 10_000) if deep else (2_000, 100)
    for number in range(files):
        if number % 500 == 0:
            folder = workspace / f"d{number // 500:03}"
            folder.mkdir()
        descriptor = os.open(f"{folder}/f{number}.txt", os.O_WRONLY | os.O_CREAT)
        if number % every == 5:
            os.write(descriptor, b"needle\n")
        os.close(descriptor)
    found, searched = one.find(f"f{files - 1}.txt"), one.grep("needle")
    for result, total in ((found, 1), (searched, files // every)):
        assert (result.meta.limits, result.meta.total) == ((), total) or (
            result.meta.limits == ("search.time",) and result.meta.total_is_lower_bound
        )
    first = one.find("*", max_results=3)
    assert list(first.data.files) == ["d000/f0.txt", "d000/f1.txt", "d000/f10.txt"]
