"""One call is ended, wherever it is on its way, and no other."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handrail import Context, Handrail, tool
from handrail.protocol.events import ToolCallRunning
from handrail.runtime.session import CancelTokens

Make = Callable[..., Handrail]
PATIENCE = 30.0


class Held:
    """A tool that waits until its call is cancelled or the test lets it go; it tells who is inside."""

    def __init__(self, *, looks: bool) -> None:
        self.inside: dict[str, threading.Event] = {}
        self.free = threading.Event()

        @tool(read_only=looks, auto_execute=True)
        def hold(context: Context) -> str:
            """Waits."""
            self.of(context.tool_call_id).set()
            while not self.free.wait(0.005):
                context.check_cancelled()
            return "went on"

        self.tool = hold

    def of(self, call_id: str) -> threading.Event:
        return self.inside.setdefault(call_id, threading.Event())


def code(result: Any) -> str | None:
    return result.error.code if result.error else None


def started(rail: Handrail, held: Held, pool: ThreadPoolExecutor) -> tuple[str, Future[Any]]:
    """A call that waits inside of the tool."""
    call_id = rail.new_call_id()
    future = pool.submit(rail.call, "hold", {}, tool_call_id=call_id)
    assert held.of(call_id).wait(PATIENCE)
    return call_id, future


def test_a_running_call_ends_and_those_beside_it_go_on(rail: Make) -> None:
    held = Held(looks=True)
    one = rail(mode="full", tools=[held.tool])
    with ThreadPoolExecutor(3) as pool:
        calls = [started(one, held, pool) for _ in range(3)]
        assert one.cancel_call(calls[1][0])
        assert code(calls[1][1].result(PATIENCE)) == "CANCELLED"
        held.free.set()
        assert [calls[number][1].result(PATIENCE).content for number in (0, 2)] == ["went on"] * 2
    assert not any(one.cancel_call(call_id) for call_id, _ in calls), "they are over"


def test_a_call_that_waits_for_its_turn_ends_and_the_one_before_it_goes_on(rail: Make) -> None:
    held = Held(looks=False)
    one = rail(mode="full", tools=[held.tool])
    with ThreadPoolExecutor(2) as pool:
        _, first = started(one, held, pool)
        waits = one.new_call_id()
        second = pool.submit(one.call, "hold", {}, tool_call_id=waits)
        assert one.cancel_call(waits)
        result = second.result(PATIENCE)
        assert (code(result), result.error.message) == ("CANCELLED", "The call was cancelled. Nothing was run.")
        held.free.set()
        assert first.result(PATIENCE).ok
    assert waits not in held.inside, "it never ran"


def test_a_call_that_waits_for_a_session_in_another_object_ends(rail: Make) -> None:
    held = Held(looks=False)
    one, other = (rail(mode="full", session="s", tools=[held.tool]) for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        _, first = started(one, held, pool)
        waits = other.new_call_id()
        second = pool.submit(other.call, "hold", {}, tool_call_id=waits)
        assert other.cancel_call(waits)
        assert code(second.result(PATIENCE)) == "CANCELLED"
        held.free.set()
        assert first.result(PATIENCE).ok


def test_a_command_is_gone_with_its_call(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    runs = threading.Event()
    one.subscribe(lambda event: runs.set() if isinstance(event, ToolCallRunning) else None)
    call_id = one.new_call_id()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(one.call, "exec", {"command": "sleep 600; touch late"}, tool_call_id=call_id)
        assert runs.wait(PATIENCE)
        assert one.cancel_call(call_id)
        result = future.result(PATIENCE)
    assert code(result) == "CANCELLED"
    assert not (workspace / "late").exists()
    assert one.exec("echo still here").ok


def test_a_call_that_was_cancelled_before_it_began_does_nothing(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    call_id = one.new_call_id()
    assert one.cancel_call(call_id)
    result = one.call("write", {"path": "a.txt", "content": "x"}, tool_call_id=call_id)
    assert code(result) == "CANCELLED"
    assert not (workspace / "a.txt").exists()


def test_an_id_that_was_dropped_is_no_calls_any_more(rail: Make) -> None:
    one = rail()
    call_id = one.new_call_id()
    one.drop_call_id(call_id)
    assert not one.cancel_call(call_id)
    assert not one.cancel_call("call-of-somebody-else")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["begin", "end", "cancel", "reserve"])), max_size=30))
def test_cancelling_one_id_says_nothing_of_another(steps: list[tuple[str, str]]) -> None:
    """Whatever happens to the others, an id is to end only if it was cancelled while it was here."""
    together = CancelTokens()
    alone = {name: CancelTokens() for name in "abc"}
    for name, step in steps:
        for one in (together, alone[name]):
            if step in {"begin", "end"}:
                getattr(one, step)([name])
            else:
                getattr(one, step)(name)
        assert [other in together.requested for other in "abc"] == [other in alone[other].requested for other in "abc"]
