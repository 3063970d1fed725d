"""The event stream of calls, and those who listen to it."""

import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Context, Handrail, tool
from handrail.protocol.errors import ToolError
from handrail.protocol.events import (
    ChangeEvent,
    Event,
    Notice,
    ToolCallEnd,
    ToolCallStart,
    ToolCallUpdate,
    get_event_kind,
)
from handrail.settings import Settings
from handrail.workspace.workspace import Workspace

Make = Callable[..., Handrail]


def kinds(events: Any) -> list[str]:
    return [get_event_kind(event) for event in events]


def test_a_read_is_start_and_end(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("text\n")
    one = rail(session="s")
    result = one.read("a.txt")
    events = list(one.events())
    assert kinds(events) == ["tool_call.start", "tool_call.end"]
    start, end = events
    assert isinstance(end, ToolCallEnd)
    assert end.result.content == result.content == "text\n"
    for number, event in enumerate(events, start=1):
        assert (event.seq, event.event_id, event.session_id) == (number, f"s:{number}", "s")
        assert event.tool_call_id == result.tool_call_id  # type: ignore[union-attr]
        assert event.tool_call_name == "read"  # type: ignore[union-attr]
    assert start.time.tzinfo is not None


def test_a_write_says_that_it_runs_before_and_what_it_changed_after(rail: Make) -> None:
    one = rail()
    one.write("a.txt", "text\n")
    events = list(one.events())
    assert kinds(events) == ["tool_call.start", "tool_call.running", "change", "tool_call.end"]
    change = events[2]
    assert isinstance(change, ChangeEvent)
    assert [(item.path, item.action, item.before) for item in change.change.changes] == [("a.txt", "created", None)]


def test_a_write_that_changes_nothing_has_no_change_event(rail: Make) -> None:
    one = rail()
    one.write("a.txt", "text\n")
    before = len(list(one.events()))
    one.write("a.txt", "text\n")
    assert kinds(one.events(before)) == ["tool_call.start", "tool_call.running", "tool_call.end"]


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("read", {"path": "missing"}, ["tool_call.start", "tool_call.error"]),
        ("read", {"pth": "x"}, ["tool_call.start", "tool_call.error"]),
        ("read", {"path": "../x"}, ["tool_call.start", "warning", "tool_call.error"]),
        ("read", {"path": ".env"}, ["tool_call.start", "warning", "tool_call.error"]),
        ("nothing", {}, ["tool_call.start", "warning", "tool_call.error"]),
        ("write", {"path": ".", "content": ""}, ["tool_call.start", "tool_call.running", "tool_call.error"]),
    ],
)
def test_what_fails_ends_in_an_error_event(rail: Make, name: str, args: Any, expected: list[str]) -> None:
    one = rail()
    assert not one.call(name, args).ok
    assert kinds(one.events()) == expected


def test_a_mode_that_is_set_is_an_event(rail: Make) -> None:
    one = rail()
    one.set_mode("plan")
    [event] = one.events()
    assert (get_event_kind(event), event.mode) == ("mode", "plan")  # type: ignore[union-attr, arg-type]


def test_a_tool_reports_while_it_runs(rail: Make) -> None:
    @tool(read_only=True, auto_execute=True)
    def slow(context: Context) -> str:
        """Reports."""
        context.metadata(title="half way", output="5 of 10", percent=50, odd={"set": {1}}, none=None)
        context.metadata(title=5, output="\ud800")
        return "done"

    one = rail(tools=[slow])
    heard: list[Event] = []
    one.subscribe(heard.append)
    assert one.call("slow", {}).ok
    assert (
        kinds(heard)
        == kinds(one.events())
        == [
            *("tool_call.start", "tool_call.running", "tool_call.update", "tool_call.update", "tool_call.end"),
        ]
    )
    first, second = (event for event in one.events() if isinstance(event, ToolCallUpdate))
    assert (first.title, first.output) == ("half way", "5 of 10")
    assert first.metadata is not None
    assert first.metadata["percent"] == 50
    assert (second.title, second.metadata) == ("5", None)


def test_what_a_report_calls_its_own_may_have_any_name(rail: Make) -> None:
    @tool(read_only=True, auto_execute=True)
    def slow(context: Context) -> str:
        """Reports."""
        context.metadata(session="s", flight="f")
        return "done"

    one = rail(tools=[slow])
    assert one.call("slow", {}).ok
    [update] = (event for event in one.events() if isinstance(event, ToolCallUpdate))
    assert update.metadata == {"session": "s", "flight": "f"}


def test_a_report_after_the_end_changes_nothing(rail: Make) -> None:
    kept: list[Context] = []

    @tool
    def leaves_a_thread(context: Context) -> str:
        """Keeps its context."""
        kept.append(context)
        return "done"

    with rail(mode="full", session="s", tools=[leaves_a_thread]) as one:
        first = one.call("leaves_a_thread", {}, tool_call_id="x")
        kept[0].metadata(title="late")
        assert one.call("leaves_a_thread", {}, tool_call_id="x") == first
        assert kinds(one.events()) == ["tool_call.start", "tool_call.running", "tool_call.end"]
    with rail(session="s") as one:
        assert kinds(one.events()) == ["tool_call.start", "tool_call.running", "tool_call.end"]


# Listening


def test_a_listener_hears_each_event_once_it_is_stored(rail: Make) -> None:
    one = rail()
    stored: list[bool] = []
    one.subscribe(lambda event: stored.append(event.seq in [other.seq for other in one.events()]))
    one.write("a.txt", "x")
    assert stored == [True] * 4


def test_every_event_of_a_call_was_told_when_the_call_returns(rail: Make) -> None:
    one = rail()
    heard: list[int] = []
    stop = one.subscribe(lambda event: heard.append(event.seq))
    for number in range(5):
        one.write("a.txt", str(number))
        assert heard == [event.seq for event in one.events()]
    stop()
    one.ls()
    assert len(heard) == 20


def test_a_listener_hears_only_the_kinds_that_it_listens_for_and_others_hear_all(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("a\n")
    one = rail()
    some: list[Event] = []
    every: list[Event] = []
    one.subscribe(some.append, kinds=(ToolCallEnd,))
    one.read("a.txt")
    assert [type(event) for event in some] == [ToolCallEnd]
    stop = one.subscribe(every.append)
    one.read("a.txt")
    assert [type(event) for event in every] == [ToolCallStart, ToolCallEnd]
    assert every[1] is some[1]
    stop()
    one.read("a.txt")
    assert (len(some), len(every)) == (3, 2)


def test_a_listener_that_fails_breaks_no_call(rail: Make, workspace: Path) -> None:
    one = rail()
    heard: list[Event] = []
    broken = 0

    def fails(_: Event) -> None:
        nonlocal broken
        broken += 1
        raise RuntimeError("canary-7a1")

    one.subscribe(fails)
    one.subscribe(heard.append)
    assert one.write("a.txt", "x").ok
    assert one.read("a.txt").ok
    assert broken == 1
    notices = [event for event in one.events() if isinstance(event, Notice)]
    assert [(notice.code, "RuntimeError" in notice.text) for notice in notices] == [("LISTENER_REMOVED", True)]
    assert "canary" not in notices[0].text
    assert [event.seq for event in heard] == [event.seq for event in one.events()]


def test_a_listener_may_call_tools(rail: Make, workspace: Path) -> None:
    one = rail()
    read: list[str] = []

    def look(event: Event) -> None:
        if isinstance(event, ToolCallEnd) and event.tool_call_name == "write" and not read:
            read.append(one.read("a.txt").content)
            one.write("log.txt", f"{len(read)}\n")

    stop = one.subscribe(look)
    thread = threading.Thread(target=one.write, args=("a.txt", "x"))
    thread.start()
    thread.join(40)
    assert not thread.is_alive(), "the listener waits for the call it was called by"
    stop()
    assert read[0] == "x"
    assert (workspace / "log.txt").exists()


def test_a_slow_listener_does_not_hold_up_other_threads(rail: Make) -> None:
    one = rail()
    inside, go_on = threading.Event(), threading.Event()

    def slow(_: Event) -> None:
        inside.set()
        assert go_on.wait(60)

    stop = one.subscribe(slow)
    first = threading.Thread(target=one.ls)
    first.start()
    assert inside.wait(60)
    second = threading.Thread(target=one.write, args=("a.txt", "x"))
    second.start()
    second.join(40)
    assert not second.is_alive()
    stop()
    go_on.set()
    first.join(40)


def test_two_objects_of_one_session_hear_each_other_in_order(rail: Make) -> None:
    one, other = rail(session="s"), rail(session="s")
    heard: list[int] = []
    one.subscribe(lambda event: heard.append(event.seq))
    one.ls()
    other.ls()
    other.write("a.txt", "x")
    one.ls()
    assert heard == list(range(1, 11)) == [event.seq for event in one.events()]


# The copy in the workspace


def test_the_live_copy_has_every_event_and_its_failure_breaks_no_call(rail: Make, workspace: Path) -> None:
    settings = Settings.from_values({"events.jsonl": "logs"})
    one = rail(session="s", settings=settings)
    one.write("a.txt", "x")
    [copy] = (workspace / "logs" / "s").iterdir()
    assert copy.read_bytes().count(b"\n") == 4
    (workspace / "other").mkdir()
    (workspace / "other" / "logs").write_text("a file in the way")
    two = rail(session="s", settings=settings, workspace=workspace / "other")
    assert two.write("a.txt", "x").ok
    assert two.read("a.txt").ok
    assert [event.code for event in two.events() if isinstance(event, Notice)] == ["LISTENER_REMOVED"]


def test_half_a_line_for_which_there_was_no_room_is_taken_away(workspace: Path) -> None:
    """A limit on the size of files cuts a write short as a nearly full disk does."""
    with Workspace(str(workspace)) as opened:
        opened.append("logs/a.jsonl", b'{"seq":1}\n')
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (15, hard))
        try:
            with pytest.raises(ToolError) as raised:
                opened.append("logs/a.jsonl", b'{"seq":2}\n')
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert raised.value.code == "NO_SPACE"
        opened.append("logs/a.jsonl", b'{"seq":3}\n')
    assert (workspace / "logs" / "a.jsonl").read_bytes() == b'{"seq":1}\n{"seq":3}\n'
