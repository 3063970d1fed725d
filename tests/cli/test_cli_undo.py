"""undo, redo, diff and log --changes: what people type to see and take back what was changed."""

from pathlib import Path

import pytest


@pytest.fixture
def played(here, workspace: Path) -> None:
    """Two changes of one file and one of another."""
    (workspace / "a.txt").write_text("one\n")
    for path, content in (("a.txt", "two\\n"), ("deep/b.txt", "b\\n"), ("a.txt", "three\\n")):
        assert here("call", "write", f'{{"path": "{path}", "content": "{content}"}}', "--mode", "auto").code == 0


pytestmark = pytest.mark.usefixtures("played")


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


def test_the_changes_are_listed_the_latest_first(here) -> None:
    done = here("log", "--changes")
    assert [(row[0], row[1], " ".join(row[5:])) for row in rows(done.out)] == [
        ("●", "3", "write a.txt +1 −1"),
        ("●", "2", "write deep/b.txt +1 −0"),
        ("●", "1", "write a.txt +1 −1"),
    ]
    assert [row[1] for row in rows(here("log", "--changes", "--limit", "1").out)] == ["3"]


def test_what_was_undone_is_marked_and_the_undo_is_listed(here) -> None:
    here("undo")
    listed = rows(here("log", "--changes").out)
    assert [(row[0], row[1]) for row in listed] == [("●", "4"), ("○", "3"), ("●", "2"), ("●", "1")]
    assert " ".join(listed[0][5:]) == "Undid 3: a.txt +1 −1"
    assert " ".join(listed[1][-3:]) == "(undone by 4)"
    assert "undo: modified a.txt (undo 4)" in here("log", "--events").out


def test_undo_shows_what_it_changed(here, workspace: Path) -> None:
    done = here("undo", "-q")
    assert (done.code, done.err) == (0, "")
    assert done.out == "Undid 3: a.txt.\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-three\n+two\n"
    assert (workspace / "a.txt").read_text() == "two\n"
    assert here("redo", "-q").out.startswith("Redid 3: a.txt.\n")
    assert (workspace / "a.txt").read_text() == "three\n"


def test_a_preview_changes_nothing(here, workspace: Path) -> None:
    done = here("undo", "--preview")
    assert (done.code, done.err.splitlines()[-1]) == (0, "nothing was changed")
    assert done.out.endswith("-three\n+two\n")
    assert (workspace / "a.txt").read_text() == "three\n"


def test_a_conflict_names_the_choice_and_it_works(here, workspace: Path) -> None:
    refused = here("undo", "1", "-q")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: Undo 1: a.txt was changed again by 3. Nothing was undone.")
    assert "--with-later" in refused.err
    assert here("undo", "1", "--with-later", "-q").out.startswith("Undid 3 and 1: a.txt.\n")
    assert (workspace / "a.txt").read_text() == "one\n"


def test_lines_that_are_as_they_were_left_can_be_taken_back_alone(here, workspace: Path) -> None:
    with (workspace / "a.txt").open("a") as file:
        file.write("theirs\n" * 9)
    refused = here("undo", "-q")
    assert refused.err.endswith("undo only lines that did not change since (--lines).\nnext: handrail log --changes\n")
    assert here("undo", "--lines").code == 0
    assert (workspace / "a.txt").read_text() == "two\n" + "theirs\n" * 9


def test_a_session_is_taken_back(here, workspace: Path) -> None:
    assert here("undo", "--session").code == 0
    assert [path.name for path in workspace.iterdir()] == ["a.txt"]
    assert (workspace / "a.txt").read_text() == "one\n"
    other = here("undo", "--session", "other")
    assert (other.code, "Session other has no change in effect" in other.err) == (1, True)
    assert other.err.endswith("has no change in effect.\nnext: handrail log --changes\n")


def test_a_turn_is_taken_back(here, workspace: Path) -> None:
    assert here("undo", "--turn", "-q").out.startswith("Undid 3: a.txt.\n")
    assert (workspace / "a.txt").read_text() == "two\n"


def test_diff_shows_a_change(here) -> None:
    assert here("diff", "2").out == "--- /dev/null\n+++ b/deep/b.txt\n@@ -0,0 +1 @@\n+b\n"
    assert here("diff").out.endswith("-two\n+three\n")
    missing = here("diff", "99", "-q")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("error: there is no change 99")
    here("undo", "--session")
    assert here("diff", "-q").err == "error: no change is in effect in this workspace.\nnext: handrail log --changes\n"


def test_json_has_everything(here) -> None:
    listed = here("log", "--changes", "--json").json
    assert listed["schema"] == "handrail.log/1"
    assert [change["number"] for change in listed["changes"]] == [3, 2, 1]
    assert listed["changes"][1]["changes"][1]["path"] == "deep/b.txt"
    assert here("diff", "2", "--json").json["diff"].endswith("+b\n")
    undone = here("undo", "--json").json
    assert undone["schema"] == "handrail.undo/1"
    assert (undone["result"]["ok"], undone["result"]["data"]["undone"]) == (True, [3])
    refused = here("undo", "3", "--json")
    assert (refused.code, refused.json["result"]["error"]["code"]) == (1, "NO_CHANGE")
    assert here("redo", "--json").json["schema"] == "handrail.redo/1"
    preview = here("undo", "99", "--preview", "--json")
    assert (preview.code, preview.json["error"]["code"]) == (1, "NOT_FOUND")
    assert here("diff", "--json").json["number"] == 3


def test_the_next_step_is_said(here) -> None:
    assert here("undo").err.endswith("to redo: handrail redo\n")
    assert here("redo").err.endswith("to undo: handrail undo\n")


@pytest.mark.parametrize("words", [("undo", "1", "--turn"), ("undo", "0"), ("undo", "x"), ("diff", "-1")])
def test_wrong_usage_changes_nothing(here, workspace: Path, words: tuple[str, ...]) -> None:
    assert here(*words).code == 2
    assert (workspace / "a.txt").read_text() == "three\n"


def test_a_broken_settings_file_does_not_block_undo(here, tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "broken.toml").write_text("mode = [broken")
    broken = {"HANDRAIL_CONFIG": str(tmp_path / "broken.toml")}
    for words in (["log"], ["log", "--changes"], ["diff"], ["undo"], ["redo"], ["undo", "--preview"]):
        done = here(*words, **broken)
        assert done.code == 0, words
        assert ("warning: The settings file" in done.err) == (words != ["log"]), words
    assert (workspace / "a.txt").read_text() == "three\n"
    assert here("read", "a.txt", **broken).code == 2
