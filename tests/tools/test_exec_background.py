"""exec that lets its command go on: at once, or when it takes longer than the call waits."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from background import SECONDS, asked, ended, polled_until, started

from handrail import Handrail
from handrail.process.sessions.sessions import ProcessSession
from handrail.process.sessions.store import read_record
from handrail.protocol.events import Process, ToolCallUpdate
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Limits, Restricted, Results
from in_time import cut_short

Make = Callable[..., Handrail]


@pytest.fixture
def full(rail: Make) -> Handrail:
    return rail(mode="full")


def code(result: Any) -> str:
    assert result.error is not None, result.content
    return result.error.code


def told(rail: Handrail) -> list[str]:
    return [event.state for event in rail.events() if isinstance(event, Process)]


# background


def test_it_returns_at_once_with_the_id_and_what_to_do_next(full: Handrail) -> None:
    result = full.exec("touch made; sleep 1000", background=True)
    assert result.ok
    data = result.data
    assert data is not None
    assert data.exit_code is None
    assert data.session_id is not None
    assert len(data.session_id) == 22
    assert f'process {{"action": "poll", "sessionId": "{data.session_id}"}}' in result.content
    assert "undo does not cover its changes" in result.content
    assert result.meta.sandbox is not None
    assert result.meta.sandbox.tier == 2
    assert result.artifacts.commands_run == ("touch made; sleep 1000",)
    assert told(full) == ["started"]


def test_the_session_goes_on_beside_it(full: Handrail, workspace: Path) -> None:
    process = started(full, "until test -e go; do sleep 0.01; done; echo gone")
    assert full.exec("touch go").ok
    assert "gone\n" in polled_until(full, process, "gone\n")
    assert ended(full, process).exit_code == 0


def test_it_runs_where_it_is_told(full: Handrail, workspace: Path) -> None:
    (workspace / "src").mkdir()
    process = started(full, "pwd", cwd="src")
    assert ended(full, process).cwd == "src"
    assert asked(full, "log", process).content == f"{workspace}/src\n"


@pytest.mark.parametrize("mode", ["plan", "ask", "auto"])
def test_it_asks_even_for_what_only_looks(rail: Make, mode: str) -> None:
    one = rail(mode=mode)
    result = one.exec("cat", background=True)
    assert code(result) == ("POLICY_DENIED" if mode == "plan" else "PERMISSION_REQUIRED")
    assert result.error is not None
    assert result.error.details["rule"] == "exec.background"
    for request in one.waiting():
        assert request.background
    assert one.processes() == ()


def test_what_was_asked_about_is_what_goes_on(rail: Make) -> None:
    one = rail(mode="ask", on_permission=lambda _: "once")
    assert asked(one, "list").data.processes == ()
    process = started(one, "cat")
    assert [record.id for record in one.processes()] == [process]


@pytest.mark.parametrize("more", [{"background": True}, {"yieldMs": 10}])
def test_the_restricted_profile_leaves_nothing_running(rail: Make, more: dict[str, Any]) -> None:
    one = rail(mode="full", settings=Settings(profile="restricted", restricted=Restricted(commands=("cat",))))
    result = one.call("exec", {"command": "cat", **more})
    assert code(result) == "POLICY_DENIED"
    assert one.processes() == ()


def test_so_many_run_at_once_and_no_more(rail: Make) -> None:
    one = rail(mode="full", settings=Settings(limits=Limits(sessions=2)))
    first, _ = started(one, "cat"), started(one, "cat")
    refused = one.exec("cat", background=True)
    assert code(refused) == "LIMIT_EXCEEDED"
    assert "process kill" in refused.content
    asked(one, "kill", first)
    started(one, "cat")


def test_one_that_prints_nothing_and_that_nobody_asks_about_ends(rail: Make) -> None:
    one = rail(mode="full", settings=Settings(limits=Limits(idle="1 s")))
    process = started(one, "sleep 1000")
    assert ended(one, process).reason == "idle"
    assert "limits.idle" in asked(one, "poll", process).content


# yieldMs


def test_what_ends_in_time_is_an_ordinary_result(full: Handrail) -> None:
    result = full.exec("echo out; echo err >&2; exit 3", yield_ms=60_000)
    assert result.ok
    assert result.data is not None
    assert (result.data.output, result.data.exit_code, result.data.session_id) == ("out\nerr\n", 3, None)
    assert result.content == "out\nerr\n[exit code 3]\n"
    assert full.processes() == ()
    assert told(full) == []


def yielded(full: Handrail, command: str, **more: Any) -> ToolResult[Any]:
    """What is told of a command that goes on, once it had the time to print something."""

    def run_for(milliseconds: int) -> ToolResult[Any]:
        for process in full.processes():
            asked(full, "kill", process.id)
        result = full.exec(command, yield_ms=milliseconds, **more)
        assert result.data is not None
        return result

    return cut_short(run_for, 1_000, lambda result: result.data.output)[0]


def test_what_takes_longer_goes_on_with_what_it_has_printed(full: Handrail) -> None:
    result = yielded(full, "stty -echo; echo first; read; echo second")
    assert (result.data.output, result.data.exit_code) == ("first\n", None)
    process = result.data.session_id
    assert process
    asked(full, "write", process, data="go\n")
    assert polled_until(full, process, "second\n") == "second\n"


def test_it_changes_nothing_about_the_decision_and_the_request_says_so(rail: Make) -> None:
    one = rail(mode="ask")
    looked = one.exec("cat", yield_ms=0)
    assert looked.ok, looked.error
    asking = one.exec("make", yield_ms=0)
    assert code(asking) == "PERMISSION_REQUIRED"
    [request] = one.waiting()
    assert request.preview is not None
    assert "yieldMs" in request.preview.text
    assert not request.background  # what it changes goes into its layer
    assert request.rule != "exec.background"


def test_background_with_a_time_waits_for_the_first_words(full: Handrail) -> None:
    result = yielded(full, "echo ready; cat", background=True)
    assert result.data.output == "ready\n"


def test_a_time_limit_that_comes_first_ends_it(full: Handrail) -> None:
    def run_for(milliseconds: int) -> ToolResult[Any]:
        return full.exec("echo begun; sleep 1000", yield_ms=60_000, timeout_ms=milliseconds)

    result, _ = cut_short(run_for, 500, lambda result: result.data is not None and result.data.output)
    assert code(result) == "TIMEOUT"
    assert result.data is not None
    assert result.data.output == "begun\n"
    assert result.meta.limits == ("time",)
    assert full.processes() == ()


def test_cancelling_the_call_ends_it(full: Handrail) -> None:
    begun = threading.Event()
    full.subscribe(lambda event: begun.set() if isinstance(event, ToolCallUpdate) else None)
    results: list[Any] = []
    call = threading.Thread(
        target=lambda: results.append(full.exec("while echo on; do sleep 0.1; done", yield_ms=600_000))
    )
    call.start()
    assert begun.wait(SECONDS)
    full.cancel()
    call.join(SECONDS)
    assert code(results[0]) == "CANCELLED"
    assert full.processes() == ()


def kill_keeper(process: ProcessSession) -> None:
    record = read_record(process.folder)
    assert record is not None
    os.kill(record.keeper.number, signal.SIGKILL)


@pytest.mark.parametrize("harm", [kill_keeper, ProcessSession.remove], ids=["its keeper is killed", "it is removed"])
def test_what_somebody_ends_while_its_call_waits_is_not_said_never_to_have_run(
    full: Handrail, tmp_path: Path, harm: Callable[[ProcessSession], None]
) -> None:
    begun = threading.Event()
    full.subscribe(lambda event: begun.set() if isinstance(event, ToolCallUpdate) else None)
    results: list[Any] = []
    command = "while echo on; do sleep 0.1; done"
    call = threading.Thread(target=lambda: results.append(full.exec(command, yield_ms=600_000)))
    call.start()
    assert begun.wait(SECONDS)
    [folder] = tmp_path.glob("state/**/processes/p-*")
    harm(ProcessSession(str(folder)))
    call.join(SECONDS)
    assert "Nothing was run" not in results[0].content
    assert results[0].ok or code(results[0]) == "INTERRUPTED"  # it may be seen to have ended before it is removed
    assert full.processes() == ()


def test_a_limit_that_ends_it_is_named(rail: Make) -> None:
    one = rail(mode="full", settings=Settings(limits=Limits(processes=8)))
    result = one.exec("for n in $(seq 30); do sleep 60 & done; wait", yield_ms=60_000)
    assert code(result) == "LIMIT_EXCEEDED"
    assert "limits.processes" in result.content


def test_very_much_in_time_is_kept_aside_whole(rail: Make) -> None:
    one = rail(mode="full", settings=Settings(results=Results(characters=2_000), limits=Limits(output="64 KB")))
    result = one.exec("seq 1 200000", yield_ms=120_000)
    assert result.ok, result.error
    assert result.meta.output is not None
    page = one.read(result.meta.output, offset=-1)
    assert (page.content, page.meta.total) == ("200000\n", 200_000)


def test_very_much_at_the_hand_over_comes_in_order(rail: Make) -> None:
    one = rail(mode="full", settings=Settings(results=Results(characters=2_000)))
    result = one.exec("seq 1 2000; sleep 1000", yield_ms=500)
    assert result.data is not None
    assert result.data.session_id
    assert len(result.content) <= 2_000
    rest = polled_until(one, result.data.session_id, "2000\n")
    assert result.data.output + rest == "".join(f"{n}\n" for n in range(1, 2_001))


def test_the_oldest_that_have_ended_are_forgotten(full: Handrail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.runtime.background._MAX_ENDED_SESSIONS", 2)
    processes = []
    for _ in range(3):
        processes.append(started(full, "true"))
        ended(full, processes[-1])
    processes.append(started(full, "cat"))
    assert [record.id for record in full.processes()] == processes[1:]
    assert told(full).count("removed") == 1
