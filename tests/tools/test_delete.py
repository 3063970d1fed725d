"""delete: a file or a link goes, as it was looked at, and comes back as it was."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.tools.delete import DELETE

Rail = Callable[..., Handrail]
ENABLED = Settings(tools=Tools(enable=("delete",)))
Ordinary = Callable[..., list[tuple[bool, str | None, str]]]


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail(mode="full", settings=ENABLED)


def code(result: Any) -> str | None:
    return result.error.code if result.error else None


def test_a_file_goes_and_undo_brings_it_back_with_its_bytes_and_its_mode(one: Handrail, workspace: Path) -> None:
    (workspace / "a.sh").write_bytes(b"one\r\n\xff\ntwo")
    (workspace / "a.sh").chmod(0o751)
    result = one.delete("a.sh")
    assert result.error is None
    assert result.summary == "Deleted a.sh −3"
    assert (result.data.path, result.data.kind, result.data.size) == ("a.sh", "file", 10)
    assert result.data.diff.startswith("--- a/a.sh\n+++ /dev/null\n")
    assert result.artifacts.files_changed == ("a.sh",)
    assert os.listdir(workspace) == []
    [change] = one.changes()[0].changes
    assert (change.action, change.before, change.after) == ("deleted", result.data.before, None)
    assert one.undo().ok
    assert (workspace / "a.sh").read_bytes() == b"one\r\n\xff\ntwo"
    assert (workspace / "a.sh").stat().st_mode & 0o7777 == 0o751
    assert one.redo().ok
    assert os.listdir(workspace) == []


def test_bytes_that_are_no_text_go_and_come_back(one: Handrail, workspace: Path) -> None:
    data = bytes(range(256)) * 40_000
    (workspace / "a.bin").write_bytes(data)
    result = one.delete("a.bin")
    assert result.data.diff == ""
    assert one.changes()[0].changes[0].binary
    assert one.undo().ok
    assert (workspace / "a.bin").read_bytes() == data


@pytest.mark.parametrize("target", ["a.txt", "nowhere", "/etc/hosts", "folder", ".env"])
def test_a_link_goes_and_what_it_leads_to_stays(one: Handrail, workspace: Path, target: str) -> None:
    (workspace / "a.txt").write_text("x")
    (workspace / ".env").write_text("KEY=1")
    (workspace / "folder").mkdir()
    (workspace / "link").symlink_to(target)
    result = one.delete("link")
    assert result.error is None
    assert (result.summary, result.data.kind) == ("Deleted the link link", "link")
    assert sorted(os.listdir(workspace)) == [".env", "a.txt", "folder"]
    assert one.undo().ok
    assert os.readlink(workspace / "link") == target


def test_a_file_behind_a_linked_folder_is_the_file_itself(one: Handrail, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "real" / "a").write_text("x")
    (workspace / "link").symlink_to("real")
    assert one.delete("link/a").data.path == "real/a"
    assert os.listdir(workspace / "real") == []


def test_what_is_no_file_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "fifo")
    for path in ("folder", "folder/", ".", "folder/.", "fifo"):
        assert code(one.delete(path)) == "NOT_A_FILE", path
    assert "Delete its files one by one" in one.delete("folder").error.message
    (workspace / "folder" / "x").write_text("x")
    for path in (".", "folder/", "folder/x/"):
        error = one.delete(path).error
        assert error.message == f"{path} is a directory, which cannot be deleted. Give the path of a file."
    assert sorted(os.listdir(workspace)) == ["fifo", "folder"]


def test_what_is_not_there_is_refused_with_names_that_may_be_meant(one: Handrail, workspace: Path) -> None:
    (workspace / "total.py").write_text("x")
    error = one.delete("totl.py").error
    assert error is not None
    assert error.code == "NOT_FOUND"
    assert "Near: total.py." in error.message
    assert code(one.delete("no/such/folder.py")) == "NOT_FOUND"


@pytest.mark.parametrize("path", ["../x", "/etc/hosts", "out/x", "folder/../../x"])
def test_a_path_outside_is_refused(one: Handrail, workspace: Path, path: str) -> None:
    (workspace.parent / "x").write_text("x")
    (workspace / "folder").mkdir()
    (workspace / "out").symlink_to(workspace.parent)
    assert code(one.delete(path)) == "OUTSIDE_WORKSPACE"
    assert (workspace.parent / "x").exists()


def test_credentials_are_not_deleted_and_what_steers_tools_asks(rail: Rail, workspace: Path) -> None:
    (workspace / ".env").write_text("x")
    (workspace / ".github").mkdir()
    (workspace / ".github" / "ci.yml").write_text("x")
    assert code(rail(mode="full", settings=ENABLED).delete(".env")) == "POLICY_DENIED"
    assert code(rail(mode="auto", settings=ENABLED).delete(".github/ci.yml")) == "PERMISSION_REQUIRED"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("plan", "POLICY_DENIED"), ("ask", "PERMISSION_REQUIRED"), ("auto", None), ("full", None)],
)
def test_a_deletion_is_judged_as_one(rail: Rail, workspace: Path, mode: Any, expected: str | None) -> None:
    (workspace / "a").write_text("x\n")
    one = rail(mode=mode, settings=ENABLED)
    assert code(one.delete("a")) == expected
    for request in one.waiting():
        assert (request.rule, request.permissions) == ("fs.delete", ("fs.delete",))
        assert request.preview is not None
        assert request.preview.text == "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"


def test_who_may_not_delete_is_not_offered_it(rail: Rail) -> None:
    assert DELETE.enabled is False
    settings = Settings(tools=Tools(enable=("delete", "apply_patch", "multi_edit"), deny=("fs.delete",)))
    names = [spec.name for spec in rail(settings=settings).specs()]
    assert "multi_edit" in names
    assert not {"delete", "apply_patch"} & set(names)


def test_a_file_that_changed_since_it_was_read_is_not_deleted(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    one.read("a")
    (workspace / "a").write_text("y\n")
    assert code(one.delete("a")) == "STALE_FILE"
    assert (workspace / "a").read_text() == "y\n"


def test_a_yes_to_a_deletion_counts_only_for_what_was_seen(rail: Rail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    one = rail(mode="ask", settings=ENABLED)
    one.delete("a")
    (workspace / "a").write_text("y\n")
    [late] = one.answer(one.waiting()[0].id, "once").results
    assert code(late) == "CONFLICT"
    assert (workspace / "a").read_text() == "y\n"


def test_what_another_program_writes_meanwhile_is_never_lost(
    one: Handrail, workspace: Path, meanwhile: Any, count: Callable[[int], int]
) -> None:
    """Another process writes numbered files over and over; one that was not looked at is never the one that goes."""
    body = "path, new = sys.argv[1], sys.argv[1] + '.new'\nopen(new, 'w').write(str(turn))\nos.replace(new, path)"
    deleted: list[str] = []
    told = ""
    with meanwhile(body, workspace / "a"):
        for _ in range(count(300)):
            result = one.delete("a")
            deleted += [result.data.diff] if result.ok else []
            told += "" if result.ok else result.error.message
            assert code(result) in {None, "NOT_FOUND", "CONFLICT"}
    assert all(diff.count("\n-") == 1 for diff in deleted)
    # Written while another was put aside: there is no name left for that one, so it is kept beside it, and named.
    left = {name for name in os.listdir(workspace) if name not in {"a", "a.new"}}
    assert all(f"saved as {name}" in told for name in left)
