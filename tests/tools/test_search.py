"""What find and grep say about what is missing: it follows from the limits that hold."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.tools.search import describe_omissions
from handrail.workspace.search.engine import SearchStats
from handrail.workspace.search.python_engine import PythonEngine
from handrail.workspace.search.search import Engines, Limit, SearchResult

Rail = Callable[..., Handrail]


def words(notes: SearchStats | None = None, *limits: Limit, seconds: float = 1.0) -> list[str]:
    found = SearchResult[bytes]([], 0, not limits, limits, 0, notes or SearchStats())
    return list(describe_omissions(found, Engines(PythonEngine(), PythonEngine(), seconds), 0, "files", "path"))


@pytest.mark.parametrize("seconds", [1.0, 10.0])
def test_the_time_that_is_named_is_the_time_that_the_search_has(seconds: float) -> None:
    [said] = words(None, "time", seconds=seconds)
    assert said == f"The search was not finished in {seconds:g} s: narrow path."


def test_the_other_limits_are_named_with_their_numbers() -> None:
    assert words(None, "hits", "size") == [
        "The search was ended at 100,000 results: narrow path.",
        "The search was ended at 64 MB of matching lines: narrow path.",
    ]


def test_one_is_told_in_the_singular_and_more_in_the_plural() -> None:
    assert words(SearchStats(unreadable=1, oversized=1)) == [
        "1 place could not be read and was passed over.",
        "1 matching line of over 16 MB was passed over.",
    ]
    assert words(SearchStats(unreadable=2, oversized=3)) == [
        "2 places could not be read and were passed over.",
        "3 matching lines of over 16 MB were passed over.",
    ]


def test_an_empty_answer_names_what_the_settings_ignore(rail: Rail) -> None:
    one = rail(settings=Settings(search=Search(ignore=("*.lock", "src/gen"))))
    for result in (one.find("absent"), one.grep("absent")):
        assert ".next, *.lock, src/gen, entries of .gitignore and .ignore" in result.content
    many = rail(settings=Settings(search=Search(ignore=tuple(f"*.{number}" for number in range(100)))))
    content = many.find("absent").content
    assert "*.9, 90 more patterns of the settings, entries" in content


def test_a_folder_that_was_searched_is_not_called_ignored(rail: Rail, workspace: Path) -> None:
    (workspace / "node_modules" / "x").mkdir(parents=True)
    for path in ("node_modules", "node_modules/x"):
        for result in (rail().find("absent", path), rail().grep("absent", path)):
            assert f"Searched {path}" in result.content
            assert "Ignored: .git, further node_modules, dist" in result.content


def test_names_that_are_withheld_are_told_of_in_the_text(rail: Rail, workspace: Path) -> None:
    for name in ("a", ".env"):
        (workspace / name).write_text("hit\n")
    one = rail()
    assert one.find("*").content == "a\n"
    one.exec("true")
    assert one.find("*").content == "a\n\n1 protected name is not shown.\n"
    assert one.grep("hit").content == "a\n  1: hit\n\n1 protected name is not shown.\n"
    (workspace / "id_rsa").write_text("hit\n")
    one.exec("true")
    assert one.find("*").content.endswith("\n\n2 protected names are not shown.\n")
    assert one.grep("absent").content.endswith("\n\n2 protected names are not shown.\n")


def test_a_path_to_nothing_is_refused_as_what_each_tool_takes(rail: Rail, workspace: Path) -> None:
    (workspace / "note.txt").touch()
    assert rail().grep("x", "notes.txt").error.message == "No file or folder notes.txt. Near: note.txt."
    assert rail().find("x", "notes.txt").error.message == "No folder notes.txt. Near: note.txt."
