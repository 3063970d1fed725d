"""An allowed command whose changes need approval: it is parked with them, and the calls after it too."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, Parked, ToolCall, UsageError
from handrail.policy.config import Rule
from handrail.protocol.events import Event, ToolCallError, get_event_kind
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.merge import LoadedSettings
from handrail.settings.model import NetworkSettings
from meeting import Meeting, meeting

Make = Callable[..., Handrail]
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
GEN = "bash gen.sh"


@pytest.fixture
def place() -> Iterator[Meeting]:
    with meeting() as found:
        yield found


@pytest.fixture(autouse=True)
def script(workspace: Path) -> None:
    """What it changes cannot be seen in the command, and is another thing every time."""
    (workspace / ".git" / "hooks").mkdir(parents=True)
    text = "echo $RANDOM$RANDOM$RANDOM > .git/hooks/pre-commit; echo a > made; echo said"
    (workspace / "gen.sh").write_text(text)


def hook(workspace: Path) -> str | None:
    path = workspace / ".git" / "hooks" / "pre-commit"
    return path.read_text() if path.exists() else None


def call(name: str, call_id: str, **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def asked(rail: Handrail, command: str = GEN) -> PermissionRequest:
    result = rail.call("exec", {"command": command})
    assert result.error is not None
    assert result.error.code == "PERMISSION_REQUIRED"
    (request,) = rail.waiting()
    return request


def answered(rail: Handrail, request: PermissionRequest, answer: Any) -> ToolResult[Any]:
    outcome = rail.answer(request.id, answer)
    assert isinstance(outcome, Done)
    return outcome.results[-1]


def audited(tmp_path: Path, call_id: str) -> list[tuple[str, str, bool]]:
    lines = [json.loads(line) for line in (tmp_path / "state" / "audit.jsonl").read_text().splitlines()]
    return [(line["decision"], line["rule"], line["ok"]) for line in lines if line["tool_call_id"] == call_id]


# The question


def test_what_an_allowed_command_changed_is_asked_about_and_a_yes_keeps_exactly_that(
    rail: Make, workspace: Path
) -> None:
    one = rail(mode="auto")
    request = asked(one)
    assert hook(workspace) is None
    assert not (workspace / "made").exists()
    assert (request.rule, request.answers, request.grants) == ("fs.protected", ("once", "output", "deny"), ())
    assert ".git/hooks/pre-commit" in request.reason
    assert request.preview is not None
    assert request.preview.output == "said\n"
    result = answered(one, request, "once")
    assert result.ok
    assert sorted(result.artifacts.files_changed) == [".git/hooks/pre-commit", "made"]
    assert f"+{hook(workspace)}" in request.preview.text
    assert one.undo().ok
    assert hook(workspace) is None


def test_the_question_comes_between_running_and_the_end(rail: Make) -> None:
    one = rail(mode="auto")
    answered(one, asked(one), "once")
    kinds = [get_event_kind(event) for event in one.events() if isinstance(event, Event)]
    assert kinds == [
        "tool_call.start",
        "tool_call.running",
        "tool_call.permission-required",
        "tool_call.permission-granted",
        "tool_call.running",
        "change",
        "tool_call.end",
    ]


@pytest.mark.parametrize(("answer", "ok"), [("once", True), ("deny", False)])
def test_the_audit_says_what_was_asked_about(rail: Make, tmp_path: Path, answer: str, ok: bool) -> None:
    one = rail(mode="auto")
    request = asked(one)
    answered(one, request, answer)
    assert audited(tmp_path, request.tool_call_id) == [("confirm", "fs.protected", ok)]


def test_a_no_drops_it_and_the_model_is_told_why(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")
    outcome = one.answer(asked(one).id, "deny", reason="no hooks here")
    assert isinstance(outcome, Done)
    error = outcome.results[0].error
    assert error is not None
    assert (error.code, "no hooks here" in error.message) == ("PERMISSION_DENIED", True)
    assert hook(workspace) is None
    assert not (workspace / "made").exists()


def test_only_the_output_can_be_taken(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")
    result = answered(one, asked(one), "output")
    assert (result.ok, result.data.output) == (True, "said\n")
    assert hook(workspace) is None


def test_very_many_changes_ask_in_auto_although_undo_covers_them(rail: Make, workspace: Path) -> None:
    for number in range(30):
        (workspace / f"f{number}").touch()
    (workspace / "gen.sh").write_text("rm f*")
    request = asked(rail(mode="auto"))
    assert request.rule == "fs.bulk"
    assert "30 files at once" in request.reason
    assert (workspace / "f0").exists()


def test_in_full_mode_nothing_asks(rail: Make, workspace: Path) -> None:
    assert rail(mode="full").exec(GEN).ok
    assert hook(workspace) is not None


def test_a_rule_lets_a_command_write_and_delete_but_not_change_what_steers_tools(rail: Make, workspace: Path) -> None:
    rule = Rule(id="gen", verdict="allow", tool="exec", pattern="bash gen.sh", layer="user")
    one = rail(mode="ask", settings=LoadedSettings(settings=Settings(), sources={}, rules=(rule,)))
    (workspace / "old").touch()
    (workspace / "gen.sh").write_text("rm old; echo a > made")
    assert one.exec(GEN).ok
    assert not (workspace / "old").exists()
    (workspace / "gen.sh").write_text("echo x > .git/hooks/pre-commit")
    assert asked(one).rule == "fs.protected"
    assert hook(workspace) is None


def test_where_nobody_is_there_it_is_dropped_and_what_it_printed_is_told(
    rail: Make, workspace: Path, tmp_path: Path
) -> None:
    result = rail(mode="auto", unattended=True).exec(GEN)
    assert result.error is not None
    assert result.error.code == "PERMISSION_DENIED"
    assert result.content.startswith("said\n[exit code 0; its changes were dropped]\n[What it changed needs approval")
    assert hook(workspace) is None
    assert not (workspace / "made").exists()
    assert audited(tmp_path, result.tool_call_id) == [("deny", "fs.protected", False)]


# A batch


def batch(*more: ToolCall) -> tuple[ToolCall, ...]:
    first = call("exec", "one", command="echo 1 > first; echo first")
    return (first, call("exec", "two", command=GEN), call("exec", "three", command="cat first made; touch last"), *more)


def test_what_ran_before_it_stays_done_and_what_comes_after_it_waits(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")
    parked = one.batch(batch())
    assert isinstance(parked, Parked)
    assert [request.tool_call_id for request in parked.requests] == ["two"]
    assert ((workspace / "first").exists(), (workspace / "last").exists()) == (True, False)
    done = one.answer(parked.requests[0].id, "once")
    assert isinstance(done, Done)
    assert [result.tool_call_id for result in done.results] == ["one", "two", "three"]
    assert [result.data.output for result in done.results] == ["first\n", "said\n", "1\na\n"]
    assert one.batch(batch()) == done


def test_the_same_call_again_waits_as_long_as_nobody_answers(rail: Make) -> None:
    one = rail(mode="auto")
    parked = one.batch(batch())
    assert one.batch(batch()) == parked
    assert one.waiting() == parked.requests


def test_calls_after_it_are_parked_with_their_refusals_and_warnings(rail: Make) -> None:
    one = rail(mode="auto")
    parked = one.batch(batch(call("nosuchtool", "four"), call("read", "five", path="first")))
    assert isinstance(parked, Parked)
    done = one.answer(parked.requests[0].id, "deny")
    assert isinstance(done, Done)
    codes = [result.error.code if result.error else "ok" for result in done.results]
    assert codes == ["ok", "PERMISSION_DENIED", "ok", "UNKNOWN_TOOL", "ok"]


def test_two_of_one_batch_ask_one_after_the_other(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")
    parked = one.batch((*batch(), call("exec", "four", command="bash gen.sh again")))
    assert isinstance(parked, Parked)
    again = one.answer(parked.requests[0].id, "output")
    assert isinstance(again, Parked)
    assert [request.tool_call_id for request in again.requests] == ["four"]
    with pytest.raises(UsageError, match="answered already"):
        one.answer(parked.requests[0].id, "once")
    done = one.answer(again.requests[0].id, "once")
    assert isinstance(done, Done)
    assert [result.ok for result in done.results] == [True, True, True, True]
    assert hook(workspace) is not None


def test_who_is_asked_on_the_way_is_asked_again(rail: Make, workspace: Path) -> None:
    seen: list[str] = []

    def yes(request: PermissionRequest) -> str:
        seen.append(request.rule)
        return "once"

    one = rail(mode="auto", on_permission=yes)
    done = one.batch((*batch(), call("exec", "four", command="bash gen.sh again")))
    assert isinstance(done, Done)
    assert [result.ok for result in done.results] == [True] * 4
    assert seen == ["fs.protected", "fs.protected"]
    assert hook(workspace) is not None


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_what_a_person_said_yes_to_may_ask_once_more_for_what_it_changed(
    rail: Make, workspace: Path, place: Meeting
) -> None:
    (workspace / "gen.sh").write_text("echo x > .git/hooks/pre-commit; echo a > made")
    machine = Settings(network=NetworkSettings(allow=("[::1]:1",)))  # so that the address is a host
    one = rail(mode="ask", settings=machine)
    first = asked(one, f"{place.called}; bash gen.sh")
    assert first.hosts == (place.address,)
    parked = one.answer(first.id, "once")
    assert isinstance(parked, Parked)
    (second,) = parked.requests
    assert (second.rule, second.tool_call_id) == ("fs.protected", first.tool_call_id)
    assert hook(workspace) is None
    result = answered(one, second, "once")
    assert (result.ok, result.data.output) == (True, "met\n")
    assert result.meta.sandbox.not_covered == (f"what was sent to {place.address}",)
    assert hook(workspace) == "x\n"


# Later, and elsewhere


def test_it_can_be_answered_in_another_process_of_the_session(rail: Make, workspace: Path) -> None:
    with rail(mode="auto", session="s") as one:
        parked = one.batch(batch())
        assert isinstance(parked, Parked)
    other = rail(mode="auto", session="s")
    assert other.waiting() == parked.requests
    done = other.answer(parked.requests[0].id, "once")
    assert isinstance(done, Done)
    assert [result.data.output for result in done.results] == ["first\n", "said\n", "1\na\n"]
    assert hook(workspace) is not None


def test_what_others_changed_meanwhile_is_not_overwritten(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")
    request = asked(one)
    (workspace / "made").write_text("somebody's\n")
    result = answered(one, request, "once")
    assert result.error is not None
    assert result.error.code == "CONFLICT"
    assert (workspace / "made").read_text() == "somebody's\n"
    assert hook(workspace) is None


def test_a_stricter_mode_meanwhile_keeps_nothing(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")
    request = asked(one)
    one.set_mode("plan")
    result = answered(one, request, "once")
    assert result.error is not None
    assert result.error.code == "POLICY_DENIED"
    assert hook(workspace) is None


def test_what_the_call_was_first_decided_on_can_be_replayed(rail: Make) -> None:
    one = rail(mode="auto")
    request = asked(one)
    entry = one._session.journal.entry(request.tool_call_id)
    assert entry is not None
    assert entry.decision.decision == "allow"
    assert entry.judged is not None
    assert entry.judged.rule == "fs.protected"


def test_an_interrupt_just_when_it_is_parked_leaves_it_waiting(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto")

    def interrupt(event: object) -> None:
        if isinstance(event, Event) and get_event_kind(event) == "tool_call.permission-required":
            raise KeyboardInterrupt

    one.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        one.batch(batch())
    (request,) = one.waiting()
    assert not [event for event in one.events() if isinstance(event, ToolCallError)]
    assert answered(one, request, "once").ok
    assert hook(workspace) is not None
