"""What a person may do to a conversation from a session: steer a turn, compact it, go back before a prompt."""

import asyncio
from typing import Any

import pytest

from handrail import Agent
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import User
from handrail.protocol.messages import SummaryMessage, UserMessage

READ = ("read", {"path": "a.txt"})
EDIT = ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})
WRITE = ("write", {"path": "b.txt", "content": "b\n"})


def messages(rail: Any) -> list[Any]:
    return [one.message for one in rail.conversation.messages()]


def test_a_message_to_the_running_turn_comes_with_the_next_result_and_stays_in_the_turn(stage: Any, told: Any) -> None:
    rail = stage.open()
    waiting = [("use tabs",), (), ()]
    heard: list[str] = []

    def listen(request: Any) -> ScriptedReply:
        heard.extend(one.text for one in request.messages if isinstance(one, UserMessage))
        return ScriptedReply(calls=(EDIT,))

    script = [ScriptedReply(calls=(WRITE,)), listen, ScriptedReply(text="Done.")]
    turn = stage.run(rail, script, steering=lambda: waiting.pop(0))
    assert heard == ["Do it.", "use tabs"]
    assert (turn.calls, turn.files_changed) == (2, ("b.txt", "a.txt"))
    prompts = told(rail, User)
    assert [event.text for event in prompts] == ["Do it.", "use tabs"]
    assert asyncio.run(rail.list_turn_changes([prompts[0].message_id])) == (2, 1)


def test_the_changes_of_turns_are_listed_until_they_are_undone(stage: Any, told: Any) -> None:
    rail = stage.open()
    script = [
        ScriptedReply(calls=(WRITE,)),
        ScriptedReply(text="b"),
        ScriptedReply(calls=(EDIT,)),
        ScriptedReply(text="a"),
    ]
    stage.run(rail, script)
    stage.run(rail, script, prompt="And a.")
    first, second = (event.message_id for event in told(rail, User))
    assert asyncio.run(rail.list_turn_changes([first])) == (1,)
    assert asyncio.run(rail.list_turn_changes([first, second])) == (2, 1)
    assert "+one" in asyncio.run(rail.preview_undo((2, 1)))
    assert asyncio.run(rail.undo((2, 1))).ok
    assert asyncio.run(rail.list_turn_changes([first, second])) == ()
    assert not (stage.workspace / "b.txt").exists()


def test_a_fork_before_a_prompt_knows_nothing_of_it(stage: Any) -> None:
    rail = stage.open()
    script = [ScriptedReply(text="First."), ScriptedReply(text="Second.")]
    stage.run(rail, script)
    stage.run(rail, script, prompt="And then?")
    number = next(
        one.number
        for one in rail.conversation.messages()
        if isinstance(one.message, UserMessage) and one.message.text == "And then?"
    )
    fork = stage.open(asyncio.run(rail.fork_session("back", before=number)))
    assert [one.text for one in messages(fork) if isinstance(one, UserMessage)] == ["Do it."]
    assert stage.run(fork, script, prompt="Otherwise.").text == "Second."
    assert len(messages(rail)) > len(messages(fork)) - 2


@pytest.mark.parametrize("rounds", [0, 40])
def test_a_long_conversation_is_compacted_on_demand(stage: Any, rounds: int) -> None:
    rail = stage.open()
    words = "word " * 2_000
    script = [ScriptedReply(text=f"{words}{number}") for number in range(rounds + 1)]
    model = ScriptedModel(script, summary=ScriptedReply(text="They counted."))

    async def talk() -> bool:
        agent = Agent(rail, model)
        for number in range(rounds + 1):
            await agent.run(f"{number}?")
        return await agent.compact()

    if not rounds:
        script[0] = ScriptedReply(text="Short.")
    assert asyncio.run(talk()) == bool(rounds)
    assert bool([one for one in messages(rail) if isinstance(one, SummaryMessage)]) == bool(rounds)
