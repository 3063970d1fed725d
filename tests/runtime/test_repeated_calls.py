"""The same tool_call_id again: the first result, and nothing runs."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, Tool, ToolCall, UsageError, tool
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallStart
from handrail.protocol.wire import encode
from handrail.state import StoredState

Make = Callable[..., Handrail]


def counter(**options: Any) -> tuple[Tool, list[str]]:
    """A tool that remembers each of its runs."""
    runs: list[str] = []

    @tool(**options)
    def count(word: str = "") -> dict[str, Any]:
        """Counts its runs."""
        runs.append(word)
        return {"run": len(runs), "word": word}

    return count, runs


def call(call_id: str, name: str = "count", **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


@pytest.mark.parametrize("options", [{}, {"read_only": True, "auto_execute": True}])
def test_the_first_result_comes_back_and_nothing_runs(rail: Make, options: dict[str, Any]) -> None:
    count, runs = counter(**options)
    one = rail(mode="full", tools=[count])
    first = one.call("count", {"word": "a"}, tool_call_id="x")
    for again in ({"word": "a"}, {"word": "b"}, {"wrong": 1}, None):
        assert encode(one.call("count", again, tool_call_id="x")) == encode(first)
    assert one.call("no_such_tool", {}, tool_call_id="x").name == "count"
    assert runs == ["a"]
    assert len([event for event in one.events() if isinstance(event, ToolCallStart)]) == 1


def test_it_comes_back_after_the_session_was_closed_and_opened(rail: Make) -> None:
    count, runs = counter()
    with rail(mode="full", session="s", tools=[count]) as one:
        first = one.call("count", {"word": "a"}, tool_call_id="x")
    with rail(mode="plan", session="s", tools=[count]) as one:
        assert one.call("count", {"word": "a"}, tool_call_id="x") == first
    with rail(session="s") as one:  # the tool is gone, its result is not
        assert encode(one.call("count", {}, tool_call_id="x")) == encode(first)
    assert runs == ["a"]


def test_results_of_base_tools_come_back_with_their_types(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("text\n")
    with rail(session="s") as one:
        first = one.call("read", {"path": "a.txt"}, tool_call_id="x")
    (workspace / "a.txt").write_text("other\n")
    with rail(session="s") as one:
        assert one.call("read", {"path": "a.txt"}, tool_call_id="x") == first
        assert one.read("a.txt").content == "other\n"


def test_a_refusal_comes_back_too(rail: Make) -> None:
    one = rail(mode="plan")
    first = one.call("write", {"path": "a", "content": "x"}, tool_call_id="x")
    one.set_mode("full")
    assert one.call("write", {"path": "a", "content": "x"}, tool_call_id="x") == first


def test_another_session_does_not_know_the_id(rail: Make) -> None:
    count, runs = counter()
    for session in ("one", "two"):
        with rail(mode="full", session=session, tools=[count]) as own:
            assert own.call("count", {"word": session}, tool_call_id="x").ok
    assert runs == ["one", "two"]


@pytest.mark.parametrize("options", [{}, {"read_only": True, "auto_execute": True}])
@pytest.mark.parametrize("sessions", ["one object", "two objects"])
def test_at_the_same_time_from_many_threads_it_runs_once(
    rail: Make, tmp_path: Path, options: dict[str, Any], sessions: str
) -> None:
    count, runs = counter(**options)
    one = rail(mode="full", session="s", tools=[count])
    other = one if sessions == "one object" else rail(mode="full", session="s", tools=[count])
    ready = threading.Barrier(8)

    def work(number: int) -> list[str]:
        seen = []
        for turn in range(10):
            ready.wait()
            own = (one, other)[number % 2]
            seen.append(encode(own.call("count", {"word": str(turn)}, tool_call_id=f"x{turn}")).decode())
        return seen

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert [set(turn) for turn in zip(*results, strict=True)] == [{first} for first in results[0]]
    assert sorted(runs) == sorted(str(turn) for turn in range(10))
    ends = [event for event in one.events() if isinstance(event, ToolCallEnd | ToolCallError)]
    assert len(ends) == 10
    one.close()
    other.close()
    assert StoredState(str(tmp_path / "state")).verify().records == 10


def test_a_call_that_still_runs_is_not_repeated(rail: Make) -> None:
    inside, go_on = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Waits."""
        inside.set()
        assert go_on.wait(60)
        return "done"

    one = rail(mode="full", tools=[slow])
    one._session.lock_seconds = 0.05
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.call, "slow", {}, tool_call_id="x")
        assert inside.wait(60)
        again = one.call("slow", {}, tool_call_id="x")
        assert again.error is not None
        assert (again.error.code, again.error.retryable) == ("CONFLICT", True)
        go_on.set()
        assert first.result().ok
    assert one.call("slow", {}, tool_call_id="x").content == "done"


def test_a_batch_runs_only_what_is_new(rail: Make) -> None:
    count, runs = counter()
    one = rail(mode="full", tools=[count])
    first = one.batch([call("a", word="a"), call("b", word="b")])
    assert isinstance(first, Done)
    second = one.batch([call("b", word="x"), call("c", word="c"), call("a", word="x")])
    assert isinstance(second, Done)
    assert [result.tool_call_id for result in second.results] == ["b", "c", "a"]
    assert second.results[0] == first.results[1]
    assert runs == ["a", "b", "c"]


def test_an_empty_batch_is_done(rail: Make) -> None:
    assert rail().batch([]) == Done(results=())


def test_two_calls_of_one_id_in_a_batch_are_refused(rail: Make) -> None:
    count, runs = counter()
    one = rail(mode="full", tools=[count])
    with pytest.raises(UsageError, match="same tool_call_id"):
        one.batch([call("a"), call("a")])
    assert runs == []


def test_a_batch_of_something_else_than_calls_is_refused(rail: Make) -> None:
    given: Any = [{"name": "ls", "args": {"path": "."}}]
    with pytest.raises(UsageError, match=r"a batch is made of ToolCall\(.*, not of "):
        rail().batch(given)


@pytest.mark.parametrize("call_id", ["a b", "a/b", "a\n", "\ud800", "ä", "x" * 129, 5, b"x", ["x"]])
def test_an_id_that_is_none_is_refused(rail: Make, call_id: Any) -> None:
    one = rail()
    with pytest.raises(UsageError, match="tool_call_id"):
        one.call("ls", {"path": "."}, tool_call_id=call_id)
    with pytest.raises(UsageError, match="tool_call_id"):
        one.batch([call(call_id, "ls", path=".")])
    assert list(one.events()) == []


@pytest.mark.parametrize("call_id", ["call_abc|fc_123", "toolu_01A", "x" * 128, "0", "a.b:c@d", "@output"])
def test_ids_of_every_provider_can_be_used(rail: Make, call_id: str) -> None:
    one = rail()
    assert one.call("write", {"path": "a.txt", "content": call_id}, tool_call_id=call_id).ok
    assert one.call("write", {"path": "a.txt", "content": "other"}, tool_call_id=call_id).data.size == len(call_id)


@pytest.mark.parametrize("timestamp", [None, "2026-01-01T00:00:00Z", 5, datetime(2026, 1, 1)])  # noqa: DTZ001
def test_a_timestamp_that_is_none_is_refused(rail: Make, timestamp: Any) -> None:
    bad = ToolCall(tool_call_id="x", name="ls", args={"path": "."}, trace_id="x", timestamp=timestamp)
    with pytest.raises(UsageError, match="timestamp"):
        rail().batch([bad])


SHAPES = ["call-1", "call-ffff", "call-0-0123456789abcdef", "call-ffff-0123456789abcdef", "call_1", "call-", "call--x"]


@pytest.mark.parametrize("call_id", SHAPES)
def test_an_id_that_looks_like_one_of_ours_is_known_again_too(rail: Make, workspace: Path, call_id: str) -> None:
    (workspace / "a.txt").write_text("first\n")
    with rail(session="s") as one:
        for _ in range(3):
            one.ls()
        first = one.call("read", {"path": "a.txt"}, tool_call_id=call_id)
        (workspace / "a.txt").write_text("second\n")
        assert one.call("read", {"path": "a.txt"}, tool_call_id=call_id) == first
    with rail(session="s") as one:
        assert one.call("read", {"path": "a.txt"}, tool_call_id=call_id) == first
        own = one.ls().tool_call_id
        assert one.call("read", {"path": "a.txt"}, tool_call_id=own).name == "ls"


@pytest.mark.parametrize("call_id", SHAPES)
def test_an_id_that_looks_like_one_of_ours_is_used_once_by_many_threads(rail: Make, call_id: str) -> None:
    one = rail(session="s")
    ready = threading.Barrier(6)

    def work(_: int) -> bytes:
        ready.wait()
        return encode(one.call("ls", {"path": "."}, tool_call_id=call_id))

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(work, range(6)))) == 1
    assert len([event for event in one.events() if isinstance(event, ToolCallStart)]) == 1


def test_the_providers_id_and_the_other_fields_are_kept_beside_it(rail: Make) -> None:
    one = rail()
    result = one.call("ls", {"path": "."}, provider_call_id="p", message_id="m", trace_id="t", version="1.2")
    start = next(event for event in one.events() if isinstance(event, ToolCallStart))
    assert (start.provider_call_id, start.message_id, start.trace_id, start.version) == ("p", "m", "t", "1.2")
    assert start.tool_call_id == result.tool_call_id != "p"
    assert start.args == {"path": "."}
