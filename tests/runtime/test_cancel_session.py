"""Cancelled and interrupted calls: each has its result, whatever was interrupted."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Context, Handrail, Parked, ToolCall, UsageError, tool
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallStart
from handrail.settings import Settings
from handrail.state import StoredState
from handrail.store.audit import decode_record

Make = Callable[..., Handrail]


def code(result: Any) -> str | None:
    return result.error.code if result.error else None


def call(call_id: str, name: str, **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def ends(rail: Handrail) -> dict[str, str | None]:
    return {
        event.tool_call_id: code(event.result)
        for event in rail.events()
        if isinstance(event, ToolCallEnd | ToolCallError)
    }


def audited(tmp_path: Path) -> dict[str, str | None]:
    lines = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    records = [found[0] for line in lines if (found := decode_record(line))]
    assert len({record.tool_call_id for record in records}) == len(records)
    return {record.tool_call_id: record.error_code for record in records}


def test_a_cancelled_session_ends_what_runs_and_refuses_what_comes(rail: Make, workspace: Path) -> None:
    inside = threading.Event()

    @tool
    def long(context: Context) -> str:
        """Works until it is cancelled."""
        inside.set()
        while True:
            context.check_cancelled()

    with rail(mode="full", session="s", tools=[long]) as one, ThreadPoolExecutor(2) as pool:
        running = pool.submit(one.call, "long", {})
        assert inside.wait(60)
        waiting = pool.submit(one.write, "a.txt", "x")
        one.cancel()
        assert code(running.result(timeout=40)) == "CANCELLED"
        assert code(waiting.result(timeout=40)) == "CANCELLED"
        assert code(one.ls()) == "CANCELLED"
        assert code(one.write("a.txt", "x")) == "CANCELLED"
    assert not (workspace / "a.txt").exists()
    with rail(session="s") as one:
        assert one.ls().ok


def test_a_wait_for_a_lock_that_is_cancelled_is_cancelled_not_a_conflict(rail: Make) -> None:
    from handrail.runtime.locks import Locks

    one = rail()
    lock = Locks(one._session.locks._folder).of(f"file:{one.workspace}/a.txt")
    assert lock.take(0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.write, "a.txt", "x")
        one.cancel()
        assert code(waiting.result(timeout=40)) == "CANCELLED"
    lock.release()


@tool
def interrupted(context: Context) -> str:
    """Is at work when the person presses Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)
    while not context.cancelled():
        threading.Event().wait(0.01)
    return "x"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_of_a_tool_is_written_down_and_goes_on(
    rail: Make, tmp_path: Path, kind: type[BaseException]
) -> None:
    def interrupt(*_: Any) -> None:
        raise kind

    before = signal.signal(signal.SIGINT, interrupt)
    one = rail(mode="full", tools=[interrupted])
    try:
        with pytest.raises(kind):
            one.call("interrupted", {}, tool_call_id="x")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ends(one) == audited(tmp_path) == {"x": "CANCELLED"}
    again = one.call("interrupted", {}, tool_call_id="x")
    assert code(again) == "CANCELLED"
    assert "Its effects are unknown. Check before you repeat it." in again.summary
    assert one.write("a.txt", "x").ok


def test_an_interrupt_cancels_the_rest_of_the_batch(rail: Make, tmp_path: Path, workspace: Path) -> None:
    calls = [call("a", "ls", path="."), call("b", "interrupted"), call("c", "write", path="c.txt", content="x")]
    one = rail(mode="full", tools=[interrupted])
    with pytest.raises(KeyboardInterrupt):
        one.batch(calls)
    expected = {"a": None, "b": "CANCELLED", "c": "CANCELLED"}
    assert ends(one) == audited(tmp_path) == expected
    assert not (workspace / "c.txt").exists()


def test_an_interrupt_cancels_the_rest_of_a_resumed_batch(rail: Make, tmp_path: Path, workspace: Path) -> None:
    one = rail(mode="ask", session="s", tools=[interrupted])
    outcome = one.batch([call("b", "interrupted"), call("c", "write", path="c.txt", content="x")])
    assert isinstance(outcome, Parked)
    one.answer(outcome.requests[0].id, "once")
    with pytest.raises(KeyboardInterrupt):
        one.answer(outcome.requests[1].id, "once")
    assert ends(one) == audited(tmp_path) == {"b": "CANCELLED", "c": "CANCELLED"}
    one.close()
    with rail(session="s") as one:
        assert ends(one) == {"b": "CANCELLED", "c": "CANCELLED"}
    assert not (workspace / "c.txt").exists()


VICTIM = """
import os, signal, sys
from handrail import Handrail
from handrail.settings import Settings
workspace, state = sys.argv[1:]
returned, calls, inside, missed = [], 0, False, False

def noticed():
    sys.stdout.write("interrupted\\n"); sys.stdout.flush()

def interrupt(*_):
    global missed
    if inside:
        raise KeyboardInterrupt
    missed = True

with Handrail(workspace, mode="auto", session="s", state_dir=state, settings=Settings()) as rail:
    # What is imported on first use is imported by now: an interrupt inside importlib's own callbacks is lost in Python,
    # and one inside the eval() that makes a named tuple (difflib has one) ends the program at its exit, handled or not.
    rail.write("0.txt", "first"), rail.read("0.txt"), rail.write("0.txt", "second")
    signal.signal(signal.SIGINT, interrupt)
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    while not os.path.exists(os.path.join(workspace, "stop")):
        calls += 1
        if missed:
            missed = False
            noticed()
        try:
            inside = True
            path = f"{calls % 5}.txt"
            result = rail.write(path, "x" * (calls % 1000)) if calls % 3 else rail.read(path)
            inside = False
            returned.append(result.tool_call_id)
        except KeyboardInterrupt:
            inside = False
            noticed()
print(" ".join(returned))
"""


def test_interrupts_at_any_moment_leave_one_result_and_one_record_a_call(
    tmp_path: Path, workspace: Path, count: Callable[[int], int]
) -> None:
    """Real signals from outside, each sent when the one before was noticed."""
    state = tmp_path / "state"
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, workspace, state], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    assert victim.stdout.readline() == "ready\n"
    draw = random.Random(3)
    for _ in range(count(500)):
        until = time.perf_counter() + draw.random() * 0.002
        while time.perf_counter() < until:  # the moment is the point: this waits for nothing
            pass
        os.kill(victim.pid, signal.SIGINT)
        line = victim.stdout.readline()
        assert line == "interrupted\n", victim.communicate()
    (workspace / "stop").touch()
    output, errors = victim.communicate(timeout=60)
    assert (victim.returncode, errors) == (0, "")
    returned = output.split()
    with Handrail(workspace, session="s", state_dir=state, settings=Settings()) as rail:
        events = list(rail.events())
    started = [event.tool_call_id for event in events if isinstance(event, ToolCallStart)]
    finished = Counter(event.tool_call_id for event in events if isinstance(event, ToolCallEnd | ToolCallError))
    assert finished == Counter(started)
    assert set(returned) <= set(started)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    verification = StoredState(str(state)).verify()
    assert (verification.problems, verification.records) == ((), len(started))
    assert set(audited(tmp_path)) == set(started)
    assert not [path for path in workspace.iterdir() if path.name.startswith(".handrail-")]
    print(f"\ninterrupts: {count(500)}, calls {len(started)}, cut short {len(set(started) - set(returned))}")


def test_close_waits_for_calls_that_are_on_their_way(rail: Make, tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Waits."""
        inside.set()
        assert go_on.wait(60)
        return "done"

    one = rail(mode="full", session="s", tools=[slow])
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(one.call, "slow", {})
        assert inside.wait(60)
        closing = pool.submit(one.close)
        while not one._closed:
            pass
        with pytest.raises(UsageError, match="closed"):
            one.ls()
        assert not closing.done()
        go_on.set()
        assert running.result().ok
        closing.result()
    assert len(audited(tmp_path)) == 1
    one.close()


def test_a_closed_handrail_says_so(rail: Make) -> None:
    one = rail(mode="ask")
    one.write("a.txt", "x")
    [request] = one.waiting()
    one.close()
    for use in (one.ls, lambda: one.batch([]), lambda: one.answer(request.id, "once")):
        with pytest.raises(UsageError, match="closed"):
            use()


def test_it_cannot_be_closed_from_inside_a_call(rail: Make) -> None:
    @tool(read_only=True, auto_execute=True)
    def closes() -> str:
        """Closes the session it runs in."""
        try:
            one.close()
        except UsageError as error:
            return str(error)
        return "closed"

    one = rail(tools=[closes])
    assert "from inside" in one.call("closes", {}).content
    assert one.ls().ok
