"""A call can be checked without being made: its problems, its decision, its preview."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.errors import ToolError

Open = Callable[..., Handrail]


def test_an_edit_shows_its_decision_and_its_diff(rail: Open, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    decision, request = rail().check_call("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})
    assert decision.decision == "allow"
    assert request is not None
    assert request.preview is not None
    assert "-one\n+two\n" in request.preview.text
    assert (workspace / "a.txt").read_text() == "one\n"


def test_a_command_runs_in_an_overlay_that_is_dropped(rail: Open, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask", on_permission="park")
    if one.sandbox_tier < 3:
        pytest.skip("no overlay here")
    decision, request = one.check_call("exec", {"command": "touch made; echo done"})
    assert decision.decision == "confirm"
    assert request is not None
    assert request.preview is not None
    assert (request.preview.output, request.preview.tried and request.preview.tried.files) == ("done\n", 1)
    assert not (workspace / "made").exists()
    assert [*tmp_path.glob("state/workspaces/*/.changes/trials/*")] == []


def test_nothing_of_a_check_is_stored(rail: Open) -> None:
    one = rail(mode="ask", on_permission="park")
    one.check_call("write", {"path": "b.txt", "content": "b"})
    assert one.waiting() == ()
    assert list(one.events()) == []
    assert one.changes() == []


def test_a_denied_call_has_a_decision_and_no_request(rail: Open) -> None:
    decision, request = rail(mode="plan").check_call("write", {"path": "b.txt", "content": "b"})
    assert (decision.decision, request) == ("deny", None)


def test_an_invalid_call_names_every_problem(rail: Open) -> None:
    with pytest.raises(ToolError) as caught:
        rail().check_call("edit", {"path": 1})
    assert caught.value.code == "INVALID_ARGUMENT"
    assert {one["field"] for one in caught.value.details} >= {"path", "oldText", "newText"}


def test_a_call_that_would_fail_says_why(rail: Open, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    with pytest.raises(ToolError, match="not in"):
        rail().check_call("edit", {"path": "a.txt", "oldText": "three", "newText": "two"})
