"""Approvals: no call of a batch runs before every request is answered, and each runs once."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import (
    Answer,
    Context,
    Done,
    Handrail,
    Output,
    Parked,
    PermissionRequest,
    Tool,
    ToolCall,
    UsageError,
    tool,
)
from handrail.protocol import events as event_kinds
from handrail.protocol.changes import Preview
from handrail.protocol.events import (
    Event,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    ToolCallPermissionRequired,
    ToolCallRunning,
    ToolCallStart,
)
from handrail.protocol.permissions import ApproverReply
from handrail.protocol.results import ToolResult
from handrail.state import StoredState
from handrail.store.audit import decode_record

Make = Callable[..., Handrail]


def call(call_id: str, name: str = "write", **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def write(call_id: str, path: str, content: str = "new\n") -> ToolCall:
    return call(call_id, path=path, content=content)


def parked(outcome: Done | Parked) -> tuple[PermissionRequest, ...]:
    assert isinstance(outcome, Parked)
    return outcome.requests


def done(outcome: Done | Parked) -> tuple[ToolResult[Any], ...]:
    assert isinstance(outcome, Done)
    return outcome.results


def code(result: ToolResult[Any]) -> str | None:
    return result.error.code if result.error else None


def kinds(rail: Handrail, call_id: str) -> list[str]:
    return [type(event).__name__ for event in rail.events() if getattr(event, "tool_call_id", None) == call_id]


def audited(tmp_path: Path) -> list[str]:
    lines = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    return [found[0].tool_call_id for line in lines if (found := decode_record(line))]


# Parking


def test_if_one_call_needs_permission_none_runs(rail: Make, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    one = rail(mode="ask")
    requests = parked(
        one.batch([call("r", "read", path="a.txt"), write("w", "a.txt"), call("u", "unknown"), write("v", "b")])
    )
    assert [request.tool_call_id for request in requests] == ["w", "v"]
    assert (workspace / "a.txt").read_text() == "old\n"
    assert not (workspace / "b").exists()
    assert kinds(one, "r") == ["ToolCallStart"]
    assert kinds(one, "w") == ["ToolCallStart", "ToolCallPermissionRequired"]
    assert audited(tmp_path) == []
    assert one.waiting() == requests


def test_the_request_has_all_that_is_needed_to_answer(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    one = rail(mode="ask", session="s")
    [request] = parked(one.batch([write("w", "a.txt", "new\n")]))
    assert (request.tool_name, request.server_name, request.permission_type) == ("write", "handrail", "write")
    assert (request.rule, request.permissions) == ("fs.write", ("fs.write",))
    assert request.answers == ("once", "edits", "deny")
    assert (request.session_id, request.tool_call_id, request.paths) == ("s", "w", ("a.txt",))
    assert request.preview is not None
    assert "-old" in request.preview.text
    assert "+new" in request.preview.text
    [event] = [event for event in one.events() if isinstance(event, ToolCallPermissionRequired)]
    assert event.permission_request == request


def test_permission_required_is_an_interim_answer(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    result = one.write("a.txt", "text")
    assert result.error is not None
    assert (result.error.code, result.error.retryable, result.name, result.version) == (
        *("PERMISSION_REQUIRED", False, "write", "1.0.0"),
    )
    [request] = one.waiting()
    assert result.error.details["id"] == request.id
    assert result.error.details["toolCallId"] == result.tool_call_id == request.tool_call_id
    assert kinds(one, result.tool_call_id) == ["ToolCallStart", "ToolCallPermissionRequired"]
    assert audited(tmp_path) == []

    final = done(one.answer(request.id, "once"))[0]
    assert final.ok
    assert audited(tmp_path) == [result.tool_call_id]
    assert kinds(one, result.tool_call_id)[2:] == [
        *("ToolCallPermissionGranted", "ToolCallRunning", "ChangeEvent", "ToolCallEnd"),
    ]


def test_the_same_call_is_never_asked_twice(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    first = one.call("write", {"path": "a.txt", "content": "x"}, tool_call_id="w")
    again = one.call("write", {"path": "a.txt", "content": "x"}, tool_call_id="w")
    assert first.error is not None
    assert again.error is not None
    assert first.error.details == again.error.details
    assert len(one.waiting()) == 1
    one.answer(one.waiting()[0].id, "once")
    assert one.call("write", {"path": "a.txt", "content": "x"}, tool_call_id="w").ok
    assert one.waiting() == ()


def test_a_call_of_a_parked_batch_asked_for_alone_gets_its_own_request(rail: Make) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch([write("a", "a.txt"), write("b", "b.txt")]))
    result = one.call("write", {}, tool_call_id="b")
    assert result.error is not None
    assert result.error.details["id"] == requests[1].id


def test_a_batch_with_a_finished_and_a_parked_call_before_it_parks_anew(rail: Make) -> None:
    one = rail(mode="ask")
    [request] = parked(one.batch([write("a", "a.txt")]))
    assert done(one.answer(request.id, "once"))[0].ok
    [request] = parked(one.batch([write("a", "a.txt"), write("b", "b.txt")]))
    assert request.tool_call_id == "b"
    assert [result.tool_call_id for result in done(one.answer(request.id, "once"))] == ["b"]
    assert all(result.ok for result in done(one.batch([write("a", "a.txt"), write("b", "b.txt")])))


def test_two_threads_that_park_the_same_batch_share_one(rail: Make) -> None:
    one = rail(mode="ask")
    ready = threading.Barrier(4)

    def park(_: int) -> Any:
        ready.wait()
        return [request.id for request in parked(one.batch([write("a", "a.txt"), write("b", "b.txt")]))]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(park, range(4)))
    assert found == [found[0]] * 4
    assert len(one.waiting()) == 2


def test_a_preview_that_fails_is_the_calls_result(rail: Make, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    one = rail(mode="ask")
    assert code(one.write("folder", "x")) == "NOT_A_FILE"
    assert one.waiting() == ()
    results = parked(one.batch([write("a", "folder"), write("b", "b.txt")]))
    assert [request.tool_call_id for request in results] == ["b"]
    assert [code(result) for result in done(one.answer(results[0].id, "once"))] == ["NOT_A_FILE", None]


# Answering


def test_answers_in_any_order_and_with_the_last_it_runs(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch([write("a", "a.txt"), write("b", "b.txt"), write("c", "c.txt")]))
    left = parked(one.answer(requests[2].id, "once"))
    assert [request.tool_call_id for request in left] == ["a", "b"]
    left = parked(one.answer(requests[0].id, "deny", reason="not that one"))
    assert [request.tool_call_id for request in left] == ["b"]
    assert sorted(path.name for path in workspace.iterdir()) == []
    results = done(one.answer(requests[1].id, Answer(kind="once")))
    assert [(result.tool_call_id, code(result)) for result in results] == [
        *(("a", "PERMISSION_DENIED"), ("b", None), ("c", None)),
    ]
    assert sorted(path.name for path in workspace.iterdir()) == ["b.txt", "c.txt"]


def test_a_refusal_says_so_with_the_persons_reason(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    result = one.write("a.txt", "x")
    [final] = done(one.answer(one.waiting()[0].id, "deny", reason="wrong file"))
    assert final.error is not None
    assert (final.error.code, final.tool_call_id) == ("PERMISSION_DENIED", result.tool_call_id)
    assert '"wrong file"' in final.error.message
    assert not (workspace / "a.txt").exists()
    [event] = [event for event in one.events() if isinstance(event, ToolCallPermissionDenied)]
    assert event.answer == Answer(kind="deny", reason="wrong file")
    [line] = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    found = decode_record(line)
    assert found is not None
    assert (found[0].decision, found[0].rule, found[0].error_code) == ("confirm", "fs.write", "PERMISSION_DENIED")


@pytest.mark.parametrize("mode", ["auto", "full", "plan"])
def test_a_no_holds_whatever_the_mode_is_by_then(rail: Make, workspace: Path, mode: Any) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch([write("a", "a.txt"), write("b", "b.txt")]))
    one.answer(requests[0].id, "deny")
    one.set_mode(mode)
    results = done(one.answer(requests[1].id, "once"))
    assert code(results[0]) == "PERMISSION_DENIED"
    assert not (workspace / "a.txt").exists()
    assert code(results[1]) == ("POLICY_DENIED" if mode == "plan" else None)


def test_a_call_that_needs_permission_only_by_then_does_not_run(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto", tools=[deleter(workspace)])
    requests = parked(one.batch([call("d", "remove", path="x"), write("w", "a.txt")]))
    assert [request.tool_call_id for request in requests] == ["d"]
    one.set_mode("ask")
    results = done(one.answer(requests[0].id, "once"))
    assert [code(result) for result in results] == [None, "CONFLICT"]
    assert not (workspace / "a.txt").exists()


def deleter(workspace: Path) -> Tool:
    @tool(name="remove")
    def remove(path: str) -> str:
        """Removes a file."""
        (workspace / path).unlink(missing_ok=True)
        return "gone"

    return remove


def test_an_answer_that_is_none_is_refused_and_the_request_stays(rail: Make) -> None:
    one = rail(mode="ask")
    one.write("a.txt", "x")
    [request] = one.waiting()
    for wrong in ("session", "workspace", "output", "yes", ""):
        with pytest.raises(UsageError, match="answered with once or edits or deny"):
            one.answer(request.id, wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no permission request 'ask_none'"):
        one.answer("ask_none", "once")
    assert one.waiting() == (request,)


def test_a_file_that_changed_meanwhile_voids_the_answer(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    one = rail(mode="ask")
    requests = parked(one.batch([write("a", "a.txt"), write("b", "b.txt")]))
    (workspace / "a.txt").write_text("somebody else's\n")
    one.answer(requests[0].id, "once")
    results = done(one.answer(requests[1].id, "once"))
    assert [code(result) for result in results] == ["CONFLICT", None]
    assert "a.txt" in results[0].summary
    assert (workspace / "a.txt").read_text() == "somebody else's\n"


def test_a_file_that_came_to_be_meanwhile_voids_the_answer(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    one.write("a.txt", "new\n")
    (workspace / "a.txt").write_text("somebody else's\n")
    [result] = done(one.answer(one.waiting()[0].id, "once"))
    assert code(result) == "CONFLICT"
    assert (workspace / "a.txt").read_text() == "somebody else's\n"


def test_a_change_while_an_earlier_call_of_the_batch_runs_voids_the_answer(rail: Make, workspace: Path) -> None:
    """The check is made when the call's turn comes, not when the answer is given."""

    @tool
    def meddle() -> str:
        """Changes a file without saying so."""
        (workspace / "a.txt").write_text("meddled\n")
        return "done"

    (workspace / "a.txt").write_text("old\n")
    one = rail(mode="ask", tools=[meddle])
    requests = parked(one.batch([call("m", "meddle"), write("a", "a.txt")]))
    one.answer(requests[0].id, "once")
    results = done(one.answer(requests[1].id, "once"))
    assert [code(result) for result in results] == [None, "CONFLICT"]
    assert (workspace / "a.txt").read_text() == "meddled\n"


def test_calls_approved_together_may_change_the_same_file(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    (workspace / "link").symlink_to("a.txt")
    one = rail(mode="ask")
    requests = parked(one.batch([write("a", "a.txt", "1\n"), write("b", "link", "2\n"), write("c", "./a.txt", "3\n")]))
    for request in requests[:-1]:
        one.answer(request.id, "once")
    results = done(one.answer(requests[-1].id, "once"))
    assert [code(result) for result in results] == [None, None, None]
    assert (workspace / "a.txt").read_text() == "3\n"


def test_exactly_one_of_two_answers_wins(rail: Make, workspace: Path) -> None:
    runs: list[int] = []

    @tool
    def count() -> int:
        """Counts its runs."""
        runs.append(1)
        return len(runs)

    for number in range(20):
        one = rail(mode="ask", session="s", tools=[count])
        other = rail(mode="ask", session="s", tools=[count])
        one.call("count", {}, tool_call_id=f"x{number}")
        [request] = other.waiting()
        ready = threading.Barrier(2)

        def answer(rail: Handrail, kind: Any, request: PermissionRequest = request, ready: Any = ready) -> str:
            ready.wait()
            try:
                return code(done(rail.answer(request.id, kind))[0]) or "ran"
            except UsageError as error:
                return "too late" if "answered already" in str(error) else str(error)

        with ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(answer, one, "once"), pool.submit(answer, other, "deny")]
            outcome = sorted(end.result() for end in ends)
        assert outcome in (["ran", "too late"], ["PERMISSION_DENIED", "too late"])
        assert len(runs) == len([event for event in one.events() if isinstance(event, ToolCallEnd)])
        one.close()
        other.close()


ANSWERER = """
import sys
from handrail import Done, Handrail, UsageError
from handrail.settings import Settings
workspace, state, request = sys.argv[1:]
with Handrail(workspace, mode="ask", session="s", state_dir=state, settings=Settings()) as rail:
    sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
    try:
        outcome = rail.answer(request, "once")
        print("ran" if isinstance(outcome, Done) and outcome.results[0].ok else outcome)
    except UsageError:
        print("too late")
"""


def test_of_two_processes_that_answer_one_runs_it(
    rail: Make, workspace: Path, tmp_path: Path, count: Callable[[int], int]
) -> None:
    for number in range(count(20)):
        with rail(mode="ask", session="s") as one:
            one.write(f"{number}.txt", "x")
            [request] = one.waiting()
        command = [sys.executable, "-c", ANSWERER, workspace, tmp_path / "state", request.id]
        racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        assert sorted(racer.communicate()[0].strip() for racer in racers) == ["ran", "too late"]
    with rail(session="s") as one:
        assert len([event for event in one.events() if isinstance(event, ToolCallRunning)]) == count(20)
    assert StoredState(str(tmp_path / "state")).verify().records == count(20)


# Resuming


def test_a_parked_batch_survives_that_the_session_is_closed(rail: Make, workspace: Path) -> None:
    with rail(mode="ask", session="s") as one:
        first, second = parked(one.batch([call("r", "read", path="."), write("a", "a.txt"), write("b", "b.txt")]))
        one.answer(second.id, "once")
    with rail(mode="ask", session="s") as one:
        [left] = one.waiting()
        assert left == first
        results = done(one.answer(left.id, "once"))
    assert [(result.tool_call_id, code(result)) for result in results] == [
        *(("r", "NOT_A_FILE"), ("a", None), ("b", None)),
    ]
    assert sorted(path.name for path in workspace.iterdir()) == ["a.txt", "b.txt"]


def test_what_a_resumed_call_was_is_kept_exactly(rail: Make) -> None:
    seen: list[Any] = []

    @tool
    def look(context: Context, value: dict[str, Any]) -> str:
        """Remembers what it got."""
        seen.append((value, context.tool_call_id, context.trace_id, context.message_id))
        return "done"

    value = {"text": "ä\n\0", "list": [1, None, 2.5, True], "deep": {"a": {"b": []}}}
    with rail(mode="ask", session="s", tools=[look]) as one:
        one.call("look", {"value": value}, tool_call_id="x", trace_id="t", message_id="m", version="1.0")
    with rail(mode="ask", session="s", tools=[look]) as one:
        assert done(one.answer(one.waiting()[0].id, "once"))[0].ok
    assert seen == [(value, "x", "t", "m")]


def test_a_call_whose_tool_is_gone_is_unknown_by_then(rail: Make) -> None:
    gone = tool(lambda: "x", name="gone", description="Will be gone.")
    with rail(mode="ask", session="s", tools=[gone]) as one:
        one.call("gone", {})
    with rail(mode="ask", session="s") as one:
        [result] = done(one.answer(one.waiting()[0].id, "once"))
    assert code(result) == "UNKNOWN_TOOL"


def test_an_unattended_session_may_carry_out_what_a_person_answered(rail: Make, workspace: Path) -> None:
    with rail(mode="ask", session="s") as one:
        one.write("a.txt", "x")
    with rail(mode="ask", session="s", unattended=True) as one:
        assert done(one.answer(one.waiting()[0].id, "once"))[0].ok
    assert (workspace / "a.txt").read_text() == "x"


def test_a_yes_does_not_open_what_became_forbidden(rail: Make, workspace: Path, tmp_path: Path) -> None:
    (workspace / "folder").mkdir()
    one = rail(mode="ask")
    one.write("folder/a.txt", "x")
    (workspace / "folder").rmdir()
    (tmp_path / "outside").mkdir()
    (workspace / "folder").symlink_to(tmp_path / "outside")
    [result] = done(one.answer(one.waiting()[0].id, "once"))
    assert code(result) == "OUTSIDE_WORKSPACE"
    assert list((tmp_path / "outside").iterdir()) == []


# Modes and callbacks


@pytest.mark.parametrize(
    ("mode", "expected"), [("plan", "POLICY_DENIED"), ("ask", "PERMISSION_REQUIRED"), ("auto", None), ("full", None)]
)
def test_what_a_write_comes_to_in_each_mode(rail: Make, mode: Any, expected: str | None) -> None:
    one = rail(mode=mode)
    assert code(one.write("a.txt", "x")) == expected
    assert one.ls().ok
    assert one.mode == mode


def test_unattended_denies_instead_of_waiting(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask", unattended=True)
    result = one.write("a.txt", "x")
    assert code(result) == "PERMISSION_DENIED"
    assert "no person is present to approve" in result.summary
    assert one.waiting() == ()
    assert [type(event).__name__ for event in one.events()] == ["ToolCallStart", "Warning", "ToolCallError"]
    assert audited(tmp_path) == [result.tool_call_id]


def test_on_permission_is_asked_and_obeyed(rail: Make, workspace: Path) -> None:
    asked: list[PermissionRequest] = []

    def decide(request: PermissionRequest) -> Any:
        asked.append(request)
        return "once" if request.paths == ("a.txt",) else Answer(kind="deny", reason="no")

    one = rail(mode="ask", on_permission=decide)
    assert one.write("a.txt", "x").ok
    refused = one.write("b.txt", "x")
    assert code(refused) == "PERMISSION_DENIED"
    results = done(one.batch([write("1", "a.txt"), call("2", "read", path="a.txt"), write("3", "c.txt")]))
    assert [code(result) for result in results] == [None, None, "PERMISSION_DENIED"]
    assert results[1].content == "new\n"
    assert [request.paths for request in asked] == [("a.txt",), ("b.txt",), ("a.txt",), ("c.txt",)]


def test_on_permission_that_fails_leaves_the_request_open(rail: Make) -> None:
    def fails(_: PermissionRequest) -> Any:
        raise LookupError("nobody home")

    one = rail(mode="ask", on_permission=fails, session="s")
    with pytest.raises(LookupError):
        one.write("a.txt", "x")
    assert len(one.waiting()) == 1


def test_on_permission_that_is_too_late_gets_what_came_of_it(rail: Make, workspace: Path) -> None:
    other = rail(mode="ask", session="s")

    def too_late(request: PermissionRequest) -> Any:
        other.answer(request.id, "deny", reason="I was first")
        return "once"

    one = rail(mode="ask", session="s", on_permission=too_late)
    result = one.write("a.txt", "x")
    assert code(result) == "PERMISSION_DENIED"
    assert "I was first" in result.summary


def test_on_permission_for_a_call_of_an_older_batch_gets_that_calls_result(rail: Make) -> None:
    with rail(mode="ask", session="s") as one:
        one.batch([write("a", "a.txt"), write("b", "b.txt")])
    with rail(mode="ask", session="s", on_permission=lambda _: "once") as one:
        result = one.call("write", {}, tool_call_id="b")
    assert (result.tool_call_id, result.ok, result.data.path) == ("b", True, "b.txt")


class FixedApprover:
    """An approver that gives one answer to every request."""

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int, int]] = []
        self.reported: list[Done | Parked | None] = []

    def is_available(self) -> bool:
        return len(self.asked) < 9

    def ask(self, request: PermissionRequest, number: int, total: int) -> ApproverReply:
        self.asked.append((request.tool_call_id, number, total))
        return ApproverReply(request, self.answer)

    def report(self, _reply: ApproverReply, outcome: Done | Parked | None) -> None:
        self.reported.append(outcome)


def test_an_approver_is_asked_in_turn_and_gets_the_outcome_of_the_whole_batch(rail: Make) -> None:
    one, yes = rail(mode="ask"), FixedApprover(Answer(kind="once"))
    waiting = one.batch([write("a", "a.txt"), write("b", "b.txt")])
    assert isinstance(waiting, Parked)
    results = done(one.ask(waiting, yes))
    assert yes.asked == [("a", 1, 2), ("b", 2, 2)]
    assert [result.tool_call_id for result in results] == ["a", "b"]
    assert [type(outcome) for outcome in yes.reported] == [Parked, Done]


def test_an_approver_that_leaves_a_request_is_not_asked_again(rail: Make) -> None:
    one, later = rail(mode="ask"), FixedApprover(None)
    waiting = one.batch([write("a", "a.txt"), write("b", "b.txt")])
    assert isinstance(waiting, Parked)
    assert parked(one.ask(waiting, later)) == waiting.requests
    assert later.asked == [("a", 1, 2)]
    assert later.reported == []


def test_an_approver_that_is_too_late_is_told_so(rail: Make) -> None:
    one, yes = rail(mode="ask", session="s"), FixedApprover(Answer(kind="once"))
    waiting = one.batch([write("a", "a.txt")])
    assert isinstance(waiting, Parked)
    rail(mode="ask", session="s").answer(waiting.requests[0], "deny")
    assert not one.is_pending(waiting.requests[0])
    assert done(one.ask(waiting, yes)) == ()
    assert yes.reported == [None]


def test_a_listener_may_answer_at_once(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    outcomes: list[Any] = []

    def answer(event: Event) -> None:
        if isinstance(event, ToolCallPermissionRequired):
            outcomes.append(one.answer(event.permission_request.id, "once"))

    one.subscribe(answer)
    one.batch([write("a", "a.txt"), write("b", "b.txt")])
    assert [type(outcome) for outcome in outcomes] == [Parked, Done]
    assert sorted(path.name for path in workspace.iterdir()) == ["a.txt", "b.txt"]
    assert not [event for event in one.events() if getattr(event, "code", None) == "LISTENER_REMOVED"]


def test_a_preview_of_a_custom_tool_tells_nothing_before_the_call_began(rail: Make) -> None:
    def preview(context: Context, _: Any) -> Preview:
        context.metadata(title="too early")
        return Preview(kind="diff", text="+x\n")

    def run(context: Context, _: Any) -> Output:
        context.metadata(title="now")
        return Output(summary="done", content="done", data=None)

    plain = tool(lambda: "x", name="previewed", description="Has a preview.")
    one = rail(mode="ask", tools=[Tool(plain.spec, run, preview=preview)])
    one.call("previewed", {}, tool_call_id="x")
    [request] = one.waiting()
    assert request.preview is not None
    assert request.preview == Preview(kind="diff", text="+x\n", time=request.preview.time)
    assert done(one.answer(request.id, "once"))[0].ok
    assert kinds(one, "x") == [
        *("ToolCallStart", "ToolCallPermissionRequired", "ToolCallPermissionGranted", "ToolCallRunning"),
        *("ToolCallUpdate", "ToolCallEnd"),
    ]


def test_every_call_of_a_resumed_batch_has_one_start_and_one_end(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch([call("u", "unknown"), write("a", "a.txt"), call("i", "read", pth="x")]))
    one.answer(requests[0].id, "once")
    for call_id in ("u", "a", "i"):
        own = kinds(one, call_id)
        assert own.count("ToolCallStart") == 1
        assert own.count("ToolCallEnd") + own.count("ToolCallError") == 1
    assert sorted(audited(tmp_path)) == ["a", "i", "u"]
    assert [event for event in one.events() if isinstance(event, ToolCallPermissionGranted)]
    assert [event for event in one.events() if isinstance(event, ToolCallError)]
    assert [event for event in one.events() if isinstance(event, ToolCallStart)]
    assert [event for event in one.events() if isinstance(event, event_kinds.Warning)]


@pytest.mark.parametrize("missing", [True, False])
def test_a_yes_is_for_where_the_path_led_when_it_was_asked(rail: Make, workspace: Path, missing: bool) -> None:
    for name in ("one", "other"):
        (workspace / name).mkdir()
        if not missing:
            (workspace / name / "file.txt").write_text("same\n")
    (workspace / "link").symlink_to("one")
    asking = rail(mode="ask")
    asking.write("link/file.txt", "new\n")
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("other")
    done = asking.answer(asking.waiting()[0].id, "once")
    assert isinstance(done, Done)
    assert done.results[0].error.code == "CONFLICT"  # type: ignore[union-attr]
    for name in ("one", "other"):
        assert (workspace / name / "file.txt").exists() is not missing
        assert missing or (workspace / name / "file.txt").read_text() == "same\n"
