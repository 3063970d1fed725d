"""A copy of a whole workspace, whatever is in it."""

import os
from pathlib import Path

import pytest

from handrail.workspace.tree_copy import copy_tree, make_copy_folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "shop" / "sub").mkdir(parents=True)
    (tmp_path / "shop" / "sub" / "a.txt").write_text("one\n")
    return tmp_path / "shop"


def test_a_tree_that_is_deeper_than_a_path_can_say_is_left_out_and_told(workspace: Path, tmp_path: Path) -> None:
    here = os.open(workspace, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    with make_copy_folder(str(workspace), str(tmp_path / "kept")) as folder:
        copied = copy_tree(str(workspace), os.path.join(folder, "shop"))
    assert (tmp_path / "kept" / "shop" / "sub" / "a.txt").read_text() == "one\n"
    [left] = copied.left_out
    assert left.startswith("d" * 250)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_left_out_and_told(workspace: Path, tmp_path: Path) -> None:
    (workspace / "shut").mkdir(mode=0)
    with make_copy_folder(str(workspace), str(tmp_path / "kept")) as folder:
        assert copy_tree(str(workspace), os.path.join(folder, "shop")).left_out == ("shut",)
