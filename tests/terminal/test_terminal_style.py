"""Colour is on where it helps, changes no layout, and nothing untrusted brings its own."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.terminal.previews import DIFF, trial, tried_request

from handrail.protocol.changes import Change, Preview
from handrail.protocol.text import wrap
from handrail.terminal.changes_text import paint_diff, render_changes
from handrail.terminal.diff_view import parse_file_diffs, render_rows
from handrail.terminal.request_text import render_request
from handrail.terminal.style import (
    can_show_colour,
    choose_paint,
    measure_painted,
    paint_nothing,
    paint_text,
    strip_styles,
    truncate_painted,
    wrap_painted,
)
from people import Ask, Program, Terminal, a_request

GREEN, RED, CYAN, BOLD, OFF = "\x1b[32m", "\x1b[31m", "\x1b[36m", "\x1b[1m", "\x1b[0m"
PIECES = st.lists(st.tuples(st.text("ab 漢é", max_size=12), st.sampled_from(["added", "dim", None])), max_size=5)


@pytest.fixture
def terminal() -> Iterator[io.TextIOWrapper]:
    seen = Terminal()
    with open(os.dup(seen.device), "w", encoding="utf-8") as stream:
        yield stream
    seen.hang_up()
    os.close(seen.device)


@pytest.mark.parametrize(
    ("environ", "on"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": ""}, False),
        ({}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_a_terminal_has_colour_unless_the_environment_says_no(
    terminal: io.TextIOWrapper, environ: dict[str, str], on: bool
) -> None:
    assert can_show_colour(terminal, environ) is on


def test_a_file_has_colour_only_if_it_is_forced(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        assert not can_show_colour(file, {"TERM": "xterm"})
        assert not can_show_colour(file, {"TERM": "xterm", "FORCE_COLOR": "0"})
        assert can_show_colour(file, {"FORCE_COLOR": "1"})
    assert not can_show_colour(None, {"FORCE_COLOR": "1"})


@given(pieces=PIECES, width=st.integers(1, 30), indent=st.sampled_from(["", "  ", "    "]))
def test_painted_text_is_wrapped_and_cut_as_the_same_text_without_colour(pieces, width: int, indent: str) -> None:
    painted = "".join(paint_text(text, style) if style else text for text, style in pieces)
    plain = "".join(text for text, _ in pieces)
    rows = list(wrap_painted(painted, width, indent))
    assert [strip_styles(row) for row in rows] == list(wrap(plain, width, indent))
    assert all(row.rfind("\x1b[") == -1 or row[row.rfind("\x1b[") :].startswith(OFF) for row in rows)
    assert measure_painted(truncate_painted(painted, max(2, width))) <= max(2, width)


def test_a_style_ends_with_its_row_and_goes_on_behind_the_indent() -> None:
    assert list(wrap_painted(f"a {GREEN}bbb cc{OFF} d", 6, "  ")) == [f"a {GREEN}bbb {OFF}", f"  {GREEN}cc{OFF} d"]


def test_a_diff_is_painted_by_its_hunks() -> None:
    diff = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-- old\n+++ new\n same\n"
    assert list(paint_diff(diff, paint_text)) == [
        f"{BOLD}--- a/a{OFF}",
        f"{BOLD}+++ b/a{OFF}",
        f"{CYAN}@@ -1,2 +1,2 @@{OFF}",
        f"{RED}-- old{OFF}",
        f"{GREEN}+++ new{OFF}",
        " same",
        "",
    ]


def test_a_file_brings_no_sequence_of_its_own() -> None:
    hostile = "--- a/a\n+++ b/a\n@@ -0,0 +1,1 @@\n+\x1b[2J\x1b[32mx\n"
    for shown in (
        "\n".join(paint_diff(hostile, paint_text)),
        *render_rows(parse_file_diffs(hostile)[0], 80, paint_text),
    ):
        assert "\x1b" not in strip_styles(shown)
        assert "\x1b[2J" not in shown
        assert "\\u001b[32mx" in shown or "@@" in shown


@pytest.mark.parametrize("width", [40, 56, 76, 98, 120])
def test_deletions_are_red_and_colour_changes_no_column(width: int) -> None:
    painted, plain = (render_changes(trial(), width, paint=paint) for paint in (paint_text, paint_nothing))
    assert [strip_styles(row) for row in painted] == plain
    assert any(f"{RED}D src/api/old_types.py" in row for row in painted)
    assert not any(RED in row and "_generated" in row.partition(RED)[2].partition(OFF)[0] for row in painted)


@pytest.mark.parametrize("width", [40, 56, 76, 98, None])
def test_a_request_is_the_same_without_its_colours(width: int | None) -> None:
    edit = a_request(command=None, preview=Preview(kind="diff", text=DIFF), permissions=("fs.write",), paths=("a.py",))
    gone = Change(path="\x1b[31m" + "long/" * 30, action="deleted")
    for request in (edit, tried_request(), tried_request(trial(exit_code=1, changes=(gone,), files=1))):
        painted, plain = (render_request(request, width=width, paint=paint) for paint in (paint_text, paint_nothing))
        assert [strip_styles(row) for row in painted] == plain
        assert painted != plain


def test_the_prompt_and_the_diff_view_have_colour(ask: Ask) -> None:
    asked = ask(tried_request(), columns=80)
    asked.until(b"d", lambda: "new line" in asked.terminal.shown)
    assert f"{GREEN}    2 + new line{OFF}" in asked.terminal.painted
    assert f"{RED}    2 - old line{OFF}" in asked.terminal.painted
    assert f"{RED}D src/api/old_types.py" in asked.terminal.painted


def test_the_keys_of_a_prompt_are_dim_until_they_count(ask: Ask) -> None:
    asked = ask(tried_request()).listens()
    dim = asked.terminal.painted.index("│ \x1b[2my keep this result")
    assert asked.terminal.painted.index("│ y keep this result") > dim


def test_without_colour_the_frame_stays(ask: Ask) -> None:
    asked = ask(tried_request(), environ={"NO_COLOR": "1"}).listens()
    assert "│ y keep this result" in asked.terminal.shown
    assert asked.terminal.painted == asked.terminal.shown


def test_a_diff_at_the_shell_has_colour_at_a_terminal_and_none_in_a_pipe(workspace: Path, environment) -> None:
    (workspace / "a.txt").write_text("one\n")
    words = [sys.executable, "-m", "handrail"]
    change = ["call", "edit", '{"path": "a.txt", "oldText": "one", "newText": "\\u001b[2Jtwo"}', "--mode", "auto"]
    subprocess.run([*words, *change], cwd=workspace, env=environment, check=True, capture_output=True)
    piped = subprocess.run([*words, "diff"], cwd=workspace, env=environment, check=True, capture_output=True)
    assert b"-one\n+\x1b[2Jtwo\n" in piped.stdout
    program = Program([*words, "diff"], workspace, {**environment, "TERM": "xterm"})
    try:
        assert program.ends() == 0
        assert f"{RED}-one{OFF}\n{GREEN}+\\u001b[2Jtwo{OFF}\n" in program.terminal.painted
    finally:
        program.close()


@pytest.mark.parametrize(
    ("background", "code"), [("0;15", "35"), ("0;default;7", "35"), ("15;0", "33"), ("", "33"), ("default", "33")]
)
def test_a_light_background_gets_no_yellow(background: str, code: str) -> None:
    environ = {"FORCE_COLOR": "1", "COLORFGBG": background}
    assert choose_paint(io.StringIO(), environ)("asks", "refused") == f"\x1b[{code}masks\x1b[0m"
