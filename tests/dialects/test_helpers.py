"""Features that no canonical parameter has, behind the dialects that offer them."""

import os
from pathlib import Path
from typing import Any

import pytest
from spoken import build_workspace, open_rail

from handrail.dialects.facts import list_hunks
from handrail.settings import Settings


def test_append_keeps_line_ends_and_is_one_step_of_undo(tmp_path: Path) -> None:
    note = build_workspace(tmp_path) / ".minds" / "note.md"
    note.write_bytes(b"one\r\ntwo\r\n")
    with open_rail(tmp_path, "devminds") as rail:
        appended = rail.call("workspace.fs", {"op": "append", "path": "note.md", "content": "three\n"})
        assert appended.data["ok"]
        assert note.read_bytes() == b"one\r\ntwo\r\nthree\r\n"
        assert rail.undo().ok
        assert note.read_bytes() == b"one\r\ntwo\r\n"


def test_append_creates_a_file_and_refuses_what_is_no_text(tmp_path: Path) -> None:
    folder = build_workspace(tmp_path) / ".minds"
    (folder / "data.bin").write_bytes(b"\0\1\2")
    with open_rail(tmp_path, "devminds") as rail:
        assert rail.call("workspace.fs", {"op": "append", "path": "new.md", "content": "x\n"}).data["ok"]
        assert (folder / "new.md").read_text() == "x\n"
        refused = rail.call("workspace.fs", {"op": "append", "path": "data.bin", "content": "x"})
        assert refused.error is not None
        assert refused.error.code == "BINARY_FILE"
        assert (folder / "data.bin").read_bytes() == b"\0\1\2"


def test_a_match_over_line_ends_needs_ripgrep(tmp_path: Path) -> None:
    settings = Settings.from_values({"search.engine": "python"})
    with open_rail(tmp_path, "clude", settings=settings) as rail:
        refused = rail.call("grep", {"pattern": "one.*two", "multiline": True})
        assert refused.error is not None
        assert refused.error.code == "UNAVAILABLE"
        assert "ripgrep" in refused.error.message
        assert rail.call("grep", {"pattern": "one"}).ok


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
def test_only_the_matched_parts_of_lines_are_shown_each_by_itself(tmp_path: Path, engine: str) -> None:
    long = "z" * 600
    (build_workspace(tmp_path) / "parts.txt").write_text(f"hit é hat\nnone\nä hut\r\n{long} h{long}t")
    with open_rail(tmp_path, "claude-code", settings=Settings.from_values({"search.engine": engine})) as rail:
        args = {"pattern": "h[^ ]+t", "output_mode": "content", "-o": True, "-n": True, "glob": "parts.txt"}
        found = rail.call("Grep", args)
        first = ["parts.txt:1:hit", "parts.txt:1:hat", "parts.txt:3:hut"]
        assert found.content.splitlines() == [*first, f"parts.txt:4:h{'z' * 499}…"]
        assert found.data["tool_use_result"]["numFiles"] == 1
        assert rail.call("Grep", args | {"output_mode": "count"}).content == "parts.txt:3"


def test_matched_parts_over_line_ends_are_refused_plainly(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code") as rail:
        args = {"pattern": "x.*y", "output_mode": "content", "-o": True, "multiline": True}
        refused = rail.call("Grep", args)
        assert refused.error is not None
        assert refused.error.code == "UNAVAILABLE"
        assert rail.call("Grep", args | {"-o": False}).ok


def test_each_line_of_a_match_over_line_ends_has_its_number(tmp_path: Path) -> None:
    (build_workspace(tmp_path) / "long.txt").write_text("a\nbegin\r\n\nend\nb\nbegin end\n")
    with open_rail(tmp_path, "claude-code") as rail:
        args = {"pattern": "begin.*?end", "output_mode": "content", "multiline": True, "glob": "long.txt", "-n": True}
        rows = rail.call("Grep", args).content.splitlines()
    assert rows == ["long.txt:2:begin", "long.txt:3:", "long.txt:4:end", "long.txt:6:begin end"]


def test_counts_are_of_all_hits_not_of_the_first_hundred(tmp_path: Path) -> None:
    (build_workspace(tmp_path) / "many.txt").write_text("hit\n" * 1_500)
    with open_rail(tmp_path, "claude-code") as rail:
        counted = rail.call("Grep", {"pattern": "hit", "output_mode": "count", "glob": "*.txt"})
        assert counted.content == "many.txt:1500"
        assert counted.data["tool_use_result"]["numMatches"] == 1_500


def test_a_type_and_a_glob_both_have_to_match(tmp_path: Path) -> None:
    folder = build_workspace(tmp_path)
    (folder / "x.py").write_text("App\n")
    with open_rail(tmp_path, "claude-code") as rail:
        found = rail.call("Grep", {"pattern": "App", "glob": "src/*", "type": "py"})
        assert found.content == "Found 1 file\nsrc/c.py"


def test_the_newest_files_come_first(tmp_path: Path) -> None:
    folder = build_workspace(tmp_path)
    for age, name in enumerate(("old.zz", "new.zz", "middle.zz")):
        (folder / name).write_text("")
        os.utime(folder / name, (1_000 + (age * 2) % 3, 1_000 + (age * 2) % 3))
    with open_rail(tmp_path, "onething") as rail:
        output = rail.call("glob", {"pattern": "*.zz"}).data["data"]["output"]
    assert [line.rpartition("/")[2] for line in output.splitlines()] == ["new.zz", "middle.zz", "old.zz"]


def test_an_empty_old_text_never_replaces_a_file_that_has_content(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code") as rail:
        refused = rail.call("Edit", {"file_path": "a.py", "old_string": "", "new_string": "gone"})
        assert refused.error is not None
        assert Path(rail.workspace, "a.py").read_text() == "x = 1\ny = 2\nx = 3\n"


def test_only_the_first_of_several_matches_is_replaced(tmp_path: Path) -> None:
    with open_rail(tmp_path, "agentica") as rail:
        args = {"file_path": "a.py", "old_string": "x = ", "new_string": "w = ", "allow_multiple_matches": True}
        assert rail.call("edit_file", args).ok
        assert Path(rail.workspace, "a.py").read_text() == "w = 1\ny = 2\nx = 3\n"


def test_a_change_of_claude_code_has_the_file_before_it(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code") as rail:

        def change(name: str, **args: Any) -> dict[str, Any]:
            return rail.call(name, args).data["tool_use_result"]

        edited = change("Edit", file_path="a.py", old_string="y = 2", new_string="y = 4")
        written = change("Write", file_path="a.py", content="")
        emptied = change("Write", file_path="a.py", content="z\n")
        created = change("Write", file_path="new.py", content="z\n")
        same = change("Write", file_path="new.py", content="z\n")
        notebook = change("NotebookEdit", notebook_path="n.ipynb", cell_id="c1", new_source="2 + 2")
        before = (tmp_path / "ws" / "n.ipynb").read_text()
        rail.undo()
        updated = (tmp_path / "ws" / "n.ipynb").read_text()
    assert edited["originalFile"] == "x = 1\ny = 2\nx = 3\n"
    assert written["originalFile"] == "x = 1\ny = 4\nx = 3\n"
    assert (emptied["originalFile"], created["originalFile"]) == ("", None)
    assert same["originalFile"] == "z\n"
    assert (notebook["original_file"], notebook["updated_file"]) == (updated, before)


def test_the_file_before_a_change_is_no_longer_than_an_answer(tmp_path: Path) -> None:
    file = build_workspace(tmp_path) / "big.txt"
    file.write_text("first\n" + "line\n" * 5_000 + "last\n")
    settings = Settings.from_values({"results.characters": 2_000})
    with open_rail(tmp_path, "claude-code", settings=settings) as rail:
        args = {"file_path": "big.txt", "old_string": "first", "new_string": "1"}
        answer = rail.call("Edit", args).data["tool_use_result"]
    original = answer["originalFile"]
    assert len(original) <= 2_000
    assert original.startswith("first\n")
    assert original.endswith("last\n")
    assert "characters are not shown" in original
    assert answer["structuredPatch"]
    assert "output" not in answer["meta"]


def test_the_file_before_an_unread_write_is_shown_if_it_may_be_read(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code", mode="full") as rail:
        answer = rail.call("Write", {"file_path": "a.py", "content": "z\n"}).data["tool_use_result"]
    assert answer["meta"]["unread"]
    assert answer["originalFile"] == "x = 1\ny = 2\nx = 3\n"


def test_the_file_before_a_change_is_null_if_it_may_not_be_read(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code", deny=("fs.read",), mode="full") as rail:
        answer = rail.call("Write", {"file_path": "a.py", "content": "z\n"}).data
    assert answer["tool_use_result"]["originalFile"] is None


def test_hunks_of_a_diff_have_their_lines() -> None:
    (hunk,) = list_hunks("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
    assert hunk == {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" a", "-b", "+c"]}


@pytest.mark.parametrize(
    ("cmd", "workdir"),
    [
        ("{patch}", "src"),
        ("{patch}", "/ws/src"),
        ("cd src && {patch}", None),
        ("cd 'src' && {patch}", "."),
        ("cd /ws/src && {patch}", "src"),
    ],
)
def test_a_patch_sent_to_the_shell_of_codex_is_applied_in_its_folder(
    tmp_path: Path, cmd: str, workdir: str | None
) -> None:
    rows = "*** Add File: k2\n+x\n*** Update File: b.ts\n*** Move to: c.ts\n@@\n-foo\n+*** Add File: bar\n"
    patch = f"apply_patch <<'EOF'\n*** Begin Patch\n{rows}*** End Patch\nEOF"
    with open_rail(tmp_path, "codex") as rail:
        given = {"cmd": cmd.format(patch=patch)} | ({"workdir": workdir} if workdir else {})
        given = {name: text.replace("/ws", rail.workspace, 1) for name, text in given.items()}
        assert rail.call("exec_command", given).ok
        folder = Path(rail.workspace)
    assert (folder / "src" / "k2").read_text() == "x\n"
    assert "*** Add File: bar" in (folder / "src" / "c.ts").read_text()
    assert not (folder / "k2").exists()


_LONGER = ("cd src; {patch}", "{patch} && ls", "cd src && cd .. && {patch}")
_EXPANDED = [f"cd {folder} && {{patch}}" for folder in ("$HOME", '"$HOME"', "~", "~/src", "-", "'-'", "`pwd`", "a\\b")]


@pytest.mark.parametrize("form", [*_LONGER, *_EXPANDED])
def test_a_patch_within_a_longer_command_or_for_a_folder_that_the_shell_expands_is_refused_plainly(
    tmp_path: Path, form: str
) -> None:
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: k2\n+x\n*** End Patch\nEOF"
    with open_rail(tmp_path, "codex") as rail:
        refused = rail.call("exec_command", {"cmd": form.format(patch=patch)})
        assert not refused.ok
        assert not list(Path(rail.workspace).rglob("k2"))
        assert refused.content == "cmd: a patch is a call of apply_patch, or the whole command: " + (
            "apply_patch <<'EOF'. Nothing was run."
        )


def test_overlapping_context_of_onething_is_shown_once(tmp_path: Path) -> None:
    with open_rail(tmp_path, "onething") as rail:
        found = rail.call("grep", {"pattern": "TODO", "path": "src", "context_lines": 1}).data["data"]["output"]
    assert found.splitlines()[3:] == ["  1: // TODO one", "  2- foo", "  3: // TODO two"]


@pytest.mark.parametrize("dialect", ["onething", "claude-code", "opencode"])
def test_a_timeout_keeps_the_output_and_names_no_exit_code(tmp_path: Path, dialect: str) -> None:
    name = "Bash" if dialect == "claude-code" else "bash"
    with open_rail(tmp_path, dialect) as rail:
        result = rail.call(name, {"command": "echo printed; sleep 60", "timeout": 300})
    assert result.error is not None
    assert result.error.code == "TIMEOUT"
    text = f"{result.content} {result.data}"
    assert "None" not in result.content
    assert "exit None" not in text
    assert "printed" in result.content
    if dialect == "claude-code":
        twin = result.data["tool_use_result"]
        assert (twin["stdout"], twin["interrupted"], twin["timedOutAfterMs"]) == ("printed\n", True, 300)


def test_a_picture_of_codex_is_no_text_file(tmp_path: Path) -> None:
    with open_rail(tmp_path, "codex") as rail:
        refused = rail.call("view_image", {"path": "a.py"})
        assert not refused.ok
        assert refused.error is not None
        assert refused.content == "unable to process image: a.py has another format."
        assert "x = 1" not in str(refused.data)
        assert rail.call("view_image", {"path": "p.png"}).data["image_url"].startswith("data:image/png;base64,")


def test_a_plan_of_codex_is_refused_in_plan_mode(tmp_path: Path) -> None:
    plan = {"plan": [{"step": "a", "status": "pending"}]}
    with open_rail(tmp_path, "codex", mode="plan") as rail:
        assert "not allowed in plan mode" in rail.call("update_plan", plan).content
    with open_rail(tmp_path, "codex") as rail:
        assert rail.call("update_plan", plan).content == "Plan updated"


def test_a_patch_of_opencode_has_the_diff_and_the_paths_of_each_file(tmp_path: Path) -> None:
    rows = ("*** Update File: a.py", "*** Move to: z.py", "@@", "-y = 2", "+y = 3", "*** Delete File: src/c.py")
    with open_rail(tmp_path, "opencode") as rail:
        patch = "\n".join(("*** Begin Patch", *rows, "*** Add File: n.py", "+x", "*** End Patch"))
        files = rail.call("apply_patch", {"patchText": patch}).data["metadata"]["files"]
        by_path = {file["relativePath"]: file for file in files}
        moved = by_path["z.py"]
        assert (moved["filePath"], moved["movePath"]) == (f"{rail.workspace}/a.py", f"{rail.workspace}/z.py")
    assert moved["type"] == "move"
    assert all("@@" in file["patch"] for file in files)
    assert "+y = 3" in moved["patch"]
    assert "-class App:" in by_path["src/c.py"]["patch"]


def test_an_error_of_opencode_has_its_time(tmp_path: Path) -> None:
    with open_rail(tmp_path, "opencode") as rail:
        state = rail.call("edit", {"filePath": "a.py", "oldString": "q", "newString": "r"}).data
    assert (state["status"], set(state["time"])) == ("error", {"start", "end"})
    assert 0 < state["time"]["start"] <= state["time"]["end"]
