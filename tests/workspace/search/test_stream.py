"""A file that was named: what is found in it is bounded, and what is said of it is true."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Search
from handrail.workspace.search import engine
from handrail.workspace.search.engine import MAX_HITS, MAX_LINE_BYTES
from handrail.workspace.search.ripgrep import HitAssembler

Rail = Callable[..., Handrail]


@pytest.fixture(params=["ripgrep", "python"])
def either(rail: Rail, request: pytest.FixtureRequest) -> Handrail:
    """Searches with one engine or the other."""
    return rail(settings=Settings(search=Search(engine=request.param)))


def test_more_hits_than_are_counted_are_a_lower_bound(either: Handrail, workspace: Path) -> None:
    (workspace / "log").write_text("hit\n" * (MAX_HITS + 1_000))
    result = either.grep("hit", "log")
    assert (result.meta.total, result.meta.total_is_lower_bound) == (MAX_HITS + 1, True)
    assert result.meta.limits == ("search.hits",)
    assert result.meta.output is None


def test_more_text_than_is_held_ends_the_search_which_says_so(
    either: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MAX_RESULT_BYTES", 1 << 20)
    (workspace / "log").write_text(("hit\n" + "other\n" * 40) * 1_000)
    for path in ("log", "."):
        result = either.grep("hit", path, context_lines=20, max_results=5)
        assert result.meta.returned == 5
        assert 5 <= result.meta.total < 1_000
        assert result.meta.total_is_lower_bound
    assert either.grep("hit", "log", context_lines=20).meta.limits == ("search.size",)


def test_a_line_too_long_to_be_taken_in_is_told_of(rail: Rail, workspace: Path) -> None:
    (workspace / "long").write_text("x" * MAX_LINE_BYTES + "hit\n")
    result = rail().grep("hit", "long")
    assert (result.meta.returned, len(result.warnings)) == (0, 1)
    assert result.warnings[0].startswith("1 matching line of over 16 MB")


def messages(path: str, *lines: str) -> Iterator[bytes]:
    yield f"./{path}\0".encode()
    for number, line in enumerate(lines, 1):
        yield f"{number}\0{1}\0{0}\0{line}\n".encode()


def test_what_came_of_a_file_that_did_not_end_is_given_out() -> None:
    assembler = HitAssembler()
    assert list(assembler.hits(messages("a", "one", "two"))) == []
    (found,) = assembler.take_file(unfinished=True)
    assert (found.path, [line.data for line in found.lines], found.unfinished) == (b"a", [b"one", b"two"], True)


def test_of_a_file_with_too_much_the_first_is_given_out_and_the_next_file_is_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "MAX_RESULT_BYTES", 3 * engine.LINE_BYTES)
    pieces = [*messages("a", *"123456789"), b"\n", *messages("b", "1")]
    assembler = HitAssembler()
    found = [*assembler.hits(pieces), *assembler.take_file()]
    assert [(hits.path, len(hits.lines), hits.unfinished) for hits in found] == [(b"a", 3, True), (b"b", 1, False)]


def test_a_name_that_policy_withholds_does_not_tell_of_its_long_lines(rail: Rail, workspace: Path) -> None:
    """ripgrep is not kept from names that only unusual spelling makes credentials: what it says of them is dropped."""
    (workspace / ".env.").write_text("KEY=secret" + "x" * MAX_LINE_BYTES + "\n")
    (workspace / "a").write_text("other\n")
    one = rail()
    assert one.grep("KEY=secret").warnings == one.grep("KEY=other").warnings == ()
