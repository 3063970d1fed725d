"""Calls of a batch that only look run side by side: with the same results, in the same order, as one by one."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Context, Done, Handrail, ToolCall, tool
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallRunning, ToolCallStart
from handrail.protocol.results import ToolResult
from handrail.runtime import batch, execute
from handrail.settings import Settings
from handrail.settings.model import Results

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def calls(*wanted: tuple[str, Any]) -> list[ToolCall]:
    return [
        ToolCall(tool_call_id=f"c{number}", name=name, args=args, trace_id="t", timestamp=NOW)
        for number, (name, args) in enumerate(wanted)
    ]


def comparable(result: ToolResult[Any]) -> Any:
    found = msgspec.to_builtins(msgspec.structs.replace(result, duration_ms=0.0))
    if isinstance(found["data"], dict):
        for name in ("mtime", "durationMs", "duration_ms"):
            found["data"].pop(name, None)
    found["meta"].pop("undo", None)
    return found


@tool(read_only=True, auto_execute=True)
def repeat(times: int) -> str:
    """Repeat a word."""
    return "word " * times


def fill(folder: Path) -> None:
    """Few enough lines that every search counts all: how many there are is else a matter of the time it takes."""
    folder.mkdir(parents=True)
    for number in range(4):
        lines = (f"line {line} of {number} {'-' * 60}\n" for line in range(20 * number + 1))
        (folder / f"f{number}.txt").write_text("".join(lines))


NAMES = st.sampled_from(["f0.txt", "f1.txt", "f2.txt", "f3.txt", "new.txt", "missing.txt", "../outside"])
CALLS = st.one_of(
    st.tuples(st.just("read"), st.fixed_dictionaries({"path": NAMES})),
    st.tuples(st.just("grep"), st.fixed_dictionaries({"pattern": st.sampled_from(["line 1", "of 3", "("])})),
    st.tuples(st.just("find"), st.just({"pattern": "*.txt"})),
    st.tuples(st.just("ls"), st.just({"path": "."})),
    st.tuples(st.just("nothing"), st.just({})),
    st.tuples(st.just("exec"), st.fixed_dictionaries({"command": st.sampled_from(["cat f1.txt", "wc -l f3.txt"])})),
    st.tuples(st.just("exec"), st.fixed_dictionaries({"command": st.sampled_from(["cat f3.txt f2.txt", "cat none"])})),
    st.tuples(st.just("repeat"), st.fixed_dictionaries({"times": st.sampled_from([1, 300, 9_000])})),
    st.tuples(st.just("read"), st.just({"file": "f1.txt"})),
    st.tuples(st.just("write"), st.fixed_dictionaries({"path": NAMES, "content": st.just("line 1 anew\n" * 15)})),
)


@settings(max_examples=settings.default.max_examples // 5)  # each plays two sessions
@given(wanted=st.lists(CALLS, min_size=1, max_size=9), room=st.sampled_from([100_000, 6_000, 2_500]))
def test_the_results_are_those_of_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[Any], room: int
) -> None:
    folder = tmp_path_factory.mktemp("pair")
    found: list[Any] = []
    for name, most in (("beside", 8), ("alone", 1)):
        fill(folder / name / "workspace")
        chosen = Settings(results=Results(characters=3_000, batch_characters=room))
        with (
            pytest.MonkeyPatch.context() as patch,
            Handrail(
                folder / name / "workspace", state_dir=folder / name / "s", mode="auto", settings=chosen, tools=[repeat]
            ) as rail,
        ):
            patch.setattr(batch, "MAX_PARALLEL_CALLS", most)
            if most == 1:
                patch.setattr(batch, "_is_parallel", lambda _: False)
            outcome = rail.batch(calls(*wanted))
            assert isinstance(outcome, Done)
            begun = [one.tool_call_id for one in rail.events() if isinstance(one, ToolCallStart)]
            assert begun == [f"c{number}" for number in range(len(wanted))]
            ended = [one.tool_call_id for one in rail.events() if isinstance(one, ToolCallEnd | ToolCallError)]
            assert ended == [f"c{number}" for number in range(len(wanted))]
            found.append([comparable(result) for result in outcome.results])
    assert found[0] == found[1]


def test_they_really_run_side_by_side_and_no_more_than_so_many(
    rail: Callable[..., Handrail], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_text("x\n")
    meeting, seen = threading.Barrier(3, timeout=60), set[int]()

    def meet(_session: object, _flight: object) -> None:
        seen.add(threading.get_ident())
        meeting.wait()

    monkeypatch.setattr(batch, "select_steps", lambda *_: (meet, *execute.LOOKING))
    monkeypatch.setattr(batch, "MAX_PARALLEL_CALLS", 3)
    with rail() as one:
        outcome = one.batch(calls(*[("read", {"path": "a.txt"})] * 6))
    assert isinstance(outcome, Done)
    assert all(result.ok for result in outcome.results)
    assert len(seen) == 3
    assert threading.get_ident() in seen


def test_read_only_custom_tools_run_side_by_side(rail: Callable[..., Handrail]) -> None:
    meeting = threading.Barrier(3, timeout=60)

    @tool(read_only=True, auto_execute=True)
    def meet() -> str:
        """Wait for the others."""
        meeting.wait()
        return "met"

    @tool(read_only=True, auto_execute=True)
    async def meet_later() -> str:
        """Wait for the others."""
        meeting.wait()
        return "met"

    one = rail(tools=[meet, meet_later])
    outcome = one.batch(calls(("meet", {}), ("meet_later", {}), ("meet", {})))
    assert isinstance(outcome, Done)
    assert [result.content for result in outcome.results] == ["met"] * 3


def test_custom_tools_with_effects_run_one_after_the_other(rail: Callable[..., Handrail]) -> None:
    inside: list[str] = []

    @tool
    def work(word: str) -> str:
        """Work alone."""
        inside.append(word)
        threading.Event().wait(0.02)
        return f"{inside.pop()} {len(inside)}"

    outcome = rail(tools=[work], mode="full").batch(calls(*(("work", {"word": word}) for word in "abc")))
    assert isinstance(outcome, Done)
    assert [result.content for result in outcome.results] == ["a 0", "b 0", "c 0"]


PROVEN = ("exec", {"command": "cat a.txt"})


def test_proven_commands_run_side_by_side(
    rail: Callable[..., Handrail], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_text("x\n")
    meeting = threading.Barrier(4, timeout=60)
    plain = execute.select_steps
    met: list[str] = []

    def select(session: Any, pending: Any) -> Any:
        if pending.parallel_stop is not None:
            meeting.wait()
            met.append(pending.name)
        return plain(session, pending)

    monkeypatch.setattr(batch, "select_steps", select)
    one = rail()
    outcome = one.batch(calls(PROVEN, PROVEN, PROVEN, PROVEN))
    assert isinstance(outcome, Done)
    assert [result.content.split()[0] for result in outcome.results] == ["x", "x", "x", "x"]
    assert met == ["exec", "exec", "exec", "exec"]
    started = [event.tool_call_id for event in one.events() if isinstance(event, ToolCallRunning)]
    assert started == ["c0", "c1", "c2", "c3"]
    assert one.exec("cat a.txt").ok  # the queue is free again


def test_a_custom_tool_beside_a_command_can_call_handrail(rail: Callable[..., Handrail], workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n")

    @tool(read_only=True, auto_execute=True, timeout=20)
    def look() -> str:
        """Run a command."""
        return one.exec("cat a.txt").content

    one = rail(tools=[look])
    outcome = one.batch(calls(PROVEN, ("look", {}), PROVEN, ("look", {}), ("look", {}), PROVEN, PROVEN))
    assert isinstance(outcome, Done)
    assert [(result.ok, result.content.strip()) for result in outcome.results] == [(True, "x")] * 7


def test_a_defect_in_a_thread_leaves_the_queue_free(
    rail: Callable[..., Handrail], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_text("x\n")
    one = rail()
    with monkeypatch.context() as patch:
        patch.setattr(batch, "select_steps", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            one.batch(calls(PROVEN, PROVEN))
    assert one.exec("cat a.txt").ok


def test_reads_beside_a_command_are_recorded_as_without_it(rail: Callable[..., Handrail], workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n")
    one = rail()
    read = ("read", {"path": "a.txt"})
    assert isinstance(one.batch(calls(read, read, PROVEN, read, read)), Done)
    assert [event.tool_call_id for event in one.events() if isinstance(event, ToolCallRunning)] == ["c2"]
    assert [event.tool_call_id for event in one.events() if isinstance(event, ToolCallStart)] == [
        "c0", "c1", "c2", "c3", "c4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command", ["echo x > b.txt", "python3 -c 'print(1)'", "rm a.txt", "git commit -m x", "sleep 0 &"]
)
def test_a_command_that_is_not_proven_runs_alone(
    rail: Callable[..., Handrail], workspace: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead: list[str] = []
    plain = batch._run_in_threads

    def note(session: Any, group: Any, budget: int) -> None:
        ahead.extend(one.call.tool_call_id for one in group)
        plain(session, group, budget)

    monkeypatch.setattr(batch, "_run_in_threads", note)
    (workspace / "a.txt").write_text("x\n")
    outcome = rail(mode="full").batch(calls(PROVEN, PROVEN, ("exec", {"command": command}), PROVEN))
    assert isinstance(outcome, Done)
    assert ahead == ["c0", "c1"]


def test_a_call_that_hangs_ahead_of_its_turn_is_cancelled_alone(rail: Callable[..., Handrail], workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n")
    begun = threading.Event()

    @tool(read_only=True, auto_execute=True)
    def hang(context: Context) -> str:
        """Wait for the end."""
        begun.set()
        while not context.cancelled():
            threading.Event().wait(0.01)
        context.check_cancelled()
        return "x"

    one = rail(tools=[repeat, hang])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.batch, calls(("repeat", {"times": 1}), ("hang", {}), ("read", {"path": "a.txt"})))
        assert begun.wait(60)
        assert one.cancel_call("c1")
        outcome = waiting.result(60)
    assert isinstance(outcome, Done)
    assert [result.error and result.error.code for result in outcome.results] == [None, "CANCELLED", None]


def test_a_read_behind_a_write_sees_what_was_written(rail: Callable[..., Handrail], workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    read, write = ("read", {"path": "a.txt"}), ("write", {"path": "a.txt", "content": "new\n"})
    outcome = rail().batch(calls(read, read, write, read, read))
    assert isinstance(outcome, Done)
    assert [result.content for result in outcome.results if result.name == "read"] == [
        "old\n", "old\n", "new\n", "new\n"
    ]  # fmt: skip


def test_an_interrupt_gives_every_call_its_result(
    rail: Callable[..., Handrail], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_text("x\n")
    main = threading.main_thread()
    others = threading.Event()

    def interrupted(_session: object, flight: Any) -> None:
        if threading.current_thread() is main:
            others.wait(60)
            raise KeyboardInterrupt
        others.set()
        flight.parallel_stop.wait(60)

    monkeypatch.setattr(batch, "select_steps", lambda *_: (interrupted, *execute.LOOKING))
    one = rail()
    with pytest.raises(KeyboardInterrupt):
        one.batch(calls(*[("read", {"path": "a.txt"})] * 12))
    started = [event.tool_call_id for event in one.events() if isinstance(event, ToolCallStart)]
    ended = [event.tool_call_id for event in one.events() if isinstance(event, ToolCallEnd | ToolCallError)]
    assert started == ended == [f"c{number}" for number in range(12)]
    assert threading.active_count() == 1 or all(not t.name.startswith("Thread") for t in threading.enumerate())
    assert one.read("a.txt").ok


def test_a_cancelled_session_refuses_all_of_them(rail: Callable[..., Handrail], workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n")
    one = rail()
    one.cancel()
    outcome = one.batch(calls(*[("read", {"path": "a.txt"})] * 3))
    assert isinstance(outcome, Done)
    assert [result.error.code for result in outcome.results if result.error] == ["CANCELLED"] * 3
