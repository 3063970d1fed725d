"""What undo does not cover is said wherever somebody may count on it."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from handrail.api import Handrail
from handrail.cli.format import render_undo_gaps
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.results import Artifacts, Meta, SandboxUsed, ToolResult
from handrail.store.change_log import ChangeSetRecord
from handrail.terminal.call_lines import list_undo_gaps

SENT = "what was sent to example.org:443"
TIME = datetime(2026, 7, 1, tzinfo=UTC)


def result_of(used: SandboxUsed | None, data: Any = None) -> ToolResult[Any]:
    told: dict[str, Any] = {"tool_call_id": "c", "name": "exec", "version": "1.0.0", "ok": True, "title": "Run"}
    told |= {"summary": "", "content": "", "data": data, "error": None, "artifacts": Artifacts(), "attachments": ()}
    return ToolResult(**told, warnings=(), meta=Meta(truncated=False, sandbox=used), duration_ms=1.0)


class GoesOn(msgspec.Struct):
    """The data of a command that goes on."""

    session_id: str = "p-7fq"


TOLD = [
    (None, ""),
    (SandboxUsed(tier=2, net="none", undo="read-only"), ""),
    (SandboxUsed(tier=3, net="none", undo="layer"), ""),
    (SandboxUsed(tier=3, net="listed", undo="layer", not_covered=(SENT,)), f"not covered by undo: {SENT}"),
    (
        SandboxUsed(tier=2, net="none", undo="snapshot", not_covered=("files that git ignores", SENT)),
        f"not covered by undo: files that git ignores; {SENT}",
    ),
    (
        SandboxUsed(tier=2, net="none", undo="none", no_layer="the workspace is on overlayfs"),
        "not covered by undo: its changes, if any (the workspace is on overlayfs)",
    ),
]


@pytest.mark.parametrize(("used", "told"), TOLD)
def test_the_end_of_a_command_says_it(used: SandboxUsed | None, told: str) -> None:
    assert render_undo_gaps(list_undo_gaps(result_of(used))) == told


def test_a_command_that_goes_on_says_it_in_its_own_words() -> None:
    assert list_undo_gaps(result_of(SandboxUsed(tier=2, net="none", undo="none"), GoesOn())) == ()


def test_a_change_in_the_log_says_it() -> None:
    record = ChangeRecord(
        number=1, session_id="cli", tool_call_id="c", tool="exec", summary="make", time=TIME, in_effect=True,
        undone_by=None, undoes=(), undoable=True, changes=(), not_covered=(SENT,),
    )  # fmt: skip
    assert render_undo_gaps(record.not_covered) == f"not covered by undo: {SENT}"
    assert render_undo_gaps(()) == ""


@pytest.fixture
def recorded(here, state, workspace):
    """A change of the log that undo does not wholly cover."""
    with Handrail(workspace, session="cli", state_dir=state) as rail:
        recorder = rail._session.recorder
        recorder.record("c-1", ChangeSetRecord("exec", "make", (), (), not_covered=(SENT,)), lambda: ())
    return here


def test_the_log_the_difference_and_the_undo_say_it(recorded) -> None:
    assert f"make +0 −0 (not covered by undo: {SENT})" in recorded("log", "--changes").out
    assert f"undo 1 does not cover: {SENT}\n" in recorded("diff", "1", "-q").err
    assert recorded("diff", "1", "--json").json["notCovered"] == [f"undo 1 does not cover: {SENT}"]
    undone = recorded("undo", "1", "-q")
    assert (undone.code, f"undo 1 does not cover: {SENT}\n" in undone.err) == (0, True)
