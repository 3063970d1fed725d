"""The trace of a turn: where its time went, by recorded times alone."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.server.handlers import Api

from handrail.models.scripted import ScriptedStep, call
from handrail.protocol.events import End, Event, ToolCallStart, Usage, User
from handrail.protocol.results import OVERLAY_TIER
from handrail.protocol.wire import encode
from handrail.server.trace import build_traces

START = datetime(2026, 1, 1, tzinfo=UTC)


def make(kind: type[Event], seq: int, seconds: float, **fields: Any) -> Any:
    time = START + timedelta(seconds=seconds)
    return kind(event_id=f"s:{seq}", seq=seq, session_id="s", time=time, **fields)


def say(seq: int, seconds: float, text: str) -> Any:
    return make(User, seq, seconds, message_id=f"m{seq}", text=text)


def spend(seq: int, seconds: float) -> Any:
    return make(Usage, seq, seconds, model="m", input_tokens=1, output_tokens=1)


def end(seq: int, seconds: float, reason: Any = "done") -> Any:
    return make(End, seq, seconds, reason=reason)


def run_turn(api: Api, *script: ScriptedStep, answers: tuple[str, ...] = ()) -> str:
    """Runs a turn to its end, with answers to its requests; the task."""
    api.host.script = list(script)
    runner = api.server.runner
    task = runner.create(api.workspace, "ask", None, None).id
    reasons: list[str] = []
    changed = threading.Condition()

    def note(event: Any) -> None:
        with changed:
            reasons.append(event.reason)
            changed.notify_all()

    with runner.rail(task) as rail:
        rail.subscribe(note, kinds={End})
        runner.prompt(task, "Go on.")
        for number, kind in enumerate((*answers, None), start=1):
            with changed:
                assert changed.wait_for(lambda number=number: len(reasons) == number, 60)
            if kind is not None:
                [waiting] = api.get("/api/inbox").body["requests"]
                path = f"/api/requests/{waiting['request']['id']}/answer"
                assert api.post(path, {"kind": kind, "revision": 0}).status == 200
    assert reasons[-1] == "done"
    return task


def test_a_turn_has_spans_of_the_model_the_person_and_the_tool(api: Api, workspace: Path) -> None:
    (workspace / "a.txt").write_text("a\n")
    script = (call("read", path="a.txt"), call("write", path="b.txt", content="b\n"), "Done.")
    task = run_turn(api, *script, answers=("once",))
    [trace] = api.get(f"/api/tasks/{task}/trace").body["traces"]
    assert trace["prompt"] == "Go on."
    phases = [(span["phase"], span["name"]) for span in trace["spans"]]
    others = sorted(one for one in phases if one[0] != "model")
    assert others == [
        ("person", "once"),
        ("policy", "write"),
        ("queue", "write"),
        ("tool", "read"),
        ("tool", "write"),
    ]
    assert sum(phase == "model" for phase, _ in phases) == 3
    for span in trace["spans"]:
        assert 0 <= span["startMs"] <= trace["durationMs"]
        assert span["startMs"] + span["durationMs"] <= trace["durationMs"] + 1
        assert (span["phase"] == "model") == (span["toolCallId"] is None)


def test_a_preview_is_time_in_the_sandbox(api: Api) -> None:
    with api.open("probe") as rail:
        if rail.sandbox_tier < OVERLAY_TIER:
            pytest.skip("no overlay here")
    task = run_turn(api, call("exec", command="sleep 0.1; touch made"), "Done.", answers=("once",))
    [trace] = api.get(f"/api/tasks/{task}/trace").body["traces"]
    [sandbox] = [span for span in trace["spans"] if span["phase"] == "sandbox"]
    assert sandbox["name"] == "preview"
    assert sandbox["durationMs"] >= 100
    [person] = [span for span in trace["spans"] if span["phase"] == "person"]
    assert sandbox["startMs"] + sandbox["durationMs"] <= person["startMs"] + 1
    [policy] = [span for span in trace["spans"] if span["phase"] == "policy"]
    assert policy["startMs"] + policy["durationMs"] <= sandbox["startMs"] + 1


def test_calls_of_one_reply_are_decided_one_after_the_other() -> None:
    def begin(seq: int, seconds: float, **fields: Any) -> Any:
        names: dict[str, Any] = {"tool_call_id": f"c{seq}", "tool_call_name": "write", "args": {}, "trace_id": "t"}
        return make(ToolCallStart, seq, seconds, **names, **fields)

    begun = [begin(3, 2.5, policy_ms=30.0), begin(4, 3, policy_ms=10.0), begin(5, 3)]
    [trace] = build_traces([say(1, 0, "one"), spend(2, 2), *begun, end(6, 4)])
    policy = [
        (span.name, span.start_ms, span.duration_ms, span.tool_call_id)
        for span in trace.spans
        if span.phase == "policy"
    ]
    assert policy == [("write", 2000, 30, "c3"), ("write", 2030, 10, "c4")]


def test_a_read_without_a_question_records_no_time_of_policy(api: Api, workspace: Path) -> None:
    (workspace / "a.txt").write_text("a\n")
    with api.open("dev") as rail:
        rail.read("a.txt")
        rail.read("../outside")
        starts = [event for event in rail.events() if isinstance(event, ToolCallStart)]
    assert b"policy_ms" not in encode(starts[0])
    assert isinstance(starts[1].policy_ms, float)
    assert starts[1].policy_ms > 0


def test_a_prompt_in_a_running_turn_belongs_to_it_and_one_after_it_does_not() -> None:
    events = [say(1, 0, "one"), spend(2, 2), say(3, 3, "also"), spend(4, 4), end(5, 5), say(6, 9, "two"), spend(7, 10)]
    first, second = build_traces(events)
    assert (first.turn, first.prompt, first.duration_ms, len(first.spans)) == (1, "one", 5000, 2)
    assert (second.turn, second.prompt, second.duration_ms) == (6, "two", 1000)
    assert [(span.start_ms, span.duration_ms) for span in first.spans] == [(0, 2000), (2000, 2000)]


def test_a_new_prompt_leaves_a_turn_that_waits() -> None:
    events = [say(1, 0, "one"), end(2, 1, "parked"), say(3, 2, "two"), end(4, 3)]
    assert [trace.prompt for trace in build_traces(events)] == ["one", "two"]


def test_a_session_without_prompts_has_no_trace(api: Api) -> None:
    with api.open("dev", mode="auto") as rail:
        rail.write("a.txt", "a\n")
    assert api.get("/api/tasks/dev/trace").body["traces"] == []
    assert api.get("/api/tasks/none/trace").status == 404
    assert api.get("/api/tasks/../trace").status == 404
