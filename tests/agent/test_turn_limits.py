"""What ends a turn that would go on for ever, and calls that are none."""

import asyncio
from typing import Any

from handrail import Agent, TurnLimits
from handrail.models.base import Completion
from handrail.models.scripted import ScriptedModel, ScriptedReply, TokenUsage
from handrail.protocol.events import End, Error, Notice, ToolCallError, Warning  # noqa: A004
from handrail.protocol.messages import AssistantMessage, CallPart, ResultsMessage, TextPart, UserMessage
from handrail.protocol.wire import encode

READ = ("read", {"path": "a.txt"})


def write(name: str) -> tuple[str, dict[str, str]]:
    return ("write", {"path": name, "content": "x\n"})


def notes(rail: Any) -> list[str]:
    said = [one.message for one in rail.conversation.messages()]
    return [one.text for one in said if isinstance(one, UserMessage) and one.by_loop]


def check_talk(rail: Any) -> None:
    """Every call of the talk has its result right behind it: what every wire asks for."""
    said = [one.message for one in rail.conversation.messages()]
    for before, after in zip(said, [*said[1:], None], strict=True):
        if isinstance(before, AssistantMessage) and before.calls:
            assert isinstance(after, ResultsMessage)
            assert [one.tool_call_id for one in after.results] == [call.tool_call_id for call in before.calls]


def test_a_turn_makes_so_many_calls_and_no_more(stage: Any, told: Any) -> None:
    rail = stage.open()
    script = [
        ScriptedReply(calls=(write("b"), write("c"))),
        ScriptedReply(calls=(write("d"), write("e"))),
        ScriptedReply(text="Again."),
    ]
    turn = stage.run(rail, script, limits=TurnLimits(calls=3))
    assert (turn.reason, turn.code, turn.calls, turn.files_changed) == ("limit", "LIMIT_EXCEEDED", 4, ("b", "c"))
    assert "may make 3 calls" in (turn.message or "")
    assert [event.result.error.code for event in told(rail, ToolCallError)] == ["LIMIT_EXCEEDED"] * 2
    assert sorted(path.name for path in stage.workspace.iterdir()) == ["a.txt", "b", "c"]
    check_talk(rail)
    assert stage.run(rail, script, prompt="Go on.").text == "Again."


def test_a_turn_uses_so_many_tokens_and_no_more(stage: Any, told: Any) -> None:
    rail = stage.open()
    spent = TokenUsage(input_tokens=400, output_tokens=100)
    script = [
        ScriptedReply(calls=(READ,), spent=spent),
        ScriptedReply(calls=(write("b"),), spent=spent),
        ScriptedReply(text="Done."),
    ]
    turn = stage.run(rail, script, limits=TurnLimits(tokens=1000))
    assert (turn.reason, turn.tokens) == ("limit", 1000)
    assert not (stage.workspace / "b").exists()
    assert "1,000" in told(rail, Notice)[-1].text
    check_talk(rail)


def test_a_model_that_gets_nowhere_is_told_and_then_stopped(stage: Any, told: Any) -> None:
    rail = stage.open()
    turn = stage.run(rail, [ScriptedReply(calls=(READ,))] * 10, limits=TurnLimits(repeats=3))
    assert (turn.reason, turn.calls) == ("limit", 4)
    (note,) = notes(rail)
    assert "3 times in a row" in note
    assert [end.reason for end in told(rail, End)] == ["limit"]
    check_talk(rail)


def test_a_model_that_does_something_else_when_told_goes_on(stage: Any) -> None:
    rail = stage.open()
    script = (
        [ScriptedReply(calls=(READ,))] * 3
        + [ScriptedReply(calls=(write("b"),))]
        + [ScriptedReply(calls=(READ,))] * 2
        + [ScriptedReply(text="Done.")]
    )
    assert stage.run(rail, script, limits=TurnLimits(repeats=3)).reason == "done"
    assert len(notes(rail)) == 1


def test_the_same_call_with_another_result_is_progress(stage: Any) -> None:
    rail = stage.open()
    steps: list[ScriptedReply] = []
    for number in range(4):
        steps += [
            ScriptedReply(calls=(READ,)),
            ScriptedReply(calls=(("write", {"path": "a.txt", "content": f"{number}\n"}),)),
        ]
    assert stage.run(rail, [*steps, ScriptedReply(text="Done.")], limits=TurnLimits(repeats=2)).reason == "done"
    assert not notes(rail)


def test_a_call_that_was_cut_off_is_none(stage: Any, told: Any) -> None:
    rail = stage.open()
    script = [
        ScriptedReply(text="I write.", calls=(write("b"), write("c")), finish="length"),
        ScriptedReply(text="Done."),
    ]
    turn = stage.run(rail, script)
    assert (turn.reason, turn.calls, turn.files_changed) == ("done", 1, ("b",))
    assert not (stage.workspace / "c").exists()
    (warning,) = told(rail, Warning)
    assert "cut off in the middle of a call to write" in warning.text
    assert len(notes(rail)) == 1
    check_talk(rail)


def test_an_answer_of_which_nothing_is_left_is_asked_for_again(stage: Any) -> None:
    rail = stage.open()

    class CutOff:
        name, window = "test:cut-off", 100_000

        def __init__(self) -> None:
            self.asked: list[Any] = []

        async def stream(self, request: Any) -> Any:
            self.asked.append(request)
            if len(self.asked) == 1:
                yield Completion(parts=(CallPart(tool_call_id="", name="write", args='{"path": "b'),), finish="length")
            else:
                yield Completion(parts=(TextPart(text="Done."),), finish="stop")

    model = CutOff()
    assert asyncio.run(Agent(rail, model).run("go")).text == "Done."
    second = model.asked[1].messages
    assert [type(one) for one in second] == [UserMessage, UserMessage]
    assert "That call was not made" in second[1].text


def test_words_that_are_cut_off_go_on_but_not_for_ever(stage: Any) -> None:
    rail = stage.open()
    turn = stage.run(rail, [ScriptedReply(text=f"part {number}", finish="length") for number in range(9)])
    assert (turn.reason, turn.text) == ("limit", "part 2")
    assert (turn.code, turn.message) == (
        "LIMIT_EXCEEDED",
        "The turn was ended: the model's answer was cut off by its length, 3 times in a row. To go on, tell the "
        "model to continue.",
    )
    assert len(notes(rail)) == 2


def test_an_empty_answer_is_asked_for_once_more(stage: Any) -> None:
    rail = stage.open()
    assert stage.run(rail, [ScriptedReply(), ScriptedReply(text="Here.")]).text == "Here."
    assert "empty" in notes(rail)[0]


def test_two_empty_answers_are_an_error_and_the_session_goes_on_after_it(stage: Any, told: Any) -> None:
    rail = stage.open()
    agent = Agent(rail, ScriptedModel([ScriptedReply(), ScriptedReply(), ScriptedReply(text="Here.")]))
    turn = asyncio.run(agent.run("go"))
    assert (turn.reason, turn.code) == ("error", "UNAVAILABLE")
    assert len(told(rail, Error)) == 1
    later = Agent(rail, ScriptedModel([ScriptedReply(), ScriptedReply(text="Here.")]))
    assert asyncio.run(later.go_on()).text == "Here."


def test_a_withheld_answer_is_an_error_at_once(stage: Any) -> None:
    turn = stage.run(stage.open(), [ScriptedReply(finish="filtered")])
    assert (turn.reason, turn.message) == (
        "error",
        "The provider of scripted:script withheld the answer. Rephrase the prompt.",
    )


def test_what_the_loop_says_is_not_taken_for_the_persons_words(stage: Any) -> None:
    rail = stage.open()
    stage.run(rail, [ScriptedReply(), ScriptedReply(text="Here.")])
    assert b'"by_loop":true' in b"".join(encode(one.message) for one in rail.conversation.messages())
