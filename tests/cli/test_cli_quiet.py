"""-q: no notes on stderr, whatever the command; warnings and errors stay."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.cli.output import hide_notes, print_note, warn

Run = Callable[..., Any]
LONG = "".join(f"{number} {'x' * 90}\n" for number in range(12_000))

IN_AN_EMPTY_WORKSPACE = [
    ("audit",),
    ("log", "--sessions"),
    ("log", "--changes"),
    ("approvals",),
    ("processes",),
    ("processes", "stop", "--all"),
    ("memory",),
    ("policy", "modes"),
    ("config",),
]


@pytest.mark.parametrize("words", IN_AN_EMPTY_WORKSPACE, ids=" ".join)
def test_there_is_a_note_and_with_q_there_is_none(here: Run, words: tuple[str, ...]) -> None:
    told, quiet = here(*words), here(*words, "-q")
    assert told.err
    assert (quiet.code, quiet.out, quiet.err) == (told.code, told.out, "")


AFTER_A_CALL = [
    ("log", "--line", "a.txt:1"),
    ("diff",),
    ("undo", "--preview"),
    ("call", "read", '{"path": "a.txt"}'),
    ("mcp", "--config", "zed"),
    ("approvals",),
]


@pytest.mark.parametrize("words", AFTER_A_CALL, ids=lambda words: " ".join(words[:2]))
def test_so_there_is_where_there_is_something_to_show(here: Run, workspace: Path, words: tuple[str, ...]) -> None:
    (workspace / "a.txt").write_text("before\n")
    here("call", "write", json.dumps({"path": "a.txt", "content": LONG}), "--mode", "auto")
    here("call", "write", '{"path": ".", "content": ""}')
    here("call", "write", '{"path": "c.txt", "content": ""}', "--mode", "ask")
    told, quiet = here(*words), here(*words, "-q")
    assert told.err
    assert (quiet.code, quiet.err) == (told.code, "")


def test_that_a_diff_is_cut_is_a_note_too(here: Run) -> None:
    here("call", "write", json.dumps({"path": "a.txt", "content": LONG}), "--mode", "auto")
    assert "the diff is too long" in here("diff").err
    quiet = here("diff", "-q")
    assert (quiet.code, quiet.err, "\n… " in quiet.out) == (0, "", True)


def test_warnings_and_errors_stay(here: Run, workspace: Path) -> None:
    folder = workspace / ".claude" / "skills" / "odd"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: odd\ndescription: x\nallowed-tools: Nothing\n---\n")
    shown = here("skills", "show", "odd", "-q")
    assert (shown.code, shown.err.startswith("warning: ")) == (0, True)
    assert here("call", "read", '{"path": "none"}', "-q").err.startswith("error: ")
    assert here("undo", "-q").err.startswith("error: ")
    assert here("nonsense", "-q").err.startswith("error: ")


def test_a_command_within_another_has_its_own_notes(capsys: pytest.CaptureFixture[str]) -> None:
    with hide_notes(True):
        with hide_notes(False):
            print_note("inner")
        print_note("outer")
        warn("always")
    print_note("afterwards")
    assert capsys.readouterr().err == "inner\nalways\nafterwards\n"


def test_the_workspace_is_named_only_if_it_is_not_the_current_folder(run, workspace: Path, tmp_path: Path) -> None:
    def note(*words: str, cwd: Path = workspace) -> list[str]:
        return [line for line in run("ls", *words, cwd=cwd).err.splitlines() if line.startswith("workspace:")]

    assert note("--workspace", str(workspace), cwd=tmp_path) == [f"workspace: {workspace}"]
    assert note("--workspace", str(workspace), "--json", cwd=tmp_path) == []
    assert note("--workspace", str(workspace), "-q", cwd=tmp_path) == []
    assert note("--workspace", ".") == note() == []
