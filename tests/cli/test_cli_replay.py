"""replay: what a person sees when a recorded session is played again."""

import json
from pathlib import Path


def test_a_session_that_comes_out_the_same_says_so_call_by_call(here, workspace: Path) -> None:
    here("call", "write", '{"path": "a.txt", "content": "one\\n"}', "--mode", "auto")
    here("call", "read", '{"path": "a.txt"}')
    done = here("replay", "cli")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()] == ["call", "write", "read"]
    assert "2 calls: 2 same. Your files are untouched." in done.err


def test_a_result_that_differs_is_shown_and_is_the_exit(here) -> None:
    here("call", "exec", '{"command": "head -c 12 /dev/urandom | base64"}')
    done = here("replay", "cli")
    assert done.code == 1
    assert "DIFFERS" in done.out
    assert "--- recorded" in done.out
    assert json.loads(here("replay", "cli", "--json").out)["calls"][0]["verdict"] == "differs"


def test_a_new_file_of_others_is_a_difference(here, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    here("call", "ls", '{"path": "."}')
    (workspace / "b.txt").write_text("two\n")
    done = here("replay", "cli")
    assert done.code == 1
    assert "DIFFERS" in done.out
    assert "b.txt" in done.out
    assert json.loads(here("replay", "cli", "--json").out)["calls"][0]["verdict"] == "differs"


def test_a_file_that_others_changed_is_named(here, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    here("call", "read", '{"path": "a.txt"}')
    (workspace / "a.txt").write_text("two\n")
    done = here("replay", "cli")
    assert done.code == 0
    assert "skipped: changed since: a.txt" in done.out
    assert "a.txt was changed outside handrail, so its original content is unknown" in done.err
    assert json.loads(here("replay", "cli", "--json").out)["changedOutside"] == ["a.txt"]


def test_a_file_that_another_session_changed_between_two_calls_is_not_called_unknown(here, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    edit = '{"path": "a.txt", "oldText": "one", "newText": "two"}'
    here("call", "read", '{"path": "a.txt"}')
    here("call", "edit", edit, "--mode", "auto", "--session", "other")
    here("call", "read", '{"path": "a.txt"}')
    done = here("replay", "cli")
    assert "1 same, 1 skipped" in done.err
    assert (
        "a.txt was changed between two calls: by another session, by undo or by hand; replay skips that change"
        in done.err
    )


def test_a_kept_replay_is_left_where_it_was_asked_for(here, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    here("call", "read", '{"path": "a.txt"}')
    kept = tmp_path / "kept"
    assert here("replay", "cli", "--keep", str(kept)).code == 0
    assert (kept / workspace.name / "a.txt").read_text() == "one\n"
    refused = here("replay", "cli", "--keep", str(kept))
    assert refused.code == 1
    assert "already exists" in refused.err


def test_the_path_of_a_kept_replay_counts_as_the_workspace_however_it_is_named(here, workspace: Path) -> None:
    here("call", "exec", '{"command": "python3 -c \'import os; print(os.getcwd())\'"}')
    assert "1 calls: 1 same." in here("replay", "cli", "--keep", "../kept").err


def test_a_replay_is_not_kept_in_what_it_is_a_copy_of(here, workspace: Path) -> None:
    here("call", "write", '{"path": "a.txt", "content": "one\\n"}', "--mode", "auto")
    for place in ("kept", "deep/kept", str(workspace / "kept")):
        refused = here("replay", "cli", "--keep", place)
        assert refused.code == 1
        assert "is in the folder to copy" in refused.err
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]


def test_a_temporary_folder_in_the_workspace_is_not_copied_into_itself(here, workspace: Path, monkeypatch) -> None:
    here("call", "write", '{"path": "a.txt", "content": "one\\n"}', "--mode", "auto")
    monkeypatch.setattr("tempfile.tempdir", str(workspace))
    assert "1 calls: 1 same." in here("replay", "cli").err
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]


def test_a_session_that_there_is_not_is_said(here) -> None:
    done = here("replay", "nobody")
    assert done.code == 1
    assert "has no session 'nobody'" in done.err
