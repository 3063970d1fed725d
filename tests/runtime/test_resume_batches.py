"""A batch that everything is answered of, whose process was killed: the rest is run once, and nobody is asked again."""

import itertools
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from handrail import Done, Handrail, Parked, ToolCall, UsageError
from handrail.protocol.errors import StoreError
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallPermissionRequired, get_event_kind
from handrail.protocol.results import ToolResult
from handrail.store.state_dir import StateFolder
from handrail.store.verify import verify

Make = Callable[..., Handrail]

KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from handrail import Handrail, ToolCall, tool
from handrail.settings import Settings
workspace, state, refused = sys.argv[1:]

@tool
def die() -> str:
    "Ends the process."
    sys.stdout.write("inside\\n"); sys.stdout.flush()
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
    return ""

def call(id, name, **args):
    return ToolCall(tool_call_id=id, name=name, args=args, trace_id=id, timestamp=datetime.now(UTC))

def write(id, path, content):
    return call(id, "write", path=path, content=content)

rail = Handrail(workspace, mode="ask", session="s", state_dir=state, settings=Settings(), tools=[die])
begin = [write("a", "a.txt", "1"), call("d", "die")]
calls = [*begin, write("b", "a.txt", "2"), call("r", "read", path="a.txt"), write("c", "c", "3")]
for request in rail.batch(calls).requests:
    rail.answer(request.id, "deny" if request.tool_call_id == refused else "once")
"""
WAYS = ("resume", "batch", "call", "answer")


def write(call_id: str, path: str, content: str = "x") -> ToolCall:
    args = {"path": path, "content": content}
    return ToolCall(tool_call_id=call_id, name="write", args=args, trace_id=call_id, timestamp=datetime.now(UTC))


CALLS = [
    write("a", "ignored"),
    write("d", "ignored"),
    write("b", "ignored"),
    write("r", "ignored"),
    write("c", "ignored"),
]
"""What counts of a call that is known already is its id."""


@pytest.fixture
def victim(workspace: Path, tmp_path: Path) -> Callable[..., "subprocess.Popen[bytes]"]:
    """A process that has answered everything and is inside the second of five calls; a line to it kills it."""

    def start(refused: str = "") -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", KILLED, workspace, tmp_path / "state", refused]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"inside\n"
        return process

    return start


def end(process: "subprocess.Popen[bytes]") -> None:
    process.communicate(b"die\n", timeout=60)
    assert process.returncode == -signal.SIGKILL


def codes(results: tuple[ToolResult[Any], ...]) -> dict[str, str | None]:
    return {result.tool_call_id: result.error.code if result.error else None for result in results}


def written(rail: Handrail) -> dict[str, str | None]:
    ends = [event.result for event in rail.events() if isinstance(event, ToolCallEnd | ToolCallError)]
    assert len({result.tool_call_id for result in ends}) == len(ends)
    return codes(tuple(ends))


def go_on(rail: Handrail, way: str) -> None:
    """Each way to say that the batch should go on."""
    if way == "resume":
        outcome = rail.resume()
        assert outcome is not None
        assert list(codes(outcome.results)) == ["a", "d", "b", "r", "c"]
    elif way == "batch":
        assert isinstance(rail.batch(CALLS), Done)
    elif way == "call":
        assert rail.call("read", {}, tool_call_id="r").content == "2"
    else:
        assert isinstance(rail.answer(asked(rail)["b"], "once"), Done)


def asked(rail: Handrail) -> dict[str, str]:
    """The requests that were made, by their calls; each call was asked about at most once."""
    requests = [event.permission_request for event in rail.events() if isinstance(event, ToolCallPermissionRequired)]
    assert max(Counter(request.tool_call_id for request in requests).values()) == 1
    return {request.tool_call_id: request.id for request in requests}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_answered_and_not_begun_is_run_once_by_whoever_asks_for_it(
    rail: Make, workspace: Path, tmp_path: Path, victim: Any, way: str
) -> None:
    end(victim())
    with rail(mode="ask", session="s") as one:
        assert written(one) == {"a": None, "d": "INTERRUPTED"}
        assert one.waiting() == ()
        go_on(one, way)
        assert written(one) == {"a": None, "d": "INTERRUPTED", "b": None, "r": None, "c": None}
        # The second write was approved on top of the first, which another process made.
        assert ((workspace / "a.txt").read_text(), (workspace / "c").read_text()) == ("2", "3")
        assert set(asked(one)) == {"a", "d", "b", "c"}
        assert one.resume() is None
        assert isinstance(one.batch(CALLS), Done)
        with pytest.raises(UsageError, match="answered already"):
            one.answer(asked(one)["b"], "once")
        assert Counter(get_event_kind(event) for event in one.events())["tool_call.running"] == 4
    assert verify(StateFolder(str(tmp_path / "state"))).records == 5
    assert not list((tmp_path / "state").rglob("*.runner*"))


def test_a_session_may_be_left_with_what_is_ready_and_found_with_it(rail: Make, victim: Any, tmp_path: Path) -> None:
    end(victim())
    for _ in range(2):
        with rail(mode="ask", session="s") as one:
            assert written(one) == {"a": None, "d": "INTERRUPTED"}
        assert not list((tmp_path / "state").rglob("*.runner*"))
    with rail(mode="ask", session="s") as one:
        go_on(one, "resume")


def test_another_answer_than_the_one_that_counts_changes_nothing(rail: Make, workspace: Path, victim: Any) -> None:
    end(victim())
    one = rail(mode="ask", session="s")
    with pytest.raises(UsageError, match="answered already"):
        one.answer(asked(one)["b"], "deny")
    assert "b" not in written(one)
    go_on(one, "answer")
    assert written(one)["b"] is None


def test_a_no_holds_also_when_the_rest_is_run_later(rail: Make, workspace: Path, victim: Any) -> None:
    end(victim("b"))
    one = rail(mode="full", session="s")
    go_on(one, "resume")
    assert written(one)["b"] == "PERMISSION_DENIED"
    assert (workspace / "a.txt").read_text() == "1"


def test_a_yes_does_not_count_for_a_file_that_changed_before_the_rest_is_run(
    rail: Make, workspace: Path, victim: Any
) -> None:
    end(victim())
    (workspace / "c").write_text("somebody else's")
    one = rail(mode="ask", session="s")
    go_on(one, "resume")
    assert (written(one)["b"], written(one)["c"]) == (None, "CONFLICT")
    assert (workspace / "c").read_text() == "somebody else's"


@pytest.mark.parametrize("way", WAYS)
def test_a_session_that_was_open_all_the_while_can_go_on_with_it(rail: Make, victim: Any, way: str) -> None:
    one = rail(mode="ask", session="s")
    process = victim()
    assert one.resume() is None  # it is being run
    end(process)
    go_on(one, way)
    assert written(one) == {"a": None, "d": "INTERRUPTED", "b": None, "r": None, "c": None}


def test_who_waits_for_a_call_whose_process_is_killed_meanwhile_gets_its_result(
    rail: Make, workspace: Path, victim: Any
) -> None:
    one = rail(mode="ask", session="s")
    one._session.lock_seconds = 60.0
    process = victim()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.batch, CALLS)
        end(process)
        outcome = waiting.result(60)
    assert isinstance(outcome, Done)
    assert codes(outcome.results) == {"a": None, "d": "INTERRUPTED", "b": None, "r": None, "c": None}


def test_of_several_who_go_on_with_it_at_once_one_does(rail: Make, workspace: Path, victim: Any) -> None:
    end(victim())
    several = [rail(mode="ask", session="s") for _ in range(4)]
    ready = threading.Barrier(len(several))

    def resume(one: Handrail) -> bool:
        ready.wait()
        return one.resume() is not None

    with ThreadPoolExecutor(len(several)) as pool:
        assert sorted(pool.map(resume, several)) == [False, False, False, True]
    assert written(several[0]) == {"a": None, "d": "INTERRUPTED", "b": None, "r": None, "c": None}


def test_what_a_process_cannot_go_on_with_another_can_while_it_lives(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask", session="s")
    parked = one.batch([write("a", "a.txt"), write("b", "b.txt")])
    assert isinstance(parked, Parked)
    one.answer(parked.requests[0].id, "once")
    one._session.chain.close()  # as when the disk is full: the first result cannot be added to the audit
    with pytest.raises(StoreError, match="audit"):
        one.answer(parked.requests[1].id, "once")
    assert written(one) == {"a": None}
    outcome = rail(mode="ask", session="s").resume()
    assert outcome is not None
    assert codes(outcome.results) == {"a": None, "b": None}
    assert (workspace / "b.txt").exists()


def test_where_nothing_was_left_there_is_nothing_to_go_on_with(rail: Make) -> None:
    one = rail(mode="ask")
    assert one.resume() is None
    one.write("a.txt", "x")
    assert one.resume() is None
    assert len(one.waiting()) == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_last_answer_runs_the_batch_in_whatever_order_they_come(
    rail: Make, workspace: Path, order: tuple[int, ...]
) -> None:
    one = rail(mode="ask")
    parked = one.batch([write(f"{number}", f"{number}.txt") for number in range(4)])
    assert isinstance(parked, Parked)
    for number in order[:-1]:
        left = one.answer(parked.requests[number].id, "deny" if number == 2 else "once")
        assert isinstance(left, Parked)
        assert list(workspace.iterdir()) == []
    outcome = one.answer(parked.requests[order[-1]].id, "deny" if order[-1] == 2 else "once")
    assert isinstance(outcome, Done)
    assert codes(outcome.results) == {"0": None, "1": None, "2": "PERMISSION_DENIED", "3": None}
    assert sorted(path.name for path in workspace.iterdir()) == ["0.txt", "1.txt", "3.txt"]


class _Interrupt:
    """Interrupts a thread at the call of that number of a function of ours."""

    def __init__(self, at: int) -> None:
        self._left, self.came = at, False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/handrail/" in frame.f_code.co_filename and not self.came:
            self._left -= 1
            self.came = not self._left
            if self.came:
                raise KeyboardInterrupt


def test_an_answer_that_is_interrupted_leaves_no_call_that_nobody_can_run(rail: Make, workspace: Path) -> None:
    """At every point from the answer to the first step of the call: it still waits, has its result, or can be run."""
    one = rail(mode="ask", session="s")
    for at in itertools.count(1):
        parked = one.batch([write(f"w{at}", f"{at}.txt")])
        assert isinstance(parked, Parked)
        interrupt = _Interrupt(at)
        sys.setprofile(interrupt)
        try:
            one.answer(parked.requests[0].id, "once")
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        if one.waiting():
            one.answer(parked.requests[0].id, "once")
        elif f"w{at}" not in written(one):
            assert one.resume() is not None, at
        result = written(one)[f"w{at}"]
        assert result == (None if (workspace / f"{at}.txt").exists() else "CANCELLED")
        if result == "CANCELLED":
            return
        assert interrupt.came
