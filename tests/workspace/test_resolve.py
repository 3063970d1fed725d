"""A path below a folder is opened without following a link, by the kernel and by our own walk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.workspace.resolve import INSPECT, LIST_FOLDER, READ_FILE, enter_folders, open_beneath


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("inside")
    (tmp_path / "a/to_file").symlink_to("b/file")
    (tmp_path / "to_a").symlink_to("a")
    os.mkfifo(tmp_path / "a/pipe")
    opened = os.open(tmp_path, os.O_PATH)
    yield opened
    os.close(opened)


@pytest.mark.parametrize("path", ["a/b/file", "a/pipe"])
def test_a_path_without_links_is_opened_and_no_pipe_waited_for(folder: int, path: str, resolver: str) -> None:
    os.close(open_beneath(folder, path, READ_FILE, kernel=resolver == "kernel"))


@pytest.mark.parametrize("path", ["to_a", "to_a/b/file", "a/to_file", "to_a/b", "a/b/file/x", "missing/x", "a/missing"])
@pytest.mark.parametrize("flags", [READ_FILE, LIST_FOLDER], ids=["file", "folder"])
def test_a_link_at_the_end_or_on_the_way_is_refused(folder: int, path: str, flags: int, resolver: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=r".+"):
        os.close(open_beneath(folder, path, flags, kernel=resolver == "kernel"))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_link_can_be_inspected_itself(folder: int, resolver: str) -> None:
    opened = open_beneath(folder, "a/to_file", INSPECT, kernel=resolver == "kernel")
    assert os.readlink("", dir_fd=opened) == "b/file"
    os.close(opened)


def test_folders_are_entered_one_by_one_and_closed(folder: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert [sorted(os.listdir(f"/proc/self/fd/{inner}")) for inner in enter_folders(folder, ["a", "b"])] == [
        ["a", "to_a"],
        ["b", "pipe", "to_file"],
        ["file"],
    ]
    with pytest.raises(NotADirectoryError):
        list(enter_folders(folder, ["to_a", "b"]))
    assert len(os.listdir("/proc/self/fd")) == before
