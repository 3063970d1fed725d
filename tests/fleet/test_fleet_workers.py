"""Workers of a fleet: each run ends once, whatever happens to the worker that began it."""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleets import PATIENCE, Fleet

import postgres
from handrail import UsageError
from handrail.fleet.options import RunOptions, SharedFolder
from handrail.fleet.sessions import TenantLimits
from handrail.protocol.events import (
    End,
    Error,
    ToolCallEnd,
    ToolCallError,
    ToolCallQuestionRequired,
    ToolCallRunning,
    ToolCallStart,
)
from handrail.protocol.permissions import Answer, Reply


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as fleet:
        yield fleet


def check_run(fleet: Fleet, name: str) -> None:
    """The run ended once, no effect is lost or doubled, and the audit has every call."""
    events = fleet.events(name)
    assert len([event for event in events if isinstance(event, End) and event.reason == "done"]) == 1, name
    lines = fleet.read(name, "log.txt").splitlines()
    assert len(lines) == len(set(lines)), (name, lines)
    results = [event.result for event in events if isinstance(event, ToolCallEnd | ToolCallError)]
    assert len({result.tool_call_id for result in results}) == len(results), name
    commands = {event.tool_call_id: event.args["command"] for event in events if isinstance(event, ToolCallStart)}
    kept = [commands[result.tool_call_id].split()[1] for result in results if result.ok]
    assert set(kept) <= set(lines) <= {command.split()[1] for command in commands.values()}, (name, lines, results)
    assert fleet.verify(name) == (), name


def wait_for_command(fleet: Fleet) -> None:
    fleet.wait(lambda: "runs" if any(isinstance(one, ToolCallRunning) for one in fleet.events("one")) else None)


def test_a_session_runs_on_a_worker_and_ends(fleet: Fleet, deep: bool) -> None:
    if not deep:
        pytest.skip("in a deep run")
    fleet.submit("append:3", "one")
    fleet.start_worker()
    assert fleet.wait_for("one") == "idle"
    assert fleet.read("one", "log.txt") == "line-0\nline-1\nline-2\n"
    check_run(fleet, "one")
    found = fleet.sessions.find("one")
    assert found is not None
    assert found.outcome is not None
    assert (found.outcome.reason, found.outcome.text, found.worker) == ("done", "Done.", None)


def test_an_approval_from_another_machine_goes_on_with_the_run(fleet: Fleet) -> None:
    fleet.submit("append:2", "one", mode="ask")
    fleet.start_worker()
    for _ in range(2):
        waiting = fleet.wait_for_request("one")
        assert waiting.session == "one"
        assert fleet.sessions.answer(waiting.request.id, Answer(kind="once"), shown=waiting.request) == "one"
        with pytest.raises(UsageError, match="waiting"):
            fleet.sessions.answer(waiting.request.id, Answer(kind="once"))
    assert fleet.wait_for("one") == "idle"
    check_run(fleet, "one")
    assert fleet.read("one", "log.txt") == "line-0\nline-1\n"
    assert fleet.list_previews() == []


def test_a_denied_call_does_not_run_and_the_model_goes_on(fleet: Fleet, deep: bool) -> None:
    if not deep:
        pytest.skip("in a deep run")
    fleet.submit("append:1", "one", mode="ask")
    fleet.start_worker()
    request = fleet.wait_for_request("one").request
    fleet.sessions.answer(request.id, Answer(kind="deny", reason="not now"))
    assert fleet.wait_for("one") == "idle"
    assert fleet.read("one", "log.txt") == ""
    assert fleet.list_previews() == []


def test_a_reply_to_a_question_goes_on_with_the_run(fleet: Fleet) -> None:
    fleet.submit("ask", "one")
    fleet.start_worker()
    assert fleet.wait_for("one", "waiting") == "waiting"
    [asked] = [event for event in fleet.events("one") if isinstance(event, ToolCallQuestionRequired)]
    fleet.sessions.reply("one", asked.tool_call_id, Reply(chosen=("b",)))
    assert fleet.wait_for("one") == "idle"
    [result] = [event.result for event in fleet.events("one") if isinstance(event, ToolCallEnd)]
    assert "b" in result.content


def test_another_worker_takes_over_from_a_killed_one(fleet: Fleet) -> None:
    fleet.submit("append:10", "one")
    first = fleet.start_worker()
    fleet.wait(lambda: "begun" if "line-2" in fleet.read("one", "log.txt") else None)
    first.kill()
    fleet.start_worker()
    assert fleet.wait_for("one") == "idle"
    check_run(fleet, "one")


def test_a_worker_that_was_stopped_writes_nothing_and_ends(fleet: Fleet, deep: bool) -> None:
    if not deep:
        pytest.skip("in a deep run")
    fleet.submit("append:20", "one")
    first = fleet.start_worker()
    fleet.wait(lambda: "begun" if "line-2" in fleet.read("one", "log.txt") else None)
    first.send_signal(signal.SIGSTOP)
    fleet.start_worker()
    fleet.wait(lambda: "taken" if "line-12" in fleet.read("one", "log.txt") else None)
    first.send_signal(signal.SIGCONT)
    assert first.wait(PATIENCE) == 75
    assert fleet.wait_for("one") == "idle"
    check_run(fleet, "one")


def test_workers_that_all_stood_still_lose_no_run(fleet: Fleet, deep: bool) -> None:
    """As on a machine that slept, or that had too much to do."""
    if not deep:
        pytest.skip("in a deep run")
    names = [f"run-{number}" for number in range(12)]
    for name in names:
        fleet.submit("append:4", name)
    for _ in range(2):
        fleet.start_worker()
    fleet.wait(lambda: "ready" if fleet.count_workers() == 2 else None)
    for _ in range(3):
        fleet.wait(lambda: "running" if fleet.sessions.list_sessions("running") else None)
        for worker in fleet.workers:
            worker.send_signal(signal.SIGSTOP)
        fleet.wait(lambda: "late" if fleet.measure_silence() > 2.5 else None)
        for worker in fleet.workers:
            worker.send_signal(signal.SIGCONT)
    for name in names:
        assert fleet.wait_for(name) == "idle"
        check_run(fleet, name)
    assert [worker.poll() for worker in fleet.workers] == [None, None]


def test_a_worker_that_is_asked_to_end_hands_its_run_over(fleet: Fleet) -> None:
    fleet.submit("hold", "one")
    first = fleet.start_worker()
    wait_for_command(fleet)
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE) == 0
    fleet.start_worker()
    assert fleet.wait_for("one") == "idle"
    check_run(fleet, "one")
    assert fleet.read("one", "log.txt") == "line-1\n"
    results = [event.result.ok for event in fleet.events("one") if isinstance(event, ToolCallEnd | ToolCallError)]
    assert results == [False, True]


def test_a_worker_sends_heartbeats_until_it_has_handed_its_runs_over(tmp_path: Path) -> None:
    with Fleet(tmp_path, dead_seconds=90) as fleet:  # so procrastinate sends none within the test
        fleet.submit("hold", "one")
        worker = fleet.start_worker()
        wait_for_command(fleet)
        worker.send_signal(signal.SIGTERM)
        beats: set[object] = set()

        def has_three() -> str | None:
            beats.update(fleet.list_heartbeats())
            return "alive" if len(beats) > 2 else None

        fleet.wait(has_three)
        assert worker.poll() is None


def test_a_run_that_kills_every_worker_is_given_up(fleet: Fleet, deep: bool) -> None:
    if not deep:
        pytest.skip("in a deep run")
    fleet.submit("die", "one")
    until = time.monotonic() + 100
    while fleet.sessions.find("one").state != "failed" and time.monotonic() < until:  # type: ignore[union-attr]
        fleet.start_worker()
        fleet.wait(lambda: "ended" if fleet.workers[-1].poll() is not None or _has_failed(fleet) else None)
    assert [event.message for event in fleet.events("one") if isinstance(event, Error)] == [
        "The turn was given up: 5 workers ended while they ran it, without any progress."
    ]


def test_a_running_turn_can_be_cancelled(fleet: Fleet) -> None:
    fleet.submit("sleep:100", "one")
    fleet.start_worker()
    fleet.wait_for("one", "running")
    assert fleet.sessions.cancel("one")
    assert fleet.wait_for("one") == "idle"
    assert [event.reason for event in fleet.events("one") if isinstance(event, End)] == ["cancelled"]
    assert not fleet.sessions.cancel("one")


def test_a_tenant_cannot_pass_its_limits(fleet: Fleet, tmp_path: Path) -> None:
    fleet.sessions.set_limits("small", TenantLimits(sessions=1))
    fleet.submit("append:1", "one", tenant="small")
    with pytest.raises(UsageError, match="limit of 1 sessions"):
        fleet.submit("append:1", "two", tenant="small")
    fleet.submit("append:1", "three", tenant="other")
    with pytest.raises(UsageError, match="open turn"):
        fleet.submit("append:1", "three", tenant="other")
    options = RunOptions(model="append:1", workspace=SharedFolder(str(tmp_path / "none")))
    fleet.sessions.submit("Go on.", options, session="nowhere")
    fleet.start_worker()
    assert fleet.wait_for("one") == fleet.wait_for("three") == "idle"
    assert fleet.wait_for("nowhere") == "failed"
    fleet.submit("append:1", "two", tenant="small")
    fleet.sessions.set_limits("small", TenantLimits(seconds=0.0))
    with pytest.raises(UsageError, match=r"limit of 0\.0 seconds"):
        fleet.submit("append:1", "four", tenant="small")


def test_runs_end_once_although_workers_die_and_the_database_restarts(tmp_path: Path, deep: bool) -> None:
    """The kill matrix: a worker is killed every second, one is stopped past its lease, the database restarts twice."""
    if not deep:
        pytest.skip("in a deep run")
    chance = random.Random(1)
    runs, workers = 60, 3
    server = postgres.Server()
    with Fleet(tmp_path, dead_seconds=15.0, server=server) as fleet:
        names = [f"run-{number}" for number in range(runs)]
        for number, name in enumerate(names):
            fleet.submit(f"append:{4 + number % 5}", name, mode="ask" if number % 3 == 0 else "auto")
        fleet.approve_everything()
        running = [fleet.start_worker() for _ in range(workers)]
        stopped = running[0]
        began, restarts = time.monotonic(), [3.0, 7.0]
        next_kill, until = 2.0, 900
        while len(fleet.sessions_ended(names)) < runs:
            passed = time.monotonic() - began
            assert passed < until, [one for one in names if one not in fleet.sessions_ended(names)]
            if passed >= next_kill and passed < 60:
                next_kill = passed + 1.0
                victim = chance.randrange(workers)
                if running[victim] is not stopped:
                    running[victim].kill()
            if stopped is running[0] and 2.0 < passed < 4.0:
                stopped.send_signal(signal.SIGSTOP)
            if restarts and passed >= restarts[0]:
                restarts.pop(0)
                server.stop()
                server.start()
            if passed > 25.0:
                stopped.send_signal(signal.SIGCONT)
            running = [one if one.poll() is None else fleet.start_worker() for one in running]
            time.sleep(0.2)
        for name in names:
            check_run(fleet, name)


def _has_failed(fleet: Fleet) -> bool:
    found = fleet.sessions.find("one")
    return found is not None and found.state == "failed"


def test_a_turn_that_was_given_up_with_open_calls_is_resumed_and_not_talked_over(fleet: Fleet) -> None:
    fleet.submit("append:1", "one", mode="ask")
    worker = fleet.start_worker()
    fleet.wait_for_request("one")
    fleet.wait_for("one", "waiting")
    worker.kill()
    with pytest.raises(UsageError, match="open turn"):
        fleet.submit("append:1", "one")
