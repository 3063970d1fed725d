"""What waits for a person: answered by a hook, later, or talked over."""

import asyncio
from typing import Any

import pytest

from handrail import Agent, Done, Parked
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import End, ToolCallPermissionDenied
from handrail.protocol.messages import AssistantMessage, ResultsMessage, UserMessage

WRITE = ("write", {"path": "b.txt", "content": "x\n"})
EDIT = ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})
ASK = ("question", {"question": "Which?", "options": ["this", "that"]})


def results(rail: Any) -> list[Any]:
    said = [one.message for one in rail.conversation.messages()]
    return [result for one in said if isinstance(one, ResultsMessage) for result in one.results]


def test_a_person_is_asked_and_the_turn_goes_on(stage: Any, told: Any) -> None:
    rail = stage.open(mode="ask")

    async def person(parked: Parked) -> Done | Parked:
        outcome: Done | Parked = parked
        for request in parked.requests:
            outcome = await rail.answer(request, "once")
        return outcome

    turn = stage.run(rail, [ScriptedReply(calls=(WRITE, EDIT)), ScriptedReply(text="Done.")], person=person)
    assert (turn.reason, turn.files_changed) == ("done", ("b.txt", "a.txt"))
    assert [end.reason for end in told(rail, End)] == ["done"]


def test_without_a_person_the_turn_ends_and_goes_on_when_all_is_answered(stage: Any, told: Any) -> None:
    rail = stage.open(mode="ask")
    agent = Agent(rail, ScriptedModel([ScriptedReply(calls=(WRITE, EDIT)), ScriptedReply(text="Done.")]))
    turn = asyncio.run(agent.run("go"))
    assert (turn.reason, len(turn.requests)) == ("parked", 2)
    first, second = turn.requests
    asyncio.run(rail.answer(first, "once"))
    assert asyncio.run(agent.go_on()).requests == (second,)
    assert not (stage.workspace / "b.txt").exists()
    elsewhere = stage.open(mode="ask")
    asyncio.run(elsewhere.answer(second, "deny", reason="leave it"))
    last = asyncio.run(agent.go_on())
    assert (last.reason, last.files_changed) == ("done", ("b.txt",))
    assert [end.reason for end in told(rail, End)] == ["parked", "done"]


def test_a_prompt_over_a_request_refuses_it_and_nothing_of_its_batch_runs(stage: Any, told: Any) -> None:
    rail = stage.open(mode="ask")
    agent = Agent(
        rail, ScriptedModel([ScriptedReply(calls=(WRITE, ("read", {"path": "a.txt"}))), ScriptedReply(text="Fine.")])
    )
    asyncio.run(agent.run("go"))
    turn = asyncio.run(agent.run("No, only look."))
    assert (turn.reason, turn.text, turn.calls) == ("done", "Fine.", 0)
    (denied,) = told(rail, ToolCallPermissionDenied)
    assert denied.answer.reason == "They said instead: No, only look."
    assert [result.ok for result in results(rail)] == [False, False]
    assert not asyncio.run(rail.waiting())
    assert not (stage.workspace / "b.txt").exists()
    said = [one.message for one in rail.conversation.messages() if not hasattr(one.message, "tools")]
    assert [type(one) for one in said] == [
        UserMessage, AssistantMessage, ResultsMessage, UserMessage, AssistantMessage
    ]  # fmt: skip


def test_a_prompt_to_a_question_is_the_reply(stage: Any, told: Any) -> None:
    rail = stage.open()
    agent = Agent(rail, ScriptedModel([ScriptedReply(calls=(ASK,)), ScriptedReply(text="Fine.")]))
    turn = asyncio.run(agent.run("go"))
    assert (turn.reason, [question.question for question in turn.questions]) == ("question", ["Which?"])
    again = asyncio.run(agent.go_on())
    assert again.reason == "question"
    last = asyncio.run(agent.run("that"))
    assert (last.reason, last.calls) == ("done", 1)
    (result,) = results(rail)
    assert result.ok
    assert "that" in result.content
    assert [end.reason for end in told(rail, End)] == ["question", "done"]


def test_what_is_no_reply_begins_another_turn(stage: Any) -> None:
    rail = stage.open()
    agent = Agent(rail, ScriptedModel([ScriptedReply(calls=(ASK,)), ScriptedReply(text="Fine.")]))
    asyncio.run(agent.run("go"))
    turn = asyncio.run(agent.run("Forget it, say hello."))
    assert (turn.reason, turn.calls) == ("done", 0)
    assert [result.ok for result in results(rail)] == [False]
    said = [one.message for one in rail.conversation.messages()]
    assert [one.text for one in said if isinstance(one, UserMessage)] == ["go", "Forget it, say hello."]


@pytest.mark.parametrize("calls", [(ASK, EDIT), (EDIT, ASK)])
def test_a_question_beside_other_calls_is_not_asked(stage: Any, calls: Any) -> None:
    rail = stage.open()
    turn = stage.run(rail, [ScriptedReply(calls=calls), ScriptedReply(text="Done.")])
    assert (turn.reason, turn.files_changed) == ("done", ("a.txt",))
    assert sorted(result.ok for result in results(rail)) == [False, True]
