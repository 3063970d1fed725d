"""write: when it fails, the old file is there with all its bytes, and nothing else is."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from handrail import Handrail

Rail = Callable[..., Handrail]
Ordinary = Callable[..., list[tuple[bool, str | None, str]]]
HUGE = "x" * 1_000_000


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_full_disk_leaves_the_old_file_and_nothing_else(one: Handrail, small_disk: Path) -> None:
    (small_disk / "a.txt").write_text("old\n")
    result = one.write("disk/a.txt", HUGE)
    assert result.error.code == "NO_SPACE"
    assert result.error.retryable
    assert (small_disk / "a.txt").read_text() == "old\n"
    assert names(small_disk) == ["a.txt"]
    assert one.write("disk/a.txt", "new\n").ok


def test_a_full_disk_takes_back_the_folders_made_on_the_way(one: Handrail, small_disk: Path) -> None:
    (small_disk / "there").mkdir()
    for path in ("disk/new.txt", "disk/a/b/new.txt", "disk/there/c/new.txt"):
        assert one.write(path, HUGE).error.code == "NO_SPACE"
    assert names(small_disk) == ["there"]


def test_a_full_disk_leaves_a_file_with_several_names_as_it_was(rail: Rail, small_disk: Path) -> None:
    one = rail(mode="full")
    (small_disk / "a.txt").write_text("old\n" * 1_000)
    os.link(small_disk / "a.txt", small_disk / "b.txt")
    (small_disk / "filler").write_bytes(bytes(200_000))
    result = one.write("disk/a.txt", HUGE)
    assert result.error.code == "NO_SPACE"
    for name in ("a.txt", "b.txt"):
        assert (small_disk / name).read_text() == "old\n" * 1_000
    assert names(small_disk) == ["a.txt", "b.txt", "filler"]


def test_no_more_inodes_is_no_space(one: Handrail, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,nr_inodes=4", str(small_disk)], check=True)
    (small_disk / "a.txt").write_text("old")
    for name in ("b", "c"):
        (small_disk / name).write_text("x")
    for path in ("disk/a.txt", "disk/new.txt", "disk/new/new.txt"):
        assert one.write(path, "y").error.code == "NO_SPACE"
    assert (small_disk / "a.txt").read_text() == "old"
    assert names(small_disk) == ["a.txt", "b", "c"]


def test_a_read_only_disk_is_the_systems_refusal(one: Handrail, small_disk: Path) -> None:
    (small_disk / "a.txt").write_text("old")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for path in ("disk/a.txt", "disk/new.txt", "disk/new/new.txt"):
        error = one.write(path, "x").error
        assert error.code == "ACCESS_DENIED"
        assert "read-only" in error.message
    assert one.read("disk/a.txt").content == "old"


def test_folders_and_files_without_permission_are_the_systems_refusal(
    common_folder: Path, as_ordinary_user: Ordinary
) -> None:
    workspace = common_folder / "workspace"
    for name, mode in (("locked", 0), ("fixed", 0o555)):
        (workspace / name).mkdir()
        (workspace / name / "a.txt").write_text("old")
        (workspace / name).chmod(mode)
    (workspace / "unreadable.txt").write_text("old")
    (workspace / "unreadable.txt").chmod(0)
    paths = ["locked/a.txt", "locked/new.txt", "fixed/a.txt", "fixed/new.txt", "fixed/new/new.txt", "unreadable.txt"]
    found = as_ordinary_user([("write", {"path": path, "content": "mine"}) for path in paths])
    for name in ("locked", "fixed"):
        (workspace / name).chmod(0o755)
    assert [code for _, code, _ in found] == ["ACCESS_DENIED"] * len(paths)
    assert names(workspace) == ["fixed", "fixed/a.txt", "locked", "locked/a.txt", "unreadable.txt"]
    assert (workspace / "fixed/a.txt").read_text() == "old"


def test_a_cancelled_call_writes_nothing(rail: Rail, workspace: Path) -> None:
    one = rail()
    one.cancel()
    assert one.write("a/b.txt", "x").error.code == "CANCELLED"
    assert names(workspace) == []


def test_a_name_the_file_system_cannot_hold_leaves_no_folders(one: Handrail, workspace: Path) -> None:
    assert one.write(f"a/b/{'n' * 256}", "x").error.code == "INVALID_ARGUMENT"
    assert names(workspace) == []


def test_a_file_cannot_be_a_folder_on_the_way(one: Handrail, workspace: Path) -> None:
    (workspace / "file").write_text("x")
    assert one.write("file/below/a.txt", "x").error.code == "NOT_A_DIRECTORY"
    assert stat.S_ISREG((workspace / "file").stat().st_mode)
