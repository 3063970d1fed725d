"""Tools that are offered where the user's file enables them: apply_patch, multi_edit, delete."""

import json
from pathlib import Path

import pytest

PATCH = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** Add File: b.txt\n+new\n*** End Patch\n"
ENABLED = '[tools]\nenable = ["apply_patch", "multi_edit", "delete"]\n'


def names(done) -> list[str]:
    return [tool["name"] for tool in done.json]


def test_they_are_not_offered_unless_they_are_enabled(run, config) -> None:
    assert not {"apply_patch", "multi_edit", "delete"} & set(names(run("tools", "--json")))
    refused = run("call", "delete", '{"path": "a.txt"}', "--mode", "full")
    assert refused.code == 1
    why = 'delete is off; [tools] enable = ["delete"] offers it. (UNKNOWN_TOOL)'
    assert refused.err == f"error: Unknown Agent tool: delete. Nothing was run. {why}\nnext: handrail tools\n"
    config(ENABLED)
    assert names(run("tools", "--json"))[-3:] == ["apply_patch", "multi_edit", "delete"]
    config('[tools]\nenable = ["delete"]\n')
    assert names(run("tools", "--json"))[-1] == "delete"


def test_a_misspelt_tool_is_answered_with_the_nearest(run) -> None:
    refused = run("call", "exce", "{}")
    assert (refused.code, refused.err.splitlines()[-3:]) == (
        1,
        [
            "warning: Did you mean exec?",
            "error: Unknown Agent tool: exce. Nothing was run. (UNKNOWN_TOOL)",
            "next: handrail tools",
        ],
    )


def test_without_the_right_to_delete_there_are_neither_patches_nor_deletions(run, config) -> None:
    config(f'{ENABLED}deny = ["fs.delete"]\n')
    assert names(run("tools", "--json"))[-1] == "multi_edit"
    for name in ("apply_patch", "delete"):
        told = f"{name} is off: it needs fs.delete, which is denied here ([tools] deny). (UNKNOWN_TOOL)"
        assert f" {told}\n" in run("call", name, "{}").err


def test_a_disable_that_names_no_tool_is_told_by_every_command_that_goes_by_it(run, config) -> None:
    config('[tools]\ndisable = ["bash"]\n')
    told = "[tools] disable: there is no tool 'bash' here, so nothing was disabled. handrail tools lists the tools."
    for words in (("call", "ls", '{"path": "."}', "-q"), ("tools", "-q")):
        done = run(*words)
        assert (done.code, done.err) == (0, f"warning: {told}\n")
    assert told in run("config").err
    assert told in run("doctor").out


def test_a_misspelt_name_in_the_settings_is_exit_2_with_the_nearest(run, config) -> None:
    config('[tools]\nenable = ["aply_patch"]\n')
    told = "error: there is no tool 'aply_patch' ([tools] enable); did you mean apply_patch?\nnext: handrail help "
    for words in (("tools",), ("call", "ls", '{"path": "."}', "-q"), ("undo", "-q")):
        done = run(*words)
        assert (done.code, done.out, done.err.startswith(told)) == (2, "", True)


def test_a_patch_is_applied_from_stdin_and_taken_back(run, config, workspace: Path) -> None:
    config(ENABLED)
    (workspace / "a.txt").write_text("one\n")
    done = run("call", "apply_patch", "-", "--mode", "auto", stdin=json.dumps({"patch": PATCH}).encode())
    assert (done.code, done.out) == (0, "Patched 2 files +2 −1.\nM a.txt +1 −1\nA b.txt +1 −0\n")
    assert "to undo: handrail undo 1" in done.err
    assert run("undo").code == 0
    assert {path.name: path.read_text() for path in workspace.iterdir()} == {"a.txt": "one\n"}


def test_several_edits_and_a_deletion(run, config, workspace: Path) -> None:
    config(ENABLED)
    (workspace / "a.txt").write_text("one\n")
    edits = {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}, {"oldText": "two", "newText": "three"}]}
    assert run("call", "multi_edit", json.dumps(edits), "--mode", "auto").out == (
        "Edited a.txt by 2 edits +1 −1: edits[0] in line 1, edits[1] in line 1.\n@@ -1 +1 @@\n-one\n+three\n"
    )
    assert (workspace / "a.txt").read_text() == "three\n"
    assert run("call", "delete", '{"path": "a.txt"}', "--mode", "full").out == "Deleted a.txt −1.\n"
    assert list(workspace.iterdir()) == []


def test_a_deletion_asks_with_what_would_go(run, config, workspace: Path) -> None:
    config(ENABLED)
    (workspace / "a.txt").write_text("one\n")
    done = run("call", "delete", '{"path": "a.txt"}', "--mode", "ask")
    assert done.code == 3
    assert "    needs approval: ask mode asks before every deletion    rule fs.delete\n" in done.out
    assert "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n" in done.out
    assert (workspace / "a.txt").exists()


@pytest.mark.parametrize("name", ["apply_patch", "multi_edit", "delete"])
def test_the_name_alone_is_no_command_and_says_what_to_type(here, name: str) -> None:
    done = here(name)
    assert done.code == 2
    assert f"{name} is a tool: handrail call {name}" in done.err


def test_what_asks_is_told_the_mode_in_which_it_would_not(run, config, workspace: Path) -> None:
    config(ENABLED)
    (workspace / "a.txt").write_text("one\n")
    (workspace / ".gitmodules").write_text("one\n")
    for name, advised in (("a.txt", "auto"), (".gitmodules", "full")):
        done = run("call", "delete", f'{{"path": "{name}"}}', "-q")
        assert done.code == 3
        assert f"add --mode {advised}." in done.err
    assert run("call", "delete", '{"path": ".gitmodules"}', "-q", "--mode", "auto").code == 3
    assert run("call", "delete", '{"path": "a.txt"}', "-q", "--mode", "auto").code == 0
