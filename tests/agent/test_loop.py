"""A turn: what the model says and does, what is told of it, and what it left."""

import asyncio
from typing import Any

import pytest

from handrail import Agent, UsageError
from handrail.models.base import CallPiece, Completion, ModelError, ReasoningPiece, StreamPiece, TextPiece
from handrail.models.scripted import ScriptedModel, ScriptedReply, TokenUsage
from handrail.protocol.events import End, Error, Reasoning, Text, ToolCallEnd, ToolCallError, Usage
from handrail.protocol.messages import AssistantMessage, ResultsMessage, TextPart, UserMessage

READ = ("read", {"path": "a.txt"})
EDIT = ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})


def messages(rail: Any) -> list[Any]:
    return [one.message for one in rail.conversation.messages()]


class Speaker:
    """A model that says pieces as they are given, with pauses where an event is."""

    name, window = "test:speaker", 100_000

    def __init__(self, *pieces: StreamPiece | asyncio.Event | ModelError) -> None:
        self._pieces = pieces

    async def stream(self, request: Any) -> Any:
        for piece in self._pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            elif isinstance(piece, ModelError):
                raise piece
            else:
                yield piece


def words(*texts: str) -> Completion:
    return Completion(parts=(TextPart(text="".join(texts)),), finish="stop")


def test_a_turn_says_what_it_did(stage: Any, told: Any) -> None:
    rail = stage.open()
    spent = TokenUsage(input_tokens=100, output_tokens=20)
    script = [
        ScriptedReply(calls=(READ,), spent=spent),
        ScriptedReply(calls=(EDIT, EDIT), spent=spent),
        ScriptedReply(text="Done.", spent=spent),
    ]
    turn = stage.run(rail, script)
    assert (turn.reason, turn.text, turn.calls, turn.files_changed, turn.tokens) == (
        "done",
        "Done.",
        3,
        ("a.txt",),
        360,
    )
    (end,) = told(rail, End)
    assert (end.reason, end.text, end.calls, end.files_changed) == ("done", "Done.", 3, ("a.txt",))
    assert len(told(rail, Usage)) == 3
    assert (stage.workspace / "a.txt").read_text() == "two\n"


def test_the_model_is_told_where_a_page_ends_and_what_it_is_warned_of(stage: Any) -> None:
    rail = stage.open()
    (stage.workspace / "long.txt").write_text("1\n2\n3\n")
    broken = ("write", {"path": "new.json", "content": "{"})
    stage.run(
        rail, [ScriptedReply(calls=(("read", {"path": "long.txt", "limit": 1}), broken)), ScriptedReply(text="Done.")]
    )
    (results,) = [one.results for one in messages(rail) if isinstance(one, ResultsMessage)]
    assert results[0].content == "1\n[Read lines 1–1 of 3 of long.txt. Continue with offset 2.]\n"
    assert "[new.json was written, but it is not valid JSON" in results[1].content


def test_every_call_is_written_down_before_it_runs_and_every_result_after(stage: Any) -> None:
    rail = stage.open()
    stage.run(rail, [ScriptedReply(text="I look.", calls=(READ, EDIT)), ScriptedReply(text="Done.")])
    said = [one for one in messages(rail) if not hasattr(one, "tools")]
    assert [type(one) for one in said] == [UserMessage, AssistantMessage, ResultsMessage, AssistantMessage]
    assert [one.tool_call_id for one in said[2].results] == [call.tool_call_id for call in said[1].calls]
    assert said[2].results[1].files_changed == ("a.txt",)


def test_a_second_prompt_is_a_turn_of_its_own(stage: Any, told: Any) -> None:
    rail = stage.open()
    agent = Agent(
        rail, ScriptedModel([ScriptedReply(calls=(READ,)), ScriptedReply(text="First."), ScriptedReply(text="Second.")])
    )
    first = asyncio.run(agent.run("one"))
    second = asyncio.run(agent.run("two"))
    assert (first.calls, first.text, second.calls, second.text) == (1, "First.", 0, "Second.")
    assert [end.text for end in told(rail, End)] == ["First.", "Second."]


def test_the_first_words_are_told_while_the_model_is_still_speaking(stage: Any) -> None:
    rail = stage.open()

    async def play() -> list[str]:
        heard: list[str] = []
        first, last = asyncio.Event(), asyncio.Event()
        rail.subscribe(lambda event: isinstance(event, Text) and (heard.append(event.text), first.set()))
        model = Speaker(TextPiece("Hello"), last, TextPiece(" you"), words("Hello you"))
        turn = asyncio.create_task(Agent(rail, model).run("hi"))
        await first.wait()
        so_far = [*heard]
        last.set()
        await turn
        return so_far

    assert asyncio.run(play()) == ["Hello"]


def test_words_that_a_slow_model_said_are_told_although_it_says_no_more(stage: Any) -> None:
    rail = stage.open()

    async def play() -> None:
        said, last = asyncio.Event(), asyncio.Event()
        rail.subscribe(lambda event: isinstance(event, Text) and event.text.endswith("three") and said.set())
        model = Speaker(TextPiece("one "), TextPiece("two "), TextPiece("three"), last, words("one two three"))
        turn = asyncio.create_task(Agent(rail, model).run("hi"))
        await said.wait()
        last.set()
        await turn

    asyncio.run(play())


def test_a_fast_model_does_not_cost_an_event_a_word_and_nothing_is_lost(stage: Any, told: Any) -> None:
    rail = stage.open()
    pieces = [TextPiece(f"w{number} ") for number in range(1000)]
    whole = "".join(piece.text for piece in pieces)
    asyncio.run(Agent(rail, Speaker(ReasoningPiece("hm "), ReasoningPiece("hm"), *pieces, words(whole))).run("hi"))
    texts = [event.text for event in told(rail, Text)]
    assert "".join(texts) == whole
    assert texts[0] == "w0 "
    assert len(texts) < 200
    assert "".join(event.text for event in told(rail, Reasoning)) == "hm hm"


def test_each_line_is_told_when_it_is_whole(stage: Any, told: Any) -> None:
    rail = stage.open()
    pieces = [TextPiece("a"), TextPiece("b\n"), TextPiece("c"), TextPiece("d")]
    asyncio.run(Agent(rail, Speaker(*pieces, words("ab\ncd"))).run("hi"))
    assert [event.text for event in told(rail, Text)] == ["a", "b\n", "cd"]


def test_words_before_an_error_are_not_lost(stage: Any, told: Any) -> None:
    rail = stage.open()
    model = Speaker(TextPiece("a "), TextPiece("b "), TextPiece("c"), ModelError("UNAVAILABLE", "It broke off."))
    turn = asyncio.run(Agent(rail, model).run("hi"))
    assert "".join(event.text for event in told(rail, Text)) == "a b c"
    assert (turn.reason, turn.code, turn.message) == ("error", "UNAVAILABLE", "It broke off.")
    assert not [one for one in messages(rail) if isinstance(one, AssistantMessage)]


def test_who_listens_hears_that_a_call_takes_shape(stage: Any) -> None:
    heard: list[StreamPiece] = []
    stage.run(
        stage.open(), [ScriptedReply(text="So.", calls=(READ,)), ScriptedReply(text="Done.")], on_piece=heard.append
    )
    assert CallPiece("read") in heard


def test_a_model_that_ends_in_the_middle_is_asked_again_and_then_given_up(stage: Any, told: Any) -> None:
    rail = stage.open()

    async def at_once(_: float) -> None:
        pass

    turn = asyncio.run(Agent(rail, Speaker(TextPiece("half")), sleep=at_once).run("hi"))
    assert (turn.reason, turn.code) == ("error", "UNAVAILABLE")
    assert len(told(rail, Error)) == 1


def test_a_question_for_a_tool_that_is_not_there_is_answered_and_the_turn_goes_on(stage: Any, told: Any) -> None:
    rail = stage.open()
    turn = stage.run(rail, [ScriptedReply(calls=(("read_file", {"path": "a.txt"}),)), ScriptedReply(text="Sorry.")])
    assert (turn.reason, turn.calls) == ("done", 1)
    assert [event.result.error.code for event in told(rail, ToolCallError)] == ["UNKNOWN_TOOL"]


def test_arguments_that_are_no_json_run_nothing(stage: Any, told: Any) -> None:
    rail = stage.open()
    turn = stage.run(
        rail, [ScriptedReply(calls=(("write", '{"path": "b.txt", "content": "x'),)), ScriptedReply(text="Sorry.")]
    )
    assert [event.result.error.code for event in told(rail, ToolCallError)] == ["INVALID_ARGUMENT"]
    assert turn.reason == "done"
    assert not (stage.workspace / "b.txt").exists()


@pytest.mark.parametrize("text", ["\ud83d", "a\udcffb"])
def test_half_a_character_breaks_nothing(stage: Any, told: Any, text: str) -> None:
    rail = stage.open()
    script = [
        ScriptedReply(text=text, calls=(("write", {"path": "b.txt", "content": text}),)),
        ScriptedReply(text="Done."),
    ]
    assert stage.run(rail, script, prompt=f"say {text}").reason == "done"
    assert not (stage.workspace / "b.txt").exists()
    assert not told(rail, ToolCallEnd)


def test_without_a_prompt_there_is_nothing_to_go_on_with(stage: Any) -> None:
    with pytest.raises(UsageError, match="give it a prompt"):
        asyncio.run(Agent(stage.open(), ScriptedModel([])).go_on())


def test_closing_lets_go_of_the_models_connections_and_a_later_prompt_works(stage: Any) -> None:
    closed: list[bool] = []

    class Connected(ScriptedModel):
        async def close(self) -> None:
            closed.append(True)

    async def play() -> None:
        agent = Agent(stage.open(), Connected([ScriptedReply(text="One."), ScriptedReply(text="Two.")]))
        assert (await agent.run("go")).text == "One."
        await agent.close()
        assert (await agent.run("go on")).text == "Two."

    asyncio.run(play())
    assert closed == [True]
