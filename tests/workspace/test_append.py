"""append: adds to a file of the workspace, under the same rules as every other write."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.protocol.errors import ToolError
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

House = Callable[..., Workspace]


def refusal(house: Workspace, path: str, data: bytes = b"x\n") -> str:
    with pytest.raises(ToolError) as caught:
        house.append(path, data)
    return caught.value.code


def test_bytes_are_added_and_the_file_is_made_with_its_folders(house: House, workspace: Path) -> None:
    one = house()
    one.append("logs/day/a.jsonl", b"one\n")
    one.append("logs/day/a.jsonl", b"two\n")
    assert (workspace / "logs/day/a.jsonl").read_bytes() == b"one\ntwo\n"


def test_of_a_line_that_finds_no_room_nothing_stays_and_the_next_one_is_whole(house: House, workspace: Path) -> None:
    one = house()
    one.append("a.jsonl", b"one\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6, hard))
    try:
        assert refusal(one, "a.jsonl", b"two and more\n") == "NO_SPACE"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (workspace / "a.jsonl").read_bytes() == b"one\n"
    one.append("a.jsonl", b"three\n")
    assert (workspace / "a.jsonl").read_bytes() == b"one\nthree\n"


def test_what_a_link_leads_to_outside_is_not_added_to(house: House, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("theirs")
    (workspace / "file").symlink_to(tmp_path / "outside" / "a")
    (workspace / "folder").symlink_to(tmp_path / "outside")
    one = house()
    for path in ("file", "folder/a", "folder/new", "../outside/a"):
        assert refusal(one, path) == "OUTSIDE_WORKSPACE"
    assert (tmp_path / "outside" / "a").read_text() == "theirs"
    assert os.listdir(tmp_path / "outside") == ["a"]


def test_only_a_regular_file_is_added_to(house: House, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    (workspace / "folder").mkdir()
    one = house()
    assert refusal(one, "fifo") == "NOT_A_FILE"
    reader = os.open(workspace / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert refusal(one, "fifo") == "NOT_A_FILE"
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
    assert refusal(one, "folder") == "NOT_A_FILE"


def test_a_read_only_root_is_not_added_to(house: House, tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    one = house(Root(str(tmp_path / "library"), writable=False))
    assert refusal(one, f"{tmp_path}/library/new/a") == "ACCESS_DENIED"
    assert os.listdir(tmp_path / "library") == []
