"""What an engine named is looked at again: what changed meanwhile, or is not inside, is not shown."""

import codecs
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from handrail.workspace.search.engine import FileHits, HitLine, Pattern, SearchScope
from handrail.workspace.search.python_engine import PythonEngine
from handrail.workspace.search.search import verify_hits, verify_names

MANY = 20
"""Names of a folder that are so many that it is listed."""


@pytest.fixture
def where(workspace: Path, resolver: str) -> Iterator[SearchScope]:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a").write_text("hit 1\nother\nhit 2\n")
    (workspace / "a").write_text("hit 1\nother\nhit 2\n")
    folder = os.open(workspace, os.O_RDONLY)
    yield SearchScope(folder, folder, ".", resolver == "kernel")
    os.close(folder)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """The same files elsewhere."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("hit 1\nother\nhit 2\n")
    return tmp_path / "outside"


def searched(where: SearchScope) -> dict[bytes, FileHits]:
    found = {hits.path: hits for hits in PythonEngine().hits(where, Pattern("hit"), lambda: False)}
    assert set(found) == {b"a", b"sub/a"}
    return found


def shown(where: SearchScope, hits: FileHits, most: int = 100) -> list[bytes]:
    true = verify_hits(where, hits, most)
    return [] if true is None else [line.data for line in true.lines]


def test_what_did_not_change_is_true(where: SearchScope) -> None:
    for hits in searched(where).values():
        assert verify_hits(where, hits, 100) == hits
    assert verify_names(where, [b"a", b"sub/a"]) == [b"a", b"sub/a"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_line_that_changed_is_dropped_and_the_others_stay(where: SearchScope, workspace: Path, mark: str) -> None:
    (workspace / "a").write_text(f"{mark}hit 1\nother\nhit 2\n")
    hits = searched(where)[b"a"]
    (workspace / "a").write_text(f"{mark}bit 1\nother\nhit 2\n")
    assert shown(where, hits) == [b"hit 2"]
    (workspace / "a").write_text(f"{mark}hit 1\n")
    assert shown(where, hits) == [b"hit 1"]
    (workspace / "a").write_text("")
    assert shown(where, hits) == []


def test_a_line_that_changed_is_dropped_in_a_file_of_another_encoding(where: SearchScope, workspace: Path) -> None:
    (workspace / "a").write_text("hit é\nhit ß\n", "utf-16")
    hits = searched(where)[b"a"]
    assert shown(where, hits) == ["hit é".encode(), "hit ß".encode()]
    (workspace / "a").write_text("hit é\nhit s\n", "utf-16")
    assert shown(where, hits) == ["hit é".encode()]


def test_lines_that_lie_far_apart_are_looked_at_one_by_one(where: SearchScope, workspace: Path) -> None:
    far = "x\n" * 100_000
    (workspace / "a").write_text(f"hit 1\n{far}hit 2\n")
    hits = searched(where)[b"a"]
    assert shown(where, hits) == [b"hit 1", b"hit 2"]
    (workspace / "a").write_text(f"hit 1\n{far}bit 2\n")
    assert shown(where, hits) == [b"hit 1"]


def test_a_file_with_neighbours_only_is_not_shown(where: SearchScope) -> None:
    assert verify_hits(where, FileHits(b"a", (HitLine(2, 6, b"other"),)), 100) is None


def test_a_file_replaced_by_a_link_is_dropped_though_the_same_is_in_it(
    where: SearchScope, workspace: Path, outside: Path
) -> None:
    hits = searched(where)[b"a"]
    (workspace / "a").unlink()
    (workspace / "a").symlink_to(outside / "a")
    assert shown(where, hits) == []
    assert verify_names(where, [b"a", b"sub/a"]) == [b"sub/a"]
    (workspace / "a").unlink()
    (workspace / "a").symlink_to("sub/a")
    assert shown(where, hits) == [], "nor is one that stays inside followed"


def test_a_folder_replaced_by_a_link_is_dropped_with_all_that_is_in_it(
    where: SearchScope, workspace: Path, outside: Path
) -> None:
    hits = searched(where)[b"sub/a"]
    (workspace / "sub").rename(workspace / "moved")
    (workspace / "sub").symlink_to(outside)
    assert shown(where, hits) == []
    assert verify_names(where, [b"a", b"sub/a"]) == [b"a"]


def test_of_many_names_in_a_folder_only_regular_files_are_true(
    where: SearchScope, workspace: Path, outside: Path
) -> None:
    names = [f"sub/f{number:02}" for number in range(MANY)]
    for name in names:
        (workspace / name).touch()
    for name in names[:3]:
        (workspace / name).unlink()
    (workspace / names[0]).symlink_to(outside / "a")
    os.mkfifo(workspace / names[1])
    assert verify_names(where, [name.encode() for name in names]) == [name.encode() for name in names[3:]]


@pytest.mark.parametrize("kind", ["gone", "folder", "fifo"])
def test_what_is_no_regular_file_any_more_is_dropped(where: SearchScope, workspace: Path, kind: str) -> None:
    hits = searched(where)[b"a"]
    (workspace / "a").unlink()
    if kind == "folder":
        (workspace / "a").mkdir()
    elif kind == "fifo":
        os.mkfifo(workspace / "a")
    assert shown(where, hits) == []
    assert verify_names(where, [b"a", b"sub/a"]) == [b"sub/a"]


def test_a_file_with_more_hits_than_were_asked_for_must_be_text_to_its_end(where: SearchScope, workspace: Path) -> None:
    hits = searched(where)[b"a"]
    (workspace / "a").write_bytes(b"hit 1\nother\nhit 2\n\0")
    assert shown(where, hits, most=2) == [b"hit 1", b"hit 2"], "an engine has read all of it"
    assert shown(where, hits, most=1) == []


def test_lines_far_into_a_file_of_another_encoding_are_looked_at_too(where: SearchScope, workspace: Path) -> None:
    """It is decoded piece by piece, characters on the edge of two of them included."""
    before = "x😀€\n"
    times = (66 << 20) // len(before.encode("utf-16-le"))
    (workspace / "a").write_bytes(codecs.BOM_UTF16_LE + (before * times + "needle\n").encode("utf-16-le"))
    size = len(before.encode())
    lines = [HitLine(number + 1, size * number, before.strip().encode()) for number in range(0, times, 1_000)]
    needle = HitLine(times + 1, size * times, b"needle", is_hit=True)
    gone = HitLine(times + 2, size * times + 7, b"gone", is_hit=True)
    assert verify_hits(where, FileHits(b"a", (*lines, needle, gone)), 100) == FileHits(b"a", (*lines, needle))


def test_a_file_that_was_not_gone_through_must_be_text_to_its_end(where: SearchScope, workspace: Path) -> None:
    hits = msgspec.structs.replace(searched(where)[b"a"], unfinished=True)
    assert shown(where, hits) == [b"hit 1", b"hit 2"]
    with (workspace / "a").open("ab") as file:
        file.write(b"\0")
    assert shown(where, hits) == []


def test_a_file_with_nothing_but_lines_too_long_is_kept_for_the_count(where: SearchScope, workspace: Path) -> None:
    assert verify_hits(where, FileHits(b"a", (), oversized=2), 100) == FileHits(b"a", (), oversized=2)
    assert verify_hits(where, FileHits(b"gone", (), oversized=2), 100) is None
