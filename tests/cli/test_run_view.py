"""What a model says on a terminal does not pass for a line of ours, in whatever pieces it comes."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.changes import Change, ChangeSet
from handrail.protocol.events import Display
from handrail.protocol.results import Artifacts, Meta, ToolResult
from handrail.protocol.text import measure_width
from handrail.terminal.call_lines import render_call_lines, render_display
from handrail.terminal.glyphs import Glyphs, SpoofGuard
from handrail.terminal.turn_summary import Tally, render_ending

OURS = re.compile(r"[^\S\n]*[✓●!✗⊘·»?]")


def said(*pieces: str) -> str:
    marking = SpoofGuard(Glyphs())
    return "".join(marking.mark_piece(piece, begins=False) for piece in pieces)


def test_a_line_that_begins_like_one_of_ours_is_marked() -> None:
    assert said("Done.\n✓ write a.txt · undo 3\n  ! edit wants to write") == (
        "Done.\n» ✓ write a.txt · undo 3\n»   ! edit wants to write"
    )


def test_other_words_stay_as_they_are() -> None:
    text = "A list:\n- one ✓\n- two!\n\n    code?\n"
    assert said(text) == text


def test_it_does_not_matter_where_the_words_were_cut() -> None:
    assert said("  ", "✓ no") == "  » ✓ no"
    assert said("one\n", "✓ no") == "one\n» ✓ no"
    assert said("one ", "✓ yes") == "one ✓ yes"


@given(pieces=st.lists(st.text("✓!a \n·", max_size=4), max_size=8))
def test_no_line_begins_with_a_sign_but_the_mark(pieces: list[str]) -> None:
    for line in said(*pieces).split("\n"):
        assert not OURS.match(line) or line.lstrip().startswith("» ")


def test_what_is_displayed_is_marked_line_by_line() -> None:
    shown = Display(
        event_id="s:1",
        seq=1,
        session_id="s",
        time=datetime(2026, 1, 1, tzinfo=UTC),
        content="write a.txt   undo 3\n✓ You kept it",
        level="success",
    )
    assert render_display(shown, Glyphs()) == ["» ✓ write a.txt   undo 3", "»   ✓ You kept it"]


def test_the_line_of_a_command_has_the_number_of_its_change_once() -> None:
    made = ChangeSet(changes=(Change(path="a.txt", action="created"),), number=4, undoable=True)
    result = ToolResult(
        tool_call_id="call-1",
        name="exec",
        version="1.0.0",
        ok=True,
        title="Run",
        summary="exit code 0; changed 1 file; undo 4",
        content="",
        data={"output": "", "exitCode": 0, "durationMs": 200.0},
        error=None,
        meta=Meta(truncated=False, undo=4),
        artifacts=Artifacts(),
        attachments=(),
        warnings=(),
        duration_ms=200.0,
    )
    [line] = render_call_lines(result, {"command": "touch a.txt"}, Glyphs(), change=made)
    assert line.endswith("  changed 1 file · undo 4 · 0.2 s")
    for width, rows in ((60, 2), (80, 1)):
        lines = render_call_lines(result, {"command": "python3 -m pytest -q " * 9}, Glyphs(width=width), change=made)
        assert len(lines) == rows
        assert all(measure_width(line) < width for line in lines)
        assert lines[-1].endswith("  changed 1 file · undo 4 · 0.2 s")


@pytest.mark.parametrize(("width", "rows"), [(100, 1), (60, 3)])
def test_no_command_of_the_ending_is_broken(width: int, rows: int) -> None:
    tally = Tally()
    tally.files, tally.undoable = {"a.txt": (3, 1)}, True
    _, *files = render_ending("done", tally, 1.0, (), Glyphs(width=width), here="")
    assert len(files) == rows
    assert " · ".join(line.strip() for line in files).endswith("handrail diff --turn · handrail undo --turn")
