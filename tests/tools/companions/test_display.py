"""display: something for the person to see; whatever it holds, it harms nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.cli.format import describe_event
from handrail.protocol.events import Display, get_event_kind
from handrail.settings import Settings
from handrail.settings.model import Tools

ON = Settings(tools=Tools(enable=("display",)))


def displayed(one: Handrail) -> list[Display]:
    return [event for event in one.events() if isinstance(event, Display)]


def test_what_is_shown_is_an_event_and_the_result_says_so(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    args = {"content": "**Found** it", "level": "warning", "title": "Cause", "thought": "t", "evidence": ["a.py:4"]}
    result = one.call("display", args)
    assert (result.ok, result.content) == (True, "Shown.\n")
    (event,) = displayed(one)
    assert (event.content, event.level, event.title, event.thought) == ("**Found** it", "warning", "Cause", "t")
    assert event.evidence == ("a.py:4",)
    assert [get_event_kind(event) for event in one.events()] == ["tool_call.start", "display", "tool_call.end"]


@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "full"])
@pytest.mark.parametrize(
    "more", [{}, {"unattended": True}, {"settings": Settings(tools=ON.tools, profile="restricted")}]
)
def test_nobody_has_to_confirm_it_wherever_it_is(rail: Callable[..., Handrail], mode: str, more: Any) -> None:
    one = rail(**{"settings": ON, "mode": mode, **more})
    assert one.call("display", {"content": "hello"}).ok
    assert [event.level for event in displayed(one)] == ["info"]


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"content": ""},
        {"content": "x" * 10_001},
        {"content": "x", "level": "fatal"},
        {"content": "x", "title": ""},
        {"content": "x", "evidence": ["x"] * 51},
        {"content": "x", "evidence": ["x" * 501]},
        {"content": "lone \ud800"},
    ],
)
def test_what_cannot_be_shown_is_refused_and_not_shown(rail: Callable[..., Handrail], args: Any) -> None:
    one = rail(settings=ON)
    result = one.call("display", args)
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert displayed(one) == []


def test_ten_thousand_characters_are_shown_whole(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    assert one.call("display", {"content": "ä" * 10_000}).ok
    assert displayed(one)[0].content == "ä" * 10_000


def test_it_is_off_until_it_is_switched_on(rail: Callable[..., Handrail]) -> None:
    one = rail()
    result = one.call("display", {"content": "x"})
    assert result.error is not None
    assert result.error.code == "UNKNOWN_TOOL"
    assert "enable" in (one.why_off("display") or "")


def test_a_listener_that_fails_at_it_does_not_fail_the_call(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)

    def broken(_: object) -> None:
        raise RuntimeError

    one.subscribe(broken)
    assert one.call("display", {"content": "x"}).ok


def test_the_loop_may_show_something_too(rail: Callable[..., Handrail]) -> None:
    one = rail()
    one.conversation.tell((Display, {"content": "going on"}))
    assert displayed(one)[0].level == "info"


def display(**fields: Any) -> Display:
    from datetime import UTC, datetime

    return Display(event_id="s:1", seq=1, session_id="s", time=datetime.now(UTC), **fields)


def test_in_one_line_it_is_its_level_its_title_and_its_first_line() -> None:
    event = display(content="\n\n  # It works  \nand more", level="success", title="Tests")
    assert describe_event(event) == "success: Tests: # It works"
    assert describe_event(display(content="\n", level="error")) == "error: "


@given(st.text(), st.text(), st.sampled_from(["info", "success", "warning", "error", "progress"]))
def test_its_line_is_always_one_line_that_steers_no_terminal(title: str, content: str, level: Any) -> None:
    line = describe_event(display(title=title, content=content, level=level))
    assert len(line.splitlines()) == 1
    assert not set(line) & {"\x1b", "\x00", "\x07", "\u202e", "\u2066", "\u200b", "\r"}
    assert len(line) <= 1_300


def test_it_is_one_log_record_for_a_program_without_a_view(
    rail: Callable[..., Handrail], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="handrail.display"):
        rail(settings=ON).call("display", {"content": "It works.\nAll of it.", "title": "News", "level": "warning"})
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("WARNING", "News: It works.")]
