"""undo and redo: what a call changed is taken back, byte for byte, and brought back again."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.protocol.calls import ToolCall
from handrail.protocol.events import ChangeEvent
from handrail.settings import Settings

Rail = Callable[..., Handrail]


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, every folder with None."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def one(rail: Rail) -> Handrail:
    return rail(session="s")


def test_undo_takes_the_last_change_back_and_says_what_that_changed(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    written = one.write("a.txt", "one\n2\n")
    assert written.meta.undo == 1
    result = one.undo()
    assert result.ok
    assert result.summary == "Undid 1: a.txt"
    assert result.data is not None
    assert (result.data.number, result.data.undone, result.data.paths) == (2, (1,), ("a.txt",))
    assert "-2\n+two\n" in result.data.diff
    assert result.artifacts.files_changed == ("a.txt",)
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"


def test_a_created_file_goes_with_the_folders_that_were_made_for_it(one: Handrail, workspace: Path) -> None:
    (workspace / "kept").mkdir()
    one.write("kept/new/deep/a.txt", "x")
    assert one.undo().ok
    assert tree(workspace) == {"kept": None}
    assert one.redo().ok
    assert tree(workspace) == {"kept": None, "kept/new": None, "kept/new/deep": None, "kept/new/deep/a.txt": b"x"}


def test_a_folder_with_something_else_in_it_stays(one: Handrail, workspace: Path) -> None:
    one.write("new/a.txt", "x")
    (workspace / "new" / "theirs.txt").write_text("theirs")
    assert one.undo().ok
    assert tree(workspace) == {"new": None, "new/theirs.txt": b"theirs"}
    assert one.redo().ok
    assert (workspace / "new" / "a.txt").read_text() == "x"


def test_undo_walks_back_and_redo_walks_forward(one: Handrail, workspace: Path) -> None:
    for number in range(4):
        one.write("a.txt", f"{number}\n")
    seen = []
    while (result := one.undo()).ok:
        seen.append((workspace / "a.txt").read_text() if (workspace / "a.txt").exists() else None)
    assert seen == ["2\n", "1\n", "0\n", None]
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("NO_CHANGE", "There is nothing to undo in this workspace.")
    again = []
    while (result := one.redo()).ok:
        again.append((workspace / "a.txt").read_text())
    assert again == ["0\n", "1\n", "2\n", "3\n"]
    assert result.error is not None
    assert result.error.code == "NO_CHANGE"


def test_an_undo_is_listed_and_can_be_undone_by_its_number(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "x")
    one.undo()
    assert [(record.number, record.tool, record.in_effect, record.undoes) for record in one.changes()] == [
        (2, "undo", True, (1,)),
        (1, "write", False, ()),
    ]
    assert one.undo(2).summary == "Redid 1: a.txt"
    assert (workspace / "a.txt").read_text() == "x"
    assert [(record.number, record.in_effect, record.undone_by) for record in one.changes()] == [
        (3, True, None),
        (2, False, 3),
        (1, True, None),
    ]
    assert one.undo(3).summary == "Undid 1: a.txt"
    assert tree(workspace) == {}
    assert {record.number: record.undone_by for record in one.changes()} == {4: None, 3: 4, 2: None, 1: 2}
    assert one.redo().ok
    assert (workspace / "a.txt").read_text() == "x"


def test_a_change_that_was_undone_is_not_undone_again(one: Handrail) -> None:
    one.write("a.txt", "x")
    one.undo()
    error = one.undo(1).error
    assert error is not None
    assert (error.code, error.message) == ("NO_CHANGE", "Change 1 was already undone by 2.")
    error = one.undo(99).error
    assert error is not None
    assert error.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfone\r\ntwo\r\n",
        b"one\r\ntwo\nthree\rfour",
        "größe\n".encode("utf-16"),
        b"\x00\x01\xff\xfe binary",
        b"caf\xe9\n",
        b"",
        b"x" * (9 * 1024 * 1024),
        os.urandom(300_000),
    ],
    ids=["BOM", "mixed", "utf-16", "binary", "latin-1", "empty", "over 8 MiB", "no text, not to be packed"],
)
def test_whatever_a_file_held_comes_back_byte_for_byte(one: Handrail, workspace: Path, data: bytes) -> None:
    path = workspace / "a.txt"
    path.write_bytes(data)
    path.chmod(0o750)
    assert one.write("a.txt", "something else\n").ok
    after = path.read_bytes()
    assert one.undo().ok
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o7777 == 0o750
    assert one.redo().ok
    assert path.read_bytes() == after


PATHS = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/f", "g/h/i"])
TEXTS = st.text(st.sampled_from("ab\n\r\té\U0001f600"), max_size=30)


@given(writes=st.lists(st.tuples(PATHS, TEXTS), min_size=1, max_size=8), goes=st.lists(st.booleans(), max_size=20))
def test_any_writes_taken_back_give_the_tree_of_before(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, str]], goes: list[bool]
) -> None:
    base = tmp_path_factory.mktemp("any")
    workspace = base / "workspace"
    workspace.mkdir()
    (workspace / "a").write_bytes(b"before")
    trees = [tree(workspace)]
    with Handrail(workspace, mode="auto", session="s", state_dir=base / "state", settings=Settings()) as one:
        for path, text in writes:
            if one.write(path, text).meta.undo is not None:
                trees.append(tree(workspace))
            if one.edit(path, "a", "ä\n", replace_all=True).ok:
                trees.append(tree(workspace))
        at = len(trees) - 1
        for back in (*goes, *[True] * len(trees)):
            moved = (one.undo() if back else one.redo()).ok
            expected = at > 0 if back else at < len(trees) - 1
            assert moved == expected
            at += (-1 if back else 1) * moved
            assert tree(workspace) == trees[at]
    assert at == 0


def test_all_names_of_a_file_are_taken_back(rail: Rail, workspace: Path) -> None:
    one = rail(mode="full")
    (workspace / "a.txt").write_text("old")
    os.link(workspace / "a.txt", workspace / "b.txt")
    one.write("a.txt", "new and longer")
    assert one.undo().ok
    assert (workspace / "a.txt").samefile(workspace / "b.txt")
    assert (workspace / "b.txt").read_text() == "old"


def test_a_write_through_a_link_is_taken_back_where_it_was_made(one: Handrail, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "real" / "a.txt").write_text("old")
    (workspace / "link").symlink_to("real")
    one.write("link/a.txt", "new")
    (workspace / "link").unlink()
    assert one.undo().ok
    assert (workspace / "real" / "a.txt").read_text() == "old"


def test_a_path_whose_name_is_no_text_is_taken_back(one: Handrail, workspace: Path) -> None:
    odd = os.fsencode(workspace) + b"/odd\xff"
    os.mkdir(odd)
    os.symlink(odd, workspace / "link")
    assert one.write("link/a.txt", "x").ok
    assert os.listdir(odd) == [b"a.txt"]
    assert one.undo().ok
    assert os.listdir(odd) == []


def test_undo_takes_back_the_workspaces_last_change_whatever_the_session(rail: Rail, workspace: Path) -> None:
    first, second = rail(session="first"), rail(session="second")
    first.write("a.txt", "first")
    second.write("b.txt", "second")
    assert first.undo().ok
    assert tree(workspace) == {"a.txt": b"first"}
    assert second.undo().ok
    assert tree(workspace) == {}


def test_a_whole_session_is_taken_back_at_once(rail: Rail, workspace: Path) -> None:
    first, second = rail(session="first"), rail(session="second")
    (workspace / "a.txt").write_text("before")
    first.write("a.txt", "1")
    second.write("b.txt", "theirs")
    first.write("a.txt", "2")
    first.write("c/d.txt", "new")
    result = second.undo(session="first")
    assert result.summary == "Undid 4, 3 and 1: 2 files"
    assert tree(workspace) == {"a.txt": b"before", "b.txt": b"theirs"}
    assert second.redo().ok
    assert tree(workspace) == {"a.txt": b"2", "b.txt": b"theirs", "c": None, "c/d.txt": b"new"}
    error = second.undo(session="nobody").error
    assert error is not None
    assert error.code == "NO_CHANGE"


def call(name: str, **args: object) -> ToolCall:
    from datetime import UTC, datetime

    call_id = f"call-{os.urandom(6).hex()}"
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def test_a_whole_turn_is_taken_back_at_once(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "before the turn")
    one.batch([call("write", path="a.txt", content="1"), call("write", path="b.txt", content="2")])
    assert one.undo(turn=True).summary == "Undid 3 and 2: 2 files"
    assert tree(workspace) == {"a.txt": b"before the turn"}


def test_several_changes_are_taken_back_by_their_numbers_all_or_none(one: Handrail, workspace: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        one.write(name, "new")
    assert not one.undo((1, 99)).ok
    assert set(tree(workspace)) == {"a.txt", "b.txt", "c.txt"}
    assert one.undo((3, 1)).summary == "Undid 3 and 1: 2 files"
    assert set(tree(workspace)) == {"b.txt"}


def test_only_one_thing_can_be_asked_for(one: Handrail) -> None:
    with pytest.raises(Exception, match="undo takes one of: "):
        one.undo(1, turn=True)


def test_a_model_cannot_call_undo(one: Handrail, workspace: Path) -> None:
    one.write("a.txt", "x")
    result = one.call("undo", {"numbers": [1]})
    assert result.error is not None
    assert result.error.code == "UNKNOWN_TOOL"
    assert "undo" not in {spec.name for spec in one.specs()}


def test_an_undo_is_on_the_record(one: Handrail, tmp_path: Path) -> None:
    one.write("a.txt", "x")
    result = one.undo()
    changes = [event.change for event in one.events() if isinstance(event, ChangeEvent)]
    assert [(change.number, change.undoes, change.undoable) for change in changes] == [(1, (), True), (2, (1,), True)]
    assert [(item.path, item.action) for item in changes[1].changes] == [("a.txt", "deleted")]
    lines = (tmp_path / "state" / "audit.jsonl").read_text().splitlines()
    assert result.tool_call_id in lines[-1]
    assert '"person.asked"' in lines[-1]


def test_after_an_undo_the_file_counts_as_changed(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    one.read("a.txt")
    one.write("a.txt", "new")
    one.undo()
    error = one.write("a.txt", "newer").error
    assert error is not None
    assert error.code == "STALE_FILE"


def test_a_person_can_undo_in_a_session_that_may_not_write(rail: Rail, workspace: Path) -> None:
    rail().write("a.txt", "x")
    assert rail(mode="plan").undo().ok
    assert tree(workspace) == {}


def test_the_preview_shows_what_undo_will_do_and_does_nothing(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    one.write("a.txt", "new\n")
    assert "-new\n+old\n" in one.preview_undo()
    assert (workspace / "a.txt").read_text() == "new\n"
    assert len(one.changes()) == 1


def test_diff_shows_what_a_change_did(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    one.write("a.txt", "new\n")
    one.write("b.txt", "b\n")
    assert one.diff(1) == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
    assert one.diff() == "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+b\n"


def test_an_empty_history_is_no_error(one: Handrail, tmp_path: Path) -> None:
    assert one.changes() == []
    assert not list((tmp_path / "state").rglob("changes.db"))


def test_a_change_in_an_extra_root_is_taken_back(rail: Rail, tmp_path: Path) -> None:
    from handrail.settings.model import Paths

    extra = tmp_path / "extra"
    extra.mkdir()
    one = rail(settings=Settings(paths=Paths(writable=(str(extra),))))
    one.write(f"{extra}/a.txt", "x")
    other = rail()
    codes = [error.code for error in (other.undo().error, other.undo(1).error) if error is not None]
    assert codes == ["OUTSIDE_WORKSPACE", "OUTSIDE_WORKSPACE"]  # no older change is taken back in its place
    assert one.undo().ok
    assert tree(extra) == {}


def test_what_comes_back_lends_nobody_the_rights_of_who_took_it_back(one: Handrail, workspace: Path) -> None:
    """It is a new file, and may have been another's: a program of theirs would run as us."""
    for name in ("removed", "replaced"):
        (workspace / name).write_text("#!/bin/sh\n")
        (workspace / name).chmod(0o6755)
    assert one.exec("rm removed; echo new > other; mv other replaced").ok
    for undone in (one.undo(), one.redo(), one.undo()):
        assert undone.ok, undone.error
    assert {(workspace / name).stat().st_mode & 0o7777 for name in ("removed", "replaced")} == {0o755}
