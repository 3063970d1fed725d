"""apply_patch: several files change as one, and not a byte besides."""

import codecs
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import Handrail, ToolResult
from handrail.changes.apply import MAX_IN_MEMORY_BYTES, StepApplier
from handrail.protocol.errors import ToolError
from handrail.protocol.events import ChangeEvent
from handrail.settings import Settings
from handrail.settings.model import Paths, Tools
from handrail.store.change_log import Step
from handrail.workspace.pages import is_settled

Rail = Callable[..., Handrail]
Tree = dict[str, tuple[bytes, int]]
ENABLED = Settings(tools=Tools(enable=("apply_patch",)))


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def tree(folder: Path) -> Tree:
    """Every file with its bytes and its mode; a link with where it leads."""
    found: Tree = {}
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            data = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = (data, path.lstat().st_mode & 0o7777)
    return found


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail(mode="full", settings=ENABLED)


def refused(one: Handrail, workspace: Path, *lines: str) -> Any:
    """The error of a patch that changes nothing."""
    before, changes = tree(workspace), len(one.changes())
    result = one.apply_patch(envelope(*lines))
    assert result.error is not None
    assert tree(workspace) == before
    assert len(one.changes()) == changes
    assert "Nothing was changed." in result.error.message
    return result.error


def well(result: ToolResult[Any]) -> Any:
    assert result.error is None, result.error.message
    return result


def test_several_files_change_in_one_step_and_one_undo_takes_it_back(one: Handrail, workspace: Path) -> None:
    (workspace / "a.py").write_text("one\ntwo\nthree\n")
    (workspace / "run.sh").write_text("echo 1\n")
    (workspace / "run.sh").chmod(0o750)
    (workspace / "old.txt").write_text("gone\n")
    before = tree(workspace)
    result = one.apply_patch(
        envelope(
            "*** Update File: a.py", " one", "-two", "+2",
            "*** Update File: run.sh", "*** Move to: bin/deep/run.sh", "-echo 1", "+echo 2",
            "*** Delete File: old.txt",
            "*** Add File: bin/new.txt", "+new",
        )
    )  # fmt: skip
    assert result.error is None
    assert result.summary == "Patched 4 files +3 −3"
    assert result.content == (
        "Patched 4 files +3 −3.\nM a.py +1 −1\nR bin/deep/run.sh from run.sh +1 −1\nD old.txt +0 −1\n"
        "A bin/new.txt +1 −0\n"
    )
    after = tree(workspace)
    assert {path: data for path, (data, _) in after.items()} == {
        "a.py": b"one\n2\nthree\n", "bin/deep/run.sh": b"echo 2\n", "bin/new.txt": b"new\n",
    }  # fmt: skip
    assert after["bin/deep/run.sh"][1] == 0o750
    assert set(result.artifacts.files_changed) == {"a.py", "run.sh", "bin/deep/run.sh", "old.txt", "bin/new.txt"}
    assert [change.number for change in one.changes()] == [result.meta.undo]
    assert one.undo().ok
    assert tree(workspace) == before
    assert sorted(os.listdir(workspace)) == ["a.py", "old.txt", "run.sh"]
    assert one.redo().ok
    assert tree(workspace) == after


def test_the_result_says_what_became_of_each_file(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\ny\n")
    (workspace / "b").write_text("x\n")
    patch = envelope("*** Update File: a", "-x", "+z", "*** Update File: b", "*** Move to: c", "*** Add File: d")
    result = well(one.apply_patch(patch))
    files = {file.path: file for file in result.data.files}
    assert [(file.path, file.action, file.renamed_from) for file in result.data.files] == [
        ("a", "modified", None), ("c", "renamed", "b"), ("d", "created", None),
    ]  # fmt: skip
    assert (files["a"].added, files["a"].removed, files["a"].strategies) == (1, 1, ("exact",))
    assert result.data.diff == (
        "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-x\n+z\n y\nrename from b\nrename to c\n(d is new, and empty or binary)\n"
    )
    (event,) = [event for event in one.events() if isinstance(event, ChangeEvent)]
    assert [(change.path, change.action) for change in event.change.changes] == [
        ("a", "modified"), ("b", "deleted"), ("c", "renamed"), ("d", "created"),
    ]  # fmt: skip


def test_one_hunk_that_does_not_fit_keeps_every_file_as_it_is(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "b").write_text("y\n")
    lines = (
        "*** Update File: a",
        "-x",
        "+z",
        "*** Add File: n",
        "+n",
        "*** Delete File: b",
        "*** Update File: a",
        "-q",
    )
    error = refused(one, workspace, *lines)
    assert error.code == "NO_MATCH"
    assert error.message.startswith("Hunk 1 of a (line 9 of the patch): its old text is not in a.")
    assert (error.details["path"], error.details["hunk"], error.details["patchLine"]) == ("a", 1, 9)


REFUSED = {
    "a file that is there already": (("*** Add File: a", "+y"), "CONFLICT", "a already exists"),
    "a file that is not there": (("*** Update File: aa", "-y"), "NOT_FOUND", "Near: a"),
    "a file that is not there, to delete": (("*** Delete File: aa",), "NOT_FOUND", "Near: a"),
    "a move onto another file": (("*** Update File: a", "*** Move to: b"), "CONFLICT", "b already exists"),
    "a move of nothing": (("*** Update File: q", "*** Move to: r"), "NOT_FOUND", "No file q"),
    "a folder": (("*** Update File: folder", "-x"), "NOT_A_FILE", "directory"),
    "a folder to delete": (("*** Delete File: folder",), "NOT_A_FILE", "is a directory"),
    "a link to move": (("*** Update File: link", "*** Move to: c"), "NOT_A_FILE", "is a link"),
    "no text": (("*** Update File: binary", "-x"), "BINARY_FILE", "is not text"),
    "nothing that changes": (("*** Update File: a", "-x", "+x"), "NO_CHANGE", "After the patch every "
        "file has its old content. Nothing was changed."),
    "one file there and back": (
        ("*** Update File: a", "*** Move to: c", "*** Update File: c", "*** Move to: a"), "NO_CHANGE",
        "has its old content",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_with_its_line_in_the_patch(name: str, one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "b").write_text("x\n")
    (workspace / "folder").mkdir()
    (workspace / "link").symlink_to("a")
    (workspace / "binary").write_bytes(b"\0\1\2")
    lines, code, words = REFUSED[name]
    error = refused(one, workspace, *lines)
    assert error.code == code
    assert words in error.message
    if code != "NO_CHANGE":
        assert error.message.startswith("Line 2 of the patch (")
        assert error.details["patchLine"] == 2


def test_a_path_outside_is_refused_as_everywhere(one: Handrail, workspace: Path) -> None:
    for lines in (
        ("*** Add File: ../x", "+x"),
        ("*** Delete File: /etc/hosts",),
        ("*** Update File: /etc/hosts", "*** Move to: hosts"),
    ):
        result = one.apply_patch(envelope(*lines))
        assert result.error is not None
        assert result.error.code == "OUTSIDE_WORKSPACE"
    assert tree(workspace) == {}


def test_a_path_through_a_file_is_refused_as_everywhere(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    error = one.apply_patch(envelope("*** Add File: a/b", "+x")).error
    assert error is not None
    assert error.code == "NOT_A_DIRECTORY"


def test_credentials_are_neither_written_nor_deleted_nor_moved(one: Handrail, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=1\n")
    for lines in (
        ("*** Update File: .env", "-KEY=1", "+KEY=2"),
        ("*** Delete File: .env",),
        ("*** Update File: .env", "*** Move to: env.txt"),
        ("*** Add File: id_rsa", "+x"),
    ):
        error = one.apply_patch(envelope(*lines)).error
        assert error is not None
        assert error.code == "POLICY_DENIED"
    copied = one.apply_patch("diff --git a/.env b/env.txt\nsimilarity index 100%\ncopy from .env\ncopy to env.txt\n")
    assert copied.error is not None
    assert copied.error.code == "POLICY_DENIED"
    assert set(tree(workspace)) == {".env"}


def test_a_file_that_changed_since_it_was_read_is_refused_whatever_is_done_to_it(
    one: Handrail, workspace: Path
) -> None:
    for name in "abc":
        (workspace / name).write_text("x\n")
        one.read(name)
        (workspace / name).write_text("y\n")
    for lines in (
        ("*** Update File: a", "-y", "+z"),
        ("*** Delete File: b",),
        ("*** Update File: c", "*** Move to: d"),
    ):
        error = refused(one, workspace, *lines)
        assert error.code == "STALE_FILE"
        assert error.retryable
    one.read("a")
    assert one.apply_patch(envelope("*** Update File: a", "-y", "+z")).ok


def test_what_a_patch_wrote_is_known_to_the_session(one: Handrail, workspace: Path) -> None:
    well(one.apply_patch(envelope("*** Add File: a", "+x")))
    assert one.write("a", "y\n").meta.unread is False


def test_a_file_can_be_patched_twice_in_order(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    result = one.apply_patch(envelope("*** Update File: a", "-x", "+y", "*** Update File: a", "-y", "+z", "+z"))
    assert well(result).data.diff == "--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x\n+z\n+z\n"
    assert one.undo().ok
    assert (workspace / "a").read_text() == "x\n"


def test_a_file_can_go_and_another_take_its_name(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    before = tree(workspace)
    well(one.apply_patch(envelope("*** Delete File: a", "*** Add File: a", "+new")))
    assert (workspace / "a").read_text() == "new\n"
    assert one.undo().ok
    assert tree(workspace) == before


def test_two_files_can_change_names(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("was a\n")
    (workspace / "b").write_text("was b\n")
    before = tree(workspace)
    swap = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n"
    well(one.apply_patch(swap.format("a", "b") + swap.format("b", "a")))
    assert (workspace / "a").read_text() == "was b\n"
    assert (workspace / "b").read_text() == "was a\n"
    assert one.undo().ok
    assert tree(workspace) == before


@pytest.mark.parametrize(
    "first", ["--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n", "diff --git a/a b/z\nrename from a\nrename to z\n"]
)
def test_a_copy_is_of_what_was_there_before_the_patch(one: Handrail, workspace: Path, first: str) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "a").chmod(0o755)
    copy = (
        "diff --git a/a b/c\nsimilarity index 50%\ncopy from a\ncopy to c\n--- a/a\n+++ b/c\n@@ -1 +1,2 @@\n x\n+more\n"
    )
    result = well(one.apply_patch(first + copy))
    assert (workspace / "c").read_text() == "x\nmore\n"
    assert (workspace / "c").stat().st_mode & 0o777 == 0o755
    assert {"path": "c", "action": "created"}.items() <= msgspec.to_builtins(result.data.files[-1]).items()
    assert one.undo().ok
    assert {path: data for path, (data, _) in tree(workspace).items()} == {"a": b"x\n"}


def test_a_file_that_was_added_can_be_moved_and_changed_by_the_same_patch(one: Handrail, workspace: Path) -> None:
    lines = ("*** Add File: a", "+x", "*** Update File: a", "*** Move to: d/b", "*** Update File: d/b", "-x", "+y")
    well(one.apply_patch(envelope(*lines)))
    assert {path: data for path, (data, _) in tree(workspace).items()} == {"d/b": b"y\n"}
    assert one.undo().ok
    assert os.listdir(workspace) == []


def test_a_link_is_followed_by_an_update_and_removed_by_a_deletion(one: Handrail, workspace: Path) -> None:
    (workspace / "real").write_text("x\n")
    (workspace / "link").symlink_to("real")
    well(one.apply_patch(envelope("*** Update File: link", "-x", "+y")))
    assert (workspace / "real").read_text() == "y\n"
    before = tree(workspace)
    well(one.apply_patch(envelope("*** Delete File: link")))
    assert set(tree(workspace)) == {"real"}
    assert one.undo().ok
    assert tree(workspace) == before


def test_a_deletion_of_a_diff_removes_only_what_it_shows(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\ny\n")
    error = one.apply_patch("--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n").error
    assert error is not None
    assert error.code == "NO_MATCH"
    assert "holds other lines than the patch removes" in error.message
    assert well(one.apply_patch("--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n")).ok


@pytest.mark.parametrize(("mode", "now"), [("100755", 0o754), ("100644", 0o640)])
def test_a_mode_changes_who_may_execute_and_nothing_else(one: Handrail, workspace: Path, mode: str, now: int) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "a").chmod(0o740 if mode == "100644" else 0o644)
    before = tree(workspace)
    result = well(one.apply_patch(f"diff --git a/a b/a\nold mode 100000\nnew mode {mode}\n"))
    assert (workspace / "a").stat().st_mode & 0o7777 == (0o755 if mode == "100755" else 0o640)
    assert result.data.files[0].action == "mode"
    assert one.undo().ok
    assert tree(workspace) == before


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\r\ntwo\r\nthree\r\n", b"one\r\n2\r\n2b\r\nthree\r\n"),
        (b"one\r\ntwo\nthree\r\n", b"one\r\n2\n2b\nthree\r\n"),
        (b"one\ntwo\nthree", b"one\n2\n2b\nthree"),
        (codecs.BOM_UTF8 + b"one\ntwo\nthree\n", codecs.BOM_UTF8 + b"one\n2\n2b\nthree\n"),
        (b"one\ntwo\nthree\xff\xe9\xfc\n", b"one\n2\n2b\nthree\xff\xe9\xfc\n"),
        (b"\xc3\xa9\xff\none\ntwo\nthree\n", b"\xc3\xa9\xff\none\n2\n2b\nthree\n"),
        ("\ufeffone\ntwo\nthree\n".encode("utf-16-le"), "\ufeffone\n2\n2b\nthree\n".encode("utf-16-le")),
        ("\ufeffone\r\ntwo\r\n".encode("utf-16-be"), "\ufeffone\r\n2\r\n2b\r\n".encode("utf-16-be")),
    ],
)
def test_bytes_outside_the_hunks_stay(one: Handrail, workspace: Path, data: bytes, expected: bytes) -> None:
    for patch in (
        envelope("*** Update File: a", " one", "-two", "+2", "+2b"),
        "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+2b\n".replace("\n", "\r\n"),
    ):
        (workspace / "a").write_bytes(data)
        one.read("a")
        well(one.apply_patch(patch))
        assert (workspace / "a").read_bytes() == expected
        assert one.undo().ok
        assert (workspace / "a").read_bytes() == data


def test_a_character_that_the_encoding_lacks_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"\xe9\nx\n")
    assert refused(one, workspace, "*** Update File: a", "-x", "+€").code == "INVALID_ARGUMENT"


def test_a_file_with_several_names_is_written_through_them(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    os.link(workspace / "a", workspace / "b")
    well(one.apply_patch(envelope("*** Update File: a", "-x", "+y", "*** Add File: c", "+c")))
    assert (workspace / "b").read_text() == "y\n"
    assert (workspace / "a").samefile(workspace / "b")
    (workspace / "a").write_text("x\n" + "y" * MAX_IN_MEMORY_BYTES)
    while not is_settled((workspace / "a").stat()):
        os.sched_yield()
    one.read("a")
    assert refused(one, workspace, "*** Update File: a", "-x", "+z").code == "LIMIT_EXCEEDED"


def test_very_large_files_are_refused(one: Handrail, workspace: Path) -> None:
    with (workspace / "large").open("wb") as file:
        file.truncate(33 * 1024 * 1024)
    assert refused(one, workspace, "*** Update File: large", "-x").code == "LIMIT_EXCEEDED"
    assert refused(one, workspace, "*** Update File: large", "*** Move to: larger").code == "LIMIT_EXCEEDED"
    assert well(one.apply_patch(envelope("*** Delete File: large"))).ok
    assert one.undo().ok
    assert (workspace / "large").stat().st_size == 33 * 1024 * 1024


def test_a_placeholder_in_the_place_of_real_lines_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "a.py").write_text("def f():\n    one()\n    two()\n")
    lines = (
        "*** Update File: a.py",
        " def f():",
        "-    one()",
        "-    two()",
        "+    # ... rest of the code unchanged ...",
    )
    error = refused(one, workspace, *lines)
    assert error.code == "OMITTED_TEXT"
    assert error.message.startswith("Hunk 1 of a.py (line 3 of the patch): Line 2 of its new text is a placeholder")


def test_a_new_file_that_does_not_parse_is_a_warning(one: Handrail) -> None:
    [warning] = well(one.apply_patch(envelope("*** Add File: a.json", "+{"))).warnings
    assert warning.startswith("a.json was written, but it is not valid JSON")


def test_a_patch_that_cannot_be_read_is_refused_before_anything_is_asked(rail: Rail) -> None:
    asked: list[object] = []
    one = rail(mode="ask", settings=ENABLED, on_permission=lambda request: asked.append(request) or "once")
    error = one.apply_patch("*** Begin Patch\n*** Delete File: a").error
    assert error is not None
    assert error.code == "INVALID_ARGUMENT"
    assert asked == []


def test_a_person_is_asked_with_the_differences_of_all_files(rail: Rail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "b").write_text("gone\n")
    one = rail(mode="ask", settings=ENABLED)
    error = one.apply_patch(envelope("*** Update File: a", "-x", "+y", "*** Delete File: b")).error
    assert error is not None
    assert error.code == "PERMISSION_REQUIRED"
    [request] = one.waiting()
    assert request.paths == ("a", "b")
    assert request.preview is not None
    expected = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    assert request.preview.text == expected
    assert [basis.path for basis in request.bound_files] == ["a", "b"]
    (workspace / "b").write_text("other\n")
    late = one.answer(request.id, "once").results[0]
    assert late.error.code == "CONFLICT"
    assert (workspace / "a").read_text() == "x\n"


@pytest.mark.parametrize(
    ("lines", "verdicts"),
    [
        (("*** Update File: a", "-x", "+y"), {"plan": "deny", "ask": "confirm", "auto": "allow", "full": "allow"}),
        (("*** Delete File: a",), {"plan": "deny", "ask": "confirm", "auto": "allow", "full": "allow"}),
        (
            ("*** Update File: a", "*** Move to: .gitmodules"),
            {"plan": "deny", "ask": "confirm", "auto": "confirm", "full": "allow"},
        ),
    ],
)
def test_a_deletion_and_a_move_are_judged_as_deletions(
    rail: Rail, workspace: Path, lines: tuple[str, ...], verdicts: dict[Any, str]
) -> None:
    codes = {"deny": "POLICY_DENIED", "confirm": "PERMISSION_REQUIRED", "allow": None}
    for mode, verdict in verdicts.items():
        (workspace / "a").write_text("x\n")
        error = rail(mode=mode, settings=ENABLED).apply_patch(envelope(*lines)).error
        assert (error.code if error else None) == codes[verdict], mode
        assert verdict == "allow" or set(tree(workspace)) == {"a"}


@pytest.mark.parametrize(("count", "mode", "code"), [(20, "auto", None), (21, "auto", "fs.bulk"), (21, "full", None)])
def test_very_many_deletions_at_once_ask_though_each_could_be_undone(
    rail: Rail, workspace: Path, count: int, mode: Any, code: str | None
) -> None:
    for number in range(count):
        (workspace / f"f{number}").write_text("x\n")
    patch = envelope(*(f"*** Delete File: f{number}" for number in range(count)))
    error = rail(mode=mode, settings=ENABLED).apply_patch(patch).error
    assert (error.details["rule"] if error else None) == code
    assert len(tree(workspace)) == (count if code else 0)


def test_a_read_only_root_is_not_patched(rail: Rail, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").write_text("x\n")
    settings = Settings(tools=ENABLED.tools, paths=Paths(read_only=(str(tmp_path / "other"),)))
    one = rail(mode="full", settings=settings)
    for lines in ((f"*** Update File: {tmp_path}/other/a", "-x"), (f"*** Delete File: {tmp_path}/other/a",)):
        error = one.apply_patch(envelope(*lines)).error
        assert error is not None
        assert error.code == "POLICY_DENIED"
    assert (tmp_path / "other" / "a").read_text() == "x\n"


def test_a_writable_root_is_patched_and_taken_back(rail: Rail, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a").write_text("x\n")
    settings = Settings(tools=ENABLED.tools, paths=Paths(writable=(str(tmp_path / "other"),)))
    one = rail(mode="full", settings=settings)
    well(one.apply_patch(envelope(f"*** Update File: {tmp_path}/other/a", "*** Move to: here", "-x", "+y")))
    assert not (tmp_path / "other" / "a").exists()
    assert one.undo().ok
    assert (tmp_path / "other" / "a").read_text() == "x\n"


def test_a_full_disk_in_the_middle_leaves_every_file_as_it_was(
    one: Handrail, workspace: Path, small_disk: Path
) -> None:
    (workspace / "a").write_text("x\n")
    (small_disk / "b").write_text("y\n")
    large = [f"+{'z' * 99}" for _ in range(5_000)]
    before = tree(workspace)
    result = one.apply_patch(
        envelope("*** Update File: a", "-x", "+z", "*** Update File: disk/b", "-y", *large, "*** Add File: c", "+c")
    )
    assert result.error is not None
    assert result.error.code == "NO_SPACE"
    assert "No file was changed." in result.error.message
    assert tree(workspace) == before
    assert one.changes() == []


def test_a_read_only_disk_in_the_middle_leaves_every_file_as_it_was(
    one: Handrail, workspace: Path, small_disk: Path
) -> None:
    (workspace / "a").write_text("x\n")
    (small_disk / "b").write_text("y\n")
    before = tree(workspace)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for lines in (
        ("*** Update File: disk/b", "-y", "+z"),
        ("*** Delete File: disk/b",),
        ("*** Add File: disk/c", "+c"),
    ):
        error = one.apply_patch(envelope("*** Update File: a", "-x", "+z", "*** Add File: n/d", "+d", *lines)).error
        assert error is not None
        assert error.code == "ACCESS_DENIED"
        assert tree(workspace) == before
    assert one.changes() == []


def test_what_another_program_writes_meanwhile_is_never_lost_and_keeps_the_other_files_as_they_were(
    one: Handrail, workspace: Path, meanwhile: Any, count: Callable[[int], int]
) -> None:
    (workspace / "a").write_text("0\n")
    (workspace / "z").write_text("first 0\nlast\n")
    writes = "open(new, 'w').write(f'first {turn}\\nlast\\n')"
    body = f"path, new = sys.argv[1], sys.argv[1] + '.new'\n{writes}\nos.replace(new, path)"
    done = 0
    with meanwhile(body, workspace / "z"):
        for _ in range(count(500)):
            patch = envelope("*** Update File: a", f"-{done}", f"+{done + 1}", "*** Update File: z", " last", "+ours")
            result = one.apply_patch(patch)
            done += result.ok
            assert result.error is None or result.error.code in {"CONFLICT", "STALE_FILE", "NOT_FOUND"}
            assert (workspace / "a").read_text() == f"{done}\n"
            one.read("z")
    assert set(os.listdir(workspace)) <= {"a", "z", "z.new"}


def test_hundreds_of_files_are_one_step(one: Handrail, workspace: Path) -> None:
    for number in range(300):
        (workspace / f"{number}.txt").write_text("x\n")
    before = tree(workspace)
    lines = [line for n in range(300) for line in (f"*** Update File: {n}.txt", "-x", f"+{n}")]
    result = well(one.apply_patch(envelope(*lines)))
    assert result.content.endswith("… and 200 more\n")
    assert (workspace / "299.txt").read_text() == "299\n"
    assert one.undo().ok
    assert tree(workspace) == before


def test_a_name_of_git_in_octal_is_found(one: Handrail, workspace: Path) -> None:
    (workspace / "é b").write_text("x\n")
    patch = '--- "a/\\303\\251 b"\n+++ "b/\\303\\251 b"\n@@ -1 +1 @@\n-x\n+y\n'
    assert well(one.apply_patch(patch)).data.files[0].path == "é b"
    assert (workspace / "é b").read_text() == "y\n"


DELETED_LINK = (
    "diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n"
    "@@ -1 +0,0 @@\n-{}\n\\ No newline at end of file\n"
)
NEW_FILE = "diff --git a/l b/l\nnew file mode 100644\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+new\n"


@pytest.mark.parametrize("target", ["t.txt", "nowhere"])
def test_a_link_can_become_a_file_and_what_it_led_to_stays(one: Handrail, workspace: Path, target: str) -> None:
    (workspace / "t.txt").write_text("precious\n")
    (workspace / "l").symlink_to(target)
    before = tree(workspace)
    for patch in (envelope("*** Delete File: l", "*** Add File: ./l", "+new"), DELETED_LINK.format(target) + NEW_FILE):
        well(one.apply_patch(patch))
        assert {path: data for path, (data, _) in tree(workspace).items()} == {"t.txt": b"precious\n", "l": b"new\n"}
        assert not (workspace / "l").is_symlink()
        assert one.undo().ok
        assert tree(workspace) == before


@pytest.mark.parametrize("target", ["t.txt", "nowhere", "real"])
def test_nothing_is_written_through_a_link_that_the_patch_takes_away(
    one: Handrail, workspace: Path, target: str
) -> None:
    (workspace / "t.txt").write_text("precious\n")
    (workspace / "real").mkdir()
    (workspace / "l").symlink_to(target)
    for lines in (
        ("*** Add File: l", "+new", "*** Delete File: l"),
        ("*** Update File: l", "-precious", "+new", "*** Delete File: ./l"),
        ("*** Delete File: l", "*** Update File: l", "-precious", "+new"),
        ("*** Add File: l/x", "+new", "*** Delete File: real/../l"),
        ("*** Delete File: l", f"*** Add File: {workspace}/l/x", "+new"),
    ):
        result = one.apply_patch(envelope(*lines))
        assert result.error is not None, lines
        assert set(tree(workspace)) == {"t.txt", "l"}
        assert (workspace / "t.txt").read_text() == "precious\n"


def test_what_is_taken_away_twice_is_said_to_be_gone_by_then(one: Handrail, workspace: Path) -> None:
    (workspace / "t").write_text("x\n")
    error = refused(one, workspace, "*** Delete File: t", "*** Delete File: t")
    assert error.message.startswith("Line 3 of the patch (delete t): t is removed earlier in the same patch.")


@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: x", "+1", "*** Add File: x/y", "+2"),
        ("*** Add File: n/y", "+1", "*** Add File: ./n", "+2"),
        ("*** Delete File: a", "*** Add File: a/y", "+1"),
        ("*** Add File: d", "+1", "*** Delete File: d/in"),
        ("*** Update File: a", "*** Move to: a/b"),
    ],
)
def test_one_name_is_not_both_a_file_and_a_folder(one: Handrail, workspace: Path, lines: tuple[str, ...]) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "d").mkdir()
    (workspace / "d" / "in").write_text("x\n")
    error = refused(one, workspace, *lines)
    assert error.code == "INVALID_ARGUMENT"
    assert error.message.startswith("Line ")
    assert "which is a file in the patch" in error.message
    assert os.listdir(workspace / "d") == ["in"]


def test_what_is_refused_before_the_files_are_opened_has_its_line_too(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "b").write_text("x\n")
    error = refused(one, workspace, "*** Update File: b", "-x", "+y", "*** Add File: a/b", "+1")
    assert error.code == "NOT_A_DIRECTORY"
    assert error.message.startswith("Line 5 of the patch (add a/b): ")


def test_a_file_that_would_need_very_many_folders_is_refused(one: Handrail, workspace: Path) -> None:
    error = refused(one, workspace, f"*** Add File: {'d/' * 1_500}x", "+1")
    assert error.code == "LIMIT_EXCEEDED"
    assert "needs 1500 new folders" in error.message
    well(one.apply_patch(envelope(f"*** Add File: {'d/' * 100}x", "+1")))


def test_a_file_that_was_added_and_moved_is_new(one: Handrail) -> None:
    result = well(one.apply_patch(envelope("*** Add File: x", "+1", "*** Update File: x", "*** Move to: y")))
    assert [(file.path, file.action, file.renamed_from) for file in result.data.files] == [("y", "created", None)]
    assert result.content.endswith("A y +1 −0\n")


MODE_AND_LINES = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"


def test_a_file_with_several_names_gets_lines_and_a_mode(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "a").chmod(0o644)
    (workspace / "b").hardlink_to(workspace / "a")
    before = tree(workspace)
    well(one.apply_patch(MODE_AND_LINES))
    assert tree(workspace) == {"a": (b"y\n", 0o755), "b": (b"y\n", 0o755)}
    assert one.undo().ok
    assert tree(workspace) == before
    assert one.redo().ok
    assert (workspace / "b").stat().st_mode & 0o777 == 0o755


def test_lines_and_a_mode_of_a_file_with_several_names_are_taken_back_when_a_later_file_fails(
    one: Handrail, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "b").hardlink_to(workspace / "a")
    before, real = tree(workspace), StepApplier._take  # pyright: ignore[reportPrivateUsage]

    def fails(self: StepApplier, move: Step) -> bool:
        if move.path == b"z":
            raise ToolError("NO_SPACE", "The disk is full.")
        return real(self, move)

    monkeypatch.setattr(StepApplier, "_take", fails)
    result = one.apply_patch(MODE_AND_LINES + NEW_FILE.replace("b/l", "b/z").replace("a/l", "a/z"))
    assert result.error is not None
    assert result.error.message == "The disk is full. No file was changed."
    assert tree(workspace) == before


DELETION = "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-{}\n"
OPEN = "\\ No newline at end of file\n"


def test_a_deletion_of_a_diff_counts_the_newline_at_the_end(one: Handrail, workspace: Path) -> None:
    for data, marked, plain in (("x", True, False), ("x\n", False, True)):
        (workspace / "a").write_text(data)
        assert one.apply_patch(DELETION.format("x") + OPEN).ok == marked
        (workspace / "a").write_text(data)
        assert one.apply_patch(DELETION.format("x")).ok == plain


def test_a_deletion_of_a_diff_is_refused_where_it_cannot_be_compared(one: Handrail, workspace: Path) -> None:
    with (workspace / "a").open("wb") as file:
        file.truncate(33 * 1024 * 1024)
    error = one.apply_patch(DELETION.format("x")).error
    assert error is not None
    assert error.code == "LIMIT_EXCEEDED"
    assert (workspace / "a").exists()
    assert one.apply_patch(envelope("*** Delete File: a")).ok


@pytest.mark.parametrize("shown", ["elsewhere", "x"])
def test_a_deletion_of_a_link_is_refused_where_the_diff_shows_another(
    one: Handrail, workspace: Path, shown: str
) -> None:
    (workspace / "t.txt").write_text("x")
    (workspace / "l").symlink_to("t.txt")
    error = one.apply_patch(DELETED_LINK.format(shown)).error
    assert error is not None
    assert error.code == "NO_MATCH"
    assert "is a link with another target than in the patch. Check it with ls." in error.message
    assert one.apply_patch(DELETED_LINK.format("t.txt")).ok


PREVIEWS = {
    "lines and a mode": (MODE_AND_LINES, "(the mode of a becomes 0755)\n--- a/a\n"),
    "a new file": (NEW_FILE.replace("100644", "100755"), "(the mode of l is 0755)\n--- /dev/null\n"),
    "a rename": (
        "diff --git a/a b/b\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from a\nrename to b\n",
        "rename from a\nrename to b\n(the mode of b becomes 0755)\n",
    ),
    "a copy": ("diff --git a/x b/b\nsimilarity index 100%\ncopy from x\ncopy to b\n", "(the mode of b is 0755)\n"),
    "a link that goes": ("*** Begin Patch\n*** Delete File: s\n*** End Patch\n", "(the link s goes)\n"),
    "a mode": ("diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", "(the mode of a becomes 0755)\n"),
}


@pytest.mark.parametrize("name", PREVIEWS)
def test_a_person_is_shown_what_a_diff_does_not_say(name: str, rail: Rail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "a").chmod(0o644)
    (workspace / "x").write_text("x\n")
    (workspace / "x").chmod(0o755)
    (workspace / "s").symlink_to("x")
    one = rail(mode="ask", settings=ENABLED)
    patch, shown = PREVIEWS[name]
    one.apply_patch(patch)
    [request] = one.waiting()
    assert request.preview is not None
    assert request.preview.text.startswith(shown)


def test_a_yes_to_a_copy_counts_only_for_the_bytes_that_were_shown(rail: Rail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    one = rail(mode="ask", settings=ENABLED)
    one.apply_patch("diff --git a/a b/b\nsimilarity index 100%\ncopy from a\ncopy to b\n")
    (workspace / "a").write_text("other\n")
    [late] = one.answer(one.waiting()[0].id, "once").results
    assert late.error is not None
    assert late.error.code == "CONFLICT"
    assert not (workspace / "b").exists()


def test_two_names_of_one_file_are_refused_before_anything_is_written(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "b").hardlink_to(workspace / "a")
    error = refused(one, workspace, "*** Update File: a", "-x", "+y", "*** Update File: b", "-x", "+z")
    assert error.code == "CONFLICT"
    assert "a and b are two names of one file. Patch it under one of them." in error.message
    well(one.apply_patch(envelope("*** Update File: a", "-x", "+y", "*** Delete File: b")))


def test_the_model_is_told_of_modes_links_and_what_was_forgiven(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("x\n")
    (workspace / "a").chmod(0o644)
    (workspace / "b.py").write_text("if x:\n    one()\n    two()\n")
    (workspace / "l").symlink_to("a")
    mode = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"
    lines = "--- a/b.py\n+++ b/b.py\n@@ -2,2 +2,2 @@\n   one()\n-  two()\n+  2()\n"
    result = well(one.apply_patch(mode + DELETED_LINK.format("a") + lines))
    assert result.content == (
        "Patched 3 files +1 −1.\nM a (mode 0755)\nD l (was a link)\n"
        "M b.py +1 −1 (hunk 1 found but for the indentation)\n"
    )
    assert well(one.apply_patch(mode.replace("100755", "100644"))).summary == "Patched a"


def test_what_is_said_of_a_placeholder_fits_a_patch(one: Handrail, workspace: Path) -> None:
    (workspace / "a.py").write_text("one()\ntwo()\n")
    error = refused(
        one, workspace, "*** Update File: a.py", "-one()", "-two()", "+# ... rest of the code unchanged ..."
    )
    assert error.code == "OMITTED_TEXT"
    assert "both texts" not in error.message
    assert "an edit" not in error.message


def test_many_hunks_that_were_found_alike_are_told_together(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_text("".join(f"value_{number}  =  {number}\n" for number in range(9)))
    hunks = [line for number in range(9) for line in ("@@", f"-value_{number} = {number}", f"+v{number}")]
    result = well(one.apply_patch(envelope("*** Update File: a", *hunks)))
    assert result.content.endswith("M a +9 −9 (hunks 1, 2, 3, 4, 5, … found but for white space)\n")
