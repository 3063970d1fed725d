"""Folders are listed through descriptors: links are not followed, and no more is read than asked for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.workspace.directory import list_files, list_hard_links, list_names


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    for name in ("b.txt", "a.txt", "sub/deep/x", "sub/y", ".ssh/key", "with\nnewline"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("sub")
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


def test_the_first_names_are_listed_in_order_and_all_are_counted(folder: int) -> None:
    assert list_names(folder, 3) == ([".ssh", "a.txt", "b.txt"], 5)
    assert list_names(folder, 9)[0] == [".ssh", "a.txt", "b.txt", "link", "sub"]


def test_files_are_listed_to_a_depth_and_past_links_and_credentials(folder: int) -> None:
    assert list_files(folder, "place", 9, 9) == ("a.txt", "b.txt", "sub/deep/x", "sub/y")
    assert list_files(folder, "place", 9, 2) == ("a.txt", "b.txt", "sub/y")


def test_all_names_of_a_file_are_found(folder: int, tmp_path: Path) -> None:
    os.link(tmp_path / "a.txt", tmp_path / "sub/other")
    status = (tmp_path / "a.txt").stat()
    file = (status.st_dev, status.st_ino)
    assert sorted(list_hard_links(str(tmp_path), {file: status.st_nlink})) == [("a.txt", file), ("sub/other", file)]
