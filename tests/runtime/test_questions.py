"""Questions of the model: a call that waits for its reply, which it gets exactly once."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, Parked, ToolCall, UsageError
from handrail.protocol.events import ToolCallEnd, ToolCallError, get_event_kind
from handrail.protocol.permissions import Question, Reply
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.tools.companions.question import QuestionData

ON = Settings(tools=Tools(enable=("question",)))
ASKED = {"question": "Which one?", "options": ["left", "right"]}


def call(call_id: str, args: Any = ASKED, name: str = "question") -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id="t", timestamp=datetime.now(UTC))


def parked(outcome: Done | Parked) -> Parked:
    assert isinstance(outcome, Parked)
    return outcome


def done(outcome: Done | Parked) -> Done:
    assert isinstance(outcome, Done)
    return outcome


def test_a_question_waits_without_a_result_and_the_reply_is_the_result(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    asked = parked(one.batch([call("c1")]))
    assert asked.requests == ()
    assert asked.questions == (Question(tool_call_id="c1", question="Which one?", options=("left", "right")),)
    assert one.waiting_questions() == asked.questions
    assert one.waiting() == ()
    (result,) = one.reply("c1", "right").results
    assert result.ok
    assert result.content == "The person chose: right"
    assert result.data == QuestionData(chosen=("right",), text=None)
    assert one.waiting_questions() == ()


def test_the_events_of_a_question_are_start_question_and_end(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.batch([call("c1")])
    assert [get_event_kind(event) for event in one.events()] == ["tool_call.start", "tool_call.question-required"]
    one.reply("c1", Reply(chosen=("left",)))
    last = list(one.events())[-1]
    assert isinstance(last, ToolCallEnd)
    assert last.result.summary == "replied with 1 of 2 options"


def test_the_batch_again_waits_again_and_after_the_reply_has_its_result(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    first = one.batch([call("c1")])
    assert one.batch([call("c1")]) == first
    result = one.reply("c1", "left").results[0]
    assert done(one.batch([call("c1")])).results[0].content == result.content


def test_a_question_among_other_calls_is_refused_and_the_others_run(
    rail: Callable[..., Handrail], workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(settings=ON)
    results = done(one.batch([call("c1"), call("c2", {"path": "a.txt"}, "read")])).results
    assert results[0].error is not None
    assert results[0].error.code == "INVALID_ARGUMENT"
    assert "alone" in results[0].content
    assert results[1].ok
    assert one.waiting_questions() == ()


def test_a_question_beside_a_call_that_needs_a_yes_is_refused_too(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="ask", on_permission=lambda _: None)
    waits = parked(one.batch([call("c1"), call("c2", {"path": "a.txt", "content": "x"}, "write")]))
    assert waits.questions == ()
    results = done(one.answer(waits.requests[0], "once")).results
    assert results[0].error is not None
    assert results[0].error.code == "INVALID_ARGUMENT"
    assert results[1].ok


def test_of_a_batch_that_was_cut_off_a_question_that_is_left_is_still_not_alone(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.batch([call("c1", {"path": "."}, "ls")])
    results = done(one.batch([call("c1", {"path": "."}, "ls"), call("c2")])).results
    assert results[1].error is not None
    assert results[1].error.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "full"])
def test_a_question_may_be_asked_in_every_mode(rail: Callable[..., Handrail], mode: str) -> None:
    one = rail(settings=ON, mode=mode)
    assert parked(one.batch([call("c1")])).questions


def test_a_question_may_be_asked_in_the_restricted_profile(rail: Callable[..., Handrail]) -> None:
    settings = Settings(tools=ON.tools, profile="restricted")
    assert parked(rail(settings=settings).batch([call("c1")])).questions


def test_unattended_the_model_is_told_at_once_that_nobody_answers(rail: Callable[..., Handrail]) -> None:
    (result,) = done(rail(settings=ON, unattended=True).batch([call("c1")])).results
    assert result.error is not None
    assert result.error.code == "UNAVAILABLE"
    assert "assumption" in result.content


def test_a_question_that_is_not_switched_on_is_unknown(rail: Callable[..., Handrail]) -> None:
    (result,) = done(rail().batch([call("c1")])).results
    assert result.error is not None
    assert result.error.code == "UNKNOWN_TOOL"


def test_after_cancel_nothing_is_asked(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.cancel()
    (result,) = done(one.batch([call("c1")])).results
    assert result.error is not None
    assert result.error.code == "CANCELLED"


def test_a_person_may_put_a_question_aside(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.batch([call("c1")])
    (result,) = one.reply("c1", None).results
    assert result.error is not None
    assert result.error.code == "CANCELLED"
    assert "did not answer" in result.content
    assert isinstance(list(one.events())[-1], ToolCallError)


def test_the_second_reply_is_refused(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.batch([call("c1")])
    one.reply("c1", "left")
    with pytest.raises(UsageError, match="already has a reply"):
        one.reply("c1", "right")
    assert done(one.batch([call("c1")])).results[0].content == "The person chose: left"


def test_what_is_no_question_has_no_reply(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="ask", on_permission=lambda _: None)
    one.batch([call("c1", {"path": "."}, "ls")])
    one.batch([call("c2", {"path": "a", "content": ""}, "write")])
    for unknown in ("c1", "c2", "c3"):
        with pytest.raises(UsageError, match="this session has no question"):
            one.reply(unknown, "left")


@pytest.mark.parametrize(
    ("args", "said", "words"),
    [
        (ASKED, "up", "the question accepts only its options:.*one of 'left', 'right'"),
        (ASKED, Reply(chosen=("up",)), "'up' is not an option"),
        (ASKED, Reply(chosen=("left", "right")), "only one option"),
        (ASKED, Reply(chosen=("left",), text="but slowly"), "the question accepts only its options:"),
        (ASKED, Reply(), "is empty"),
        (ASKED, "  ", "is empty"),
        ({**ASKED, "options": []}, "\n", "is empty. Reply with your own words"),
        ({**ASKED, "custom": True}, "x" * 20_001, "at most 20,000"),
        ({**ASKED, "multiple": True}, "left, up", "one or more of"),
    ],
)
def test_a_reply_that_is_not_possible_is_refused_with_what_is(
    rail: Callable[..., Handrail], args: Any, said: Reply | str, words: str
) -> None:
    one = rail(settings=ON)
    one.batch([call("c1", args)])
    with pytest.raises(UsageError, match=words):
        one.reply("c1", said)
    assert one.waiting_questions()


@pytest.mark.parametrize(
    ("more", "said", "chosen", "text"),
    [
        ({}, "LEFT ", ["left"], None),
        ({"multiple": True}, Reply(chosen=("right", "left", "right")), ["left", "right"], None),
        ({"multiple": True}, "right, left", ["left", "right"], None),
        ({"custom": True}, "neither", [], "neither"),
        ({"custom": True}, Reply(chosen=("left",), text=" slowly\n"), ["left"], "slowly"),
        ({"options": []}, "straight on", [], "straight on"),
        ({"custom": True}, "lone \ud800 surrogate", [], "lone \\ud800 surrogate"),
        ({"options": ["a", "A"]}, "A", ["A"], None),
    ],
)
def test_what_a_reply_comes_to(
    rail: Callable[..., Handrail], more: dict[str, Any], said: Reply | str, chosen: list[str], text: str | None
) -> None:
    one = rail(settings=ON)
    (question,) = parked(one.batch([call("c1", {**ASKED, **more})])).questions
    (result,) = one.reply(question, said).results
    assert result.data == QuestionData(chosen=tuple(chosen), text=text)
    assert all(part in result.content for part in (*chosen, text or ""))


@pytest.mark.parametrize(
    "args",
    [
        {"question": "?"},
        {"question": " ", "options": []},
        {"question": "?", "options": ["a", "a "]},
        {"question": "?", "options": [""]},
        {"question": "?", "options": [" "]},
        {"question": "?" * 4_001, "options": []},
        {"question": "?", "options": [str(number) for number in range(21)]},
        "not JSON",
    ],
)
def test_a_question_that_is_none_is_an_invalid_argument_and_nobody_is_asked(
    rail: Callable[..., Handrail], args: Any
) -> None:
    one = rail(settings=ON)
    (result,) = done(one.batch([call("c1", args)])).results
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert one.waiting_questions() == ()


def test_a_single_call_that_asks_says_that_it_waits_and_has_its_result_later(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    result = one.call("question", ASKED, tool_call_id="c1")
    assert result.error is not None
    assert result.error.code == "UNAVAILABLE"
    assert result.error.details["toolCallId"] == "c1"
    one.reply("c1", "left")
    assert one.call("question", ASKED, tool_call_id="c1").ok


def test_a_question_has_one_line_in_the_audit_when_it_has_its_reply(
    rail: Callable[..., Handrail], tmp_path: Path
) -> None:
    one = rail(settings=ON)
    one.batch([call("c1")])
    audit = tmp_path / "state" / "audit.jsonl"
    assert not audit.exists() or b"c1" not in audit.read_bytes()
    one.reply("c1", "left")
    (line,) = audit.read_bytes().splitlines()
    assert b'"question"' in line
    assert b"Which one" not in line
    assert b"left" not in line


_ASK_AND_DIE = """
import os, sys
from tests.runtime.test_questions import ON, call
from handrail import Handrail
rail = Handrail(sys.argv[1], state_dir=sys.argv[2], session="s", settings=ON, mode="auto")
rail.batch([call("c1")])
os.kill(os.getpid(), 9)
"""
_REPLY = """
import sys
from tests.runtime.test_questions import ON
from handrail import Handrail, UsageError
with Handrail(sys.argv[1], state_dir=sys.argv[2], session="s", settings=ON, mode="auto") as rail:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        rail.reply("c1", sys.argv[3])
        print("won")
    except UsageError as error:
        print("lost" if "already has a reply" in str(error) else error)
"""
_REPLY_AND_DIE = """
import os, sys
from tests.runtime.test_questions import ON
from handrail import Handrail
rail = Handrail(sys.argv[1], state_dir=sys.argv[2], session="s", settings=ON, mode="auto")
rail.subscribe(lambda event: os.kill(os.getpid(), 9))
rail.reply("c1", "left")
"""


def _program(code: str, *words: str | Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_question_outlives_the_process_that_asked_it(
    rail: Callable[..., Handrail], workspace: Path, tmp_path: Path
) -> None:
    with _program(_ASK_AND_DIE, workspace, tmp_path / "state") as asker:
        assert asker.wait() == -9
    one = rail(settings=ON, session="s")
    assert [question.tool_call_id for question in one.waiting_questions()] == ["c1"]
    assert parked(one.batch([call("c1")])).questions
    assert one.reply("c1", "left").results[0].ok


def test_of_several_processes_that_reply_at_once_exactly_one_does(
    rail: Callable[..., Handrail], workspace: Path, tmp_path: Path
) -> None:
    one = rail(settings=ON, session="s")
    one.batch([call("c1")])
    people = [_program(_REPLY, workspace, tmp_path / "state", said) for said in ("left", "right", "left")]
    for person in people:
        assert person.stdout is not None
        assert person.stdout.readline() == "ready\n"
    for person in people:
        assert person.stdin is not None
        person.stdin.write("\n")
        person.stdin.flush()
    said = sorted(person.communicate()[0] for person in people)
    assert said == ["lost\n", "lost\n", "won\n"]
    ends = [event for event in one.events() if isinstance(event, ToolCallEnd)]
    assert len(ends) == 1
    assert (tmp_path / "state" / "audit.jsonl").read_bytes().count(b'"c1"') == 1


def test_who_replies_and_is_killed_has_replied(rail: Callable[..., Handrail], workspace: Path, tmp_path: Path) -> None:
    with _program(_ASK_AND_DIE, workspace, tmp_path / "state") as asker:
        assert asker.wait() == -9
    with _program(_REPLY_AND_DIE, workspace, tmp_path / "state") as person:
        assert person.wait() == -9
    one = rail(settings=ON, session="s")
    assert one.waiting_questions() == ()
    assert done(one.batch([call("c1")])).results[0].content == "The person chose: left"
    assert (tmp_path / "state" / "audit.jsonl").read_bytes().count(b'"c1"') == 1
