"""Calls of a batch that only look run side by side: with the same results, in the same order, as one by one."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Done, Handrail, ToolCall
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallStart
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
        found["data"].pop("mtime", None)
    found["meta"].pop("undo", None)
    return found


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
            Handrail(folder / name / "workspace", state_dir=folder / name / "s", mode="auto", settings=chosen) as rail,
        ):
            patch.setattr(batch, "MAX_PARALLEL_CALLS", most)
            if most == 1:
                patch.setattr(batch, "_is_parallel", lambda _: False)
            outcome = rail.batch(calls(*wanted))
            assert isinstance(outcome, Done)
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
