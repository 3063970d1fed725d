"""The path of a framework's tool call: found again by its key, run once, and ended with its wait."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from parked_session import open_rail

from handrail import Answer, AsyncHandrail, Handrail, UsageError
from handrail.frameworks.calls import FrameworkCalls, WaitingCall, approve, describe_request
from handrail.protocol.results import ToolResult

APPEND = {"command": "echo ran >>runs"}


def must_wait(outcome: ToolResult[Any] | WaitingCall) -> WaitingCall:
    assert isinstance(outcome, WaitingCall)
    return outcome


def must_end(outcome: ToolResult[Any] | WaitingCall) -> ToolResult[Any]:
    assert not isinstance(outcome, WaitingCall)
    return outcome


def test_nothing_of_the_frameworks_is_imported_with_the_library() -> None:
    program = (
        "import sys, handrail; handrail.Handrail; handrail.AsyncHandrail; handrail.Agent\n"
        "print([name for name in sys.modules if name.startswith('handrail.frameworks')])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


def test_a_waiting_call_is_found_again_by_another_process_and_its_preview_is_committed(
    rail: Handrail, workspace: Path, tmp_path: Path
) -> None:
    shown = must_wait(FrameworkCalls(rail).run("exec", APPEND, "call/1"))
    assert not (workspace / "runs").exists()
    with open_rail(workspace, tmp_path) as other:
        calls = FrameworkCalls(other)
        again = must_wait(calls.run("exec", APPEND, "call/1"))
        assert (again.request.id, again.view) == (shown.request.id, "shown")
        assert must_end(calls.run_approved("exec", APPEND, "call/1")).ok
    assert (workspace / "runs").read_text() == "ran\n"


def test_the_result_of_a_call_that_was_answered_elsewhere_is_given_once(workspace: Path, tmp_path: Path) -> None:
    with open_rail(workspace, tmp_path) as rail:
        calls = FrameworkCalls(rail)
        request = must_wait(calls.run("exec", APPEND, "call_1")).request
        rail.answer(request, "once")
        assert must_end(calls.run("exec", APPEND, "call_1")).tool_call_id == request.tool_call_id
    with open_rail(workspace, tmp_path) as rail:  # the key is a new call now
        assert must_wait(FrameworkCalls(rail).run("exec", APPEND, "call_1")).request.id != request.id
    assert (workspace / "runs").read_text() == "ran\n"


def test_an_approval_counts_only_for_arguments_that_were_shown(rail: Handrail, workspace: Path) -> None:
    calls = FrameworkCalls(rail)
    must_wait(calls.run("exec", APPEND, "call_1"))
    changed = must_wait(calls.run_approved("exec", {"command": "echo other >>runs"}, "call_1"))
    assert changed.view == "new"
    assert not (workspace / "runs").exists()


def test_an_approval_does_not_count_for_a_command_that_another_person_edited_since(
    rail: Handrail, workspace: Path
) -> None:
    calls = FrameworkCalls(rail)
    request = must_wait(calls.run("exec", APPEND, "call_1")).request
    rail.retry(request.id, "echo edited >>runs")
    edited = must_wait(calls.run_approved("exec", APPEND, "call_1"))
    assert (edited.view, edited.request.command) == ("changed", "echo edited >>runs")
    assert not (workspace / "runs").exists()
    assert must_end(calls.run_approved("exec", APPEND, "call_1")).ok, "now it was shown"
    assert (workspace / "runs").read_text() == "edited\n"


def test_a_call_that_the_framework_rejected_is_denied_with_its_reason(rail: Handrail) -> None:
    calls = FrameworkCalls(rail)
    request = must_wait(calls.run("exec", APPEND, "call_1")).request
    must_wait(calls.run("exec", APPEND, "call/2"))
    calls.deny_rejected(lambda name, key: f"no {name}" if key == "call_1" else None)
    assert [one.id for one in rail.waiting()] != [request.id]
    assert len(rail.waiting()) == 1
    result = rail.call("exec", {}, tool_call_id=request.tool_call_id)
    assert result.error is not None
    assert (result.error.code, "no exec" in result.content) == ("PERMISSION_DENIED", True)
    must_wait(calls.run("exec", APPEND, "call_1"))  # the denied one is forgotten


def test_a_repeated_call_of_a_unique_key_runs_nothing(rail: Handrail, workspace: Path) -> None:
    calls = FrameworkCalls(rail)
    rail.set_mode("full")
    first = must_end(calls.run_once("exec", APPEND, "task call_1"))
    assert must_end(calls.run_once("exec", APPEND, "task call_1")) == first
    assert (workspace / "runs").read_text() == "ran\n"


def test_an_answer_that_the_request_does_not_take_is_an_error(rail: Handrail) -> None:
    calls = FrameworkCalls(rail)
    waiting = must_wait(calls.run("write", {"path": "a.txt", "content": "x"}, "call_1"))
    with pytest.raises(UsageError, match="can be answered with"):
        calls.answer(waiting, Answer(kind="output"))
    rail.answer(waiting.request, "deny", reason="first")
    denied = must_end(calls.answer(waiting, approve(waiting.request)))
    assert "first" in denied.content, "the answer from elsewhere counts"


def test_a_request_is_described_as_json_without_characters_that_control_a_terminal(rail: Handrail) -> None:
    arguments = {"path": "a.txt", "content": "red \x1b[31m\n"}
    described = describe_request(must_wait(FrameworkCalls(rail).run("write", arguments, "call_1")).request)
    assert json.loads(json.dumps(described)) == described
    assert "\x1b" not in described["text"]
    assert "a.txt" in described["text"]


def test_cancelling_the_wait_ends_the_call(rail: Handrail, workspace: Path) -> None:
    rail.set_mode("full")

    async def cancel(calls: FrameworkCalls, run: Any, key: str) -> None:
        begun, loop = asyncio.Event(), asyncio.get_running_loop()
        stop = rail.subscribe(lambda _event: loop.call_soon_threadsafe(begun.set))
        task = asyncio.create_task(calls.run_in_pool(run, "exec", {"command": "sleep 60; echo ran >>runs"}, key))
        waiting = asyncio.create_task(begun.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        stop()
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def play() -> None:
        calls = FrameworkCalls(AsyncHandrail(rail))
        await cancel(calls, calls.run, "call_1")
        await cancel(calls, calls.run_once, "task call_2")
        await cancel(calls, calls.run_once, "task call_2")  # it starts again, instead of giving the first result

    started = time.monotonic()
    asyncio.run(play())
    assert time.monotonic() - started < 30
    assert not (workspace / "runs").exists()
