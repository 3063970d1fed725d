"""Custom tools that hang, flood, raise, lie or return nonsense: one clear result each, and the session goes on."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import structs

from handrail import Context, Handrail, Output, ToolError, UsageError, tool
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallUpdate
from handrail.protocol.results import ToolResult
from handrail.runtime import custom_call, tool_thread
from handrail.settings import Settings
from handrail.settings.model import Results, Tools
from handrail.testing import TemporarySession

Open = Callable[..., Handrail]


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_call, "_GRACE_SECONDS", 0.05)


@pytest.fixture
def free() -> Iterator[threading.Event]:
    """Lets hanging tools go at the end."""
    event = threading.Event()
    yield event
    event.set()


def code(result: ToolResult[Any]) -> str | None:
    return result.error.code if result.error is not None else None


def hang(free: threading.Event, *, timeout: float = 600.0, read_only: bool = False) -> Any:
    return tool(name="hang", description="Never ends.", timeout=timeout, read_only=read_only, auto_execute=read_only)(
        lambda: free.wait(60)
    )


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, BaseException])
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_tool_raises_is_one_result(rail: Open, kind: type[BaseException], is_async: bool) -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise kind

    @tool(name="fail")
    async def fail_later() -> str:
        """Fail."""
        await asyncio.sleep(0)
        raise kind

    one = rail(mode="full", tools=[fail_later if is_async else fail])
    result = one.call("fail", {})
    assert code(result) == "INTERNAL"
    assert kind.__name__ in result.content
    assert len([event for event in one.events() if isinstance(event, ToolCallEnd | ToolCallError)]) == 1
    assert one.write("a.txt", "x").ok


class Unprintable(BaseException):
    def __str__(self) -> str:
        raise SystemExit

    __repr__ = __str__


def test_an_error_that_cannot_be_described_is_one_result(rail: Open) -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise ToolError("NOT_FOUND", Unprintable(), details={"x": Unprintable()})  # type: ignore[arg-type]

    @tool
    def fall() -> str:
        """Fall."""
        raise Unprintable

    one = rail(mode="full", tools=[fail, fall])
    assert [code(one.call(name, {})) for name in ("fail", "fall")] == ["INTERNAL", "INTERNAL"]
    assert one.write("a.txt", "x").ok


def test_a_tool_that_hangs_ends_with_its_time_and_blocks_nobody(rail: Open, free: threading.Event) -> None:
    one = rail(mode="full", tools=[hang(free, timeout=0.1)])
    result = one.call("hang", {})
    assert code(result) == "TIMEOUT"
    assert "hang took longer than 0.1 s. It may still run. Its effects are unknown." in result.content
    assert one.write("a.txt", "x").ok
    one.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_hangs_ends_with_a_cancel(rail: Open, free: threading.Event, is_async: bool) -> None:
    begun = threading.Event()

    @tool
    def stuck() -> None:
        """Hang."""
        begun.set()
        free.wait(60)

    @tool(name="stuck")
    async def stuck_loop() -> None:
        """Hang and keep the event loop."""
        begun.set()
        free.wait(60)

    one = rail(mode="full", tools=[stuck_loop if is_async else stuck])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.call, "stuck", {}, tool_call_id="c")
        assert begun.wait(60)
        assert one.cancel_call("c")
        result = waiting.result(60)
    assert code(result) == "CANCELLED"
    assert "stuck was cancelled and did not stop. It may still run." in result.content
    assert one.write("a.txt", "x").ok


def test_a_tool_that_stops_at_its_time_gives_its_result(rail: Open) -> None:
    @tool(timeout=0.05)
    def patient(context: Context) -> str:
        """Work until it is stopped."""
        while not context.cancelled():
            time.sleep(0.001)
        return "so far"

    assert rail(mode="full", tools=[patient]).call("patient", {}).content == "so far"


def test_a_coroutine_is_cancelled_with_its_call(rail: Open) -> None:
    begun, seen = threading.Event(), list[str]()

    @tool
    async def doze() -> None:
        """Sleep for long."""
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    one = rail(mode="full", tools=[doze])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.call, "doze", {}, tool_call_id="c")
        assert begun.wait(60)
        one.cancel_call("c")
        result = waiting.result(60)
    assert (code(result), result.content) == ("CANCELLED", "The call was cancelled.")
    assert seen == ["cancelled"]


def test_calls_that_hang_do_not_fill_the_process_with_threads(
    rail: Open, free: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_thread, "_MAX_ABANDONED", 2 + len(tool_thread._abandoned))
    one = rail(mode="full", tools=[hang(free, timeout=0.01)])
    results = [code(one.call("hang", {})) for _ in range(4)]
    assert results == ["TIMEOUT", "TIMEOUT", "UNAVAILABLE", "UNAVAILABLE"]
    assert one.write("a.txt", "x").ok


def test_a_thread_that_was_left_behind_no_longer_speaks_for_its_call(rail: Open, free: threading.Event) -> None:
    after: list[Any] = []
    done = threading.Event()

    @tool(timeout=0.05)
    def linger(context: Context) -> str:
        """Go on after the end of the call."""
        free.wait(60)
        context.metadata(title="late")
        after.append(own.write("late.txt", "x"))
        done.set()
        return "late"

    own = rail(mode="full", tools=[linger])
    assert code(own.call("linger", {})) == "TIMEOUT"
    free.set()
    assert done.wait(60)
    assert after[0].ok  # a call of its own, decided and recorded like any other
    assert not [event for event in own.events() if isinstance(event, ToolCallUpdate)]


def test_a_tool_cannot_close_the_session_that_runs_it(rail: Open) -> None:
    @tool
    def leave() -> str:
        """Close the session."""
        own.close()
        return "x"

    own = rail(mode="full", tools=[leave])
    assert code(own.call("leave", {})) == "INTERNAL"
    assert own.write("a.txt", "x").ok


@pytest.mark.parametrize("hook", ["touches", "preview", "format_error"])
@pytest.mark.parametrize("way", ["exit", "error", "hang"])
def test_the_other_functions_of_a_tool_do_no_harm_either(
    rail: Open, hook: str, way: str, free: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom_call, "_HOOK_SECONDS", 0.05)

    def harm(*_: Any) -> Any:
        if way == "hang":
            free.wait(60)
        raise SystemExit if way == "exit" else ValueError

    @tool
    def work(word: str) -> str:
        """Work."""
        return word

    if hook == "format_error":
        bad = structs.replace(work, spec=structs.replace(work.spec, format_error=harm))
    else:
        bad = structs.replace(work, **{hook: harm})
    one = rail(mode="ask", tools=[bad], on_permission="park")
    result = one.call("work", {} if hook == "format_error" else {"word": "x"})
    assert code(result) in {"INTERNAL", "TIMEOUT", "INVALID_ARGUMENT", "PERMISSION_REQUIRED"}
    assert one.read("none.txt").error is not None


@pytest.mark.parametrize("enough", [True, False])
def test_a_flood_of_text_is_cut(rail: Open, enough: bool) -> None:
    @tool(read_only=True, auto_execute=True)
    def flood(characters: int) -> str:
        """Return much."""
        return "x" * characters

    disable = () if enough else ("read",)
    one = rail(tools=[flood], settings=Settings(results=Results(characters=2_000), tools=Tools(disable=disable)))
    result = one.call("flood", {"characters": 1_000_000})
    assert result.ok
    assert len(result.content) <= 2_000
    assert result.meta.truncated
    assert code(one.call("flood", {"characters": 20_000_000})) == "LIMIT_EXCEEDED"


def test_a_flood_of_updates_is_cut(rail: Open) -> None:
    @tool(read_only=True, auto_execute=True)
    def chatter(context: Context) -> str:
        """Report much."""
        for number in range(3_000):
            context.metadata(title=f"step {number}", output="x" * 10_000)
        return "done"

    one = rail(tools=[chatter])
    assert one.call("chatter", {}).ok
    updates = [event for event in one.events() if isinstance(event, ToolCallUpdate)]
    assert len(updates) <= 1_000
    assert sum(len(event.output or "") for event in updates) <= 1_000_000


class Odd:
    def __repr__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    "value", [object(), Odd(), {1: Odd()}, {"a": float("nan"), "b": Odd()}, iter(()), 1 << 70, b"\xff", ...]
)
def test_a_value_that_is_not_json_is_one_result(rail: Open, value: Any) -> None:
    give = tool(name="give", description="x")(lambda: value)
    one = rail(mode="full", tools=[give])
    result = one.call("give", {})
    assert result.ok or code(result) == "INTERNAL"
    assert one.write("a.txt", "x").ok


def endless() -> Iterator[str]:
    while True:
        yield "x"


@pytest.mark.parametrize(
    "broken",
    [
        {"content": 3}, {"content": None}, {"summary": object()}, {"warnings": endless()}, {"meta": {"a": Odd()}},
        {"data": Odd()}, {"whole": 3}, {"files_changed": endless()}, {"changes": "x"}, {"failure": "x"}, {"kept": 3},
        {"raw": 3}, {"title": Odd()}, {"attachments": (3,)}, {"truncated": Odd()}, {"events": endless()},
    ],
)  # fmt: skip
def test_a_broken_output_is_one_result(rail: Open, broken: dict[str, Any]) -> None:
    given = {"summary": "s", "content": "c", "data": None, **broken}
    give = tool(name="give", description="x")(lambda: Output(**given))
    one = rail(mode="full", tools=[give])
    result = one.call("give", {})
    assert result.ok or code(result) == "INTERNAL"
    assert one.write("a.txt", "x").ok


def test_a_value_that_a_tool_changes_later_stays_as_it_was(rail: Open) -> None:
    kept: list[Any] = [1]
    give = tool(name="give", description="x", read_only=True, auto_execute=True)(lambda: kept)
    result = rail(tools=[give]).call("give", {})
    kept.append(object())
    assert result.data.value == [1]


def test_a_tool_that_lies_about_its_effects_leaves_no_false_record() -> None:
    """Its change is that of another program: an edit has to read the file again, and undo leaves it alone."""

    @tool(read_only=True, auto_execute=True)
    def lie() -> str:
        """Look around."""
        (session.workspace / "a.txt").write_text("lied\n")
        return "looked"

    with TemporarySession(mode="full", tools=[lie]) as session:
        session.call("write", path="a.txt", content="mine\n")
        assert session.call("lie").ok
        assert code(session.rail.edit("a.txt", "mine", "x")) is not None
        assert code(session.rail.undo()) == "CONFLICT"
        session.assert_changed({"a.txt": "lied\n"})


def test_a_tool_that_asks_for_a_time_that_is_none_is_refused() -> None:
    for wrong in (0, -1, float("nan"), float("inf"), "long"):
        with pytest.raises(UsageError, match="timeout"):
            tool(name="x", description="x", timeout=wrong)(lambda: "")  # type: ignore[arg-type]
