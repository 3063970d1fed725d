"""Workspaces that are clones: another worker repeats the changes, and the result is a branch."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fleets import Fleet, run_git

from handrail.fleet.options import GitWorkspace, RunOptions
from handrail.protocol.events import ToolCallEnd
from handrail.protocol.permissions import Answer


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as fleet:
        yield fleet


def count_results(fleet: Fleet, name: str) -> int:
    return sum(isinstance(event, ToolCallEnd) for event in fleet.events(name))


def test_the_result_is_one_commit_on_a_branch_of_the_session(fleet: Fleet) -> None:
    repository = fleet.submit_with_repository("write:2", "one")
    fleet.start_worker()
    assert fleet.wait_for("one") == "idle", fleet.outcome("one")
    assert fleet.outcome("one").branch == "handrail/one"
    assert run_git("show", "--name-status", "--format=%s", "handrail/one", folder=repository).split() == [
        *["Work", "of", "handrail", "session", "one"],
        *("A", "0.txt", "A", "1.txt"),
    ]
    assert run_git("rev-list", "--count", "handrail/one", folder=repository) == "2\n"


def test_another_worker_repeats_the_changes_in_its_own_clone(fleet: Fleet, deep: bool) -> None:
    if not deep:
        pytest.skip("in a deep run")
    repository = fleet.submit_with_repository("append:12", "one")
    first = fleet.start_worker()
    fleet.wait(lambda: "begun" if count_results(fleet, "one") > 3 else None)
    first.kill()
    fleet.start_worker()
    assert fleet.wait_for("one") == "idle", fleet.outcome("one")
    lines = run_git("show", "handrail/one:log.txt", folder=repository).splitlines()
    ok = sum(isinstance(event, ToolCallEnd) and event.result.ok for event in fleet.events("one"))
    assert len(lines) == len(set(lines))
    assert ok <= len(lines) <= 12
    assert run_git("show", "handrail/one:kept.txt", folder=repository) == "kept\n"
    assert fleet.verify("one") == ()


def test_an_approved_preview_is_committed_by_a_worker_that_did_not_make_it(fleet: Fleet) -> None:
    repository = fleet.submit_with_repository("append:2", "one", mode="ask")
    for number in range(2):
        worker = fleet.start_worker()
        request = fleet.wait_for_request("one").request
        assert request.preview is not None
        assert fleet.wait_for("one", "waiting") == "waiting"
        worker.kill()
        worker.wait()
        fleet.sessions.answer(request.id, Answer(kind="once"), shown=request)
        assert count_results(fleet, "one") == number
    fleet.start_worker()
    assert fleet.wait_for("one") == "idle", fleet.outcome("one")
    assert run_git("show", "handrail/one:log.txt", folder=repository) == "line-0\nline-1\n"


def test_a_repository_that_cannot_be_cloned_fails_the_run_with_a_reason(fleet: Fleet, tmp_path: Path) -> None:
    options = RunOptions(model="append:1", workspace=GitWorkspace(str(tmp_path / "none.git")))
    fleet.sessions.submit("Go on.", options, session="one")
    fleet.start_worker()
    assert fleet.wait_for("one") == "failed"
    assert "git clone failed" in (fleet.outcome("one").message or "")


def test_settings_that_the_agent_writes_in_its_clone_run_no_program(fleet: Fleet, tmp_path: Path) -> None:
    repository = fleet.submit_with_repository("filter", "one")
    fleet.approve_everything()
    fleet.start_worker()
    assert fleet.wait_for("one") == "idle", fleet.outcome("one")
    assert "smudged" not in run_git("show", "handrail/one:a.txt", folder=repository)
    assert "filter=evil" in run_git("show", "handrail/one:.gitattributes", folder=repository)
