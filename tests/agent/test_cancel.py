"""Cancel at any moment: nothing runs on, every call has its result, the turn ends once, and the next prompt works."""

import asyncio
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from handrail import Agent, Parked
from handrail.models.base import Completion, ModelError, TextPiece
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import End, Notice, Text, ToolCallError, ToolCallPermissionRequired, ToolCallRunning
from handrail.protocol.messages import AssistantMessage, ResultsMessage, TextPart, UserMessage

SLEEPS = f"sleep 987.{os.getpid():08}"
"""No other run's commands are called so."""
SLEEP = ("exec", {"command": f"echo begun; {SLEEPS}"})


def talk(rail: Any) -> list[Any]:
    return [one.message for one in rail.conversation.messages()]


def check_ended(rail: Any) -> None:
    """Ended once, by the person; the talk can be sent as it is, and the session takes calls."""
    ends = [event for event in rail.events() if isinstance(event, End)]
    assert [end.reason for end in ends] == ["cancelled"]
    said = talk(rail)
    for before, after in zip(said, [*said[1:], None], strict=True):
        if isinstance(before, AssistantMessage) and before.calls:
            assert isinstance(after, ResultsMessage)
    assert rail.rail.read("a.txt").ok
    assert subprocess.run(["pgrep", "-f", SLEEPS], capture_output=True, check=False).stdout == b""


class Endless:
    """Says something and never comes to an end, unless it was told to be brief."""

    name, window = "test:endless", 100_000

    async def stream(self, request: Any) -> Any:
        yield TextPiece("I think ")
        yield TextPiece("that ")
        if "brief" not in request.messages[-1].text:
            await asyncio.Event().wait()
        yield Completion(parts=(TextPart(text="Fine."),), finish="stop")


def when(rail: Any, kind: type, act: Any) -> None:
    rail.subscribe(lambda event: isinstance(event, kind) and act())


@pytest.mark.parametrize("way", ["agent", "thread", "task"])
def test_while_the_model_speaks(stage: Any, way: str) -> None:
    rail = stage.open()

    async def play() -> None:
        agent = Agent(rail, Endless())
        spoke = asyncio.Event()
        when(rail, Text, spoke.set)
        task = asyncio.create_task(agent.run("go"))
        await spoke.wait()
        if way == "task":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            cancel = agent.cancel if way == "agent" else lambda: asyncio.to_thread(agent.cancel)
            said = cancel()
            assert said if isinstance(said, bool) else await said
            assert (await task).reason == "cancelled"
        check_ended(rail)
        assert (await agent.run("be brief")).text == "Fine."

    asyncio.run(play())
    user, said, note, brief, fine = (one for one in talk(rail) if not hasattr(one, "tools"))
    assert isinstance(user, UserMessage)
    assert (said.text, said.finish) == ("I think that", "other")
    assert note.by_loop
    assert (brief.text, fine.text) == ("be brief", "Fine.")


@pytest.mark.parametrize("way", ["agent", "task"])
def test_while_a_command_runs(stage: Any, told: Any, way: str) -> None:
    rail = stage.open(mode="full")

    async def play() -> None:
        edit = ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})
        agent = Agent(rail, ScriptedModel([ScriptedReply(calls=(SLEEP, edit)), ScriptedReply(text="Fine.")]))
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(agent.run("go"))
        cancel = agent.cancel if way == "agent" else lambda: loop.call_soon_threadsafe(task.cancel)
        when(rail, ToolCallRunning, cancel)
        if way == "agent":
            assert (await task).reason == "cancelled"
        else:
            with pytest.raises(asyncio.CancelledError):
                await task
        check_ended(rail)
        assert (await agent.run("go on")).text == "Fine."

    asyncio.run(play())
    assert {event.result.error.code for event in told(rail, ToolCallError)} == {"CANCELLED"}
    assert (stage.workspace / "a.txt").read_text() == "one\n"


def test_while_it_waits_for_the_provider(stage: Any) -> None:
    rail = stage.open()
    busy = ModelError("UNAVAILABLE", "It is overloaded.", retryable=True, after=100)

    async def play() -> None:
        agent = Agent(rail, ScriptedModel([ScriptedReply(fails=busy)]))
        when(rail, Notice, agent.cancel)
        assert (await agent.run("go")).reason == "cancelled"
        check_ended(rail)

    asyncio.run(play())


def test_while_a_person_is_asked(stage: Any, told: Any) -> None:
    rail = stage.open(mode="ask")

    async def play() -> None:
        async def person(parked: Parked) -> Parked:
            await asyncio.Event().wait()
            return parked

        calls = (("write", {"path": "b.txt", "content": "x"}), ("read", {"path": "a.txt"}))
        agent = Agent(rail, ScriptedModel([ScriptedReply(calls=calls), ScriptedReply(text="Fine.")]), person=person)
        when(rail, ToolCallPermissionRequired, agent.cancel)
        turn = await agent.run("go")
        assert (turn.reason, turn.requests) == ("cancelled", ())
        check_ended(rail)
        assert not await rail.waiting()
        assert (await agent.run("go on")).text == "Fine."

    asyncio.run(play())
    assert [event.result.error.code for event in told(rail, ToolCallError)] == ["PERMISSION_DENIED", "CANCELLED"]
    assert not (stage.workspace / "b.txt").exists()


def test_while_a_question_waits(stage: Any, told: Any) -> None:
    rail = stage.open()

    async def play() -> None:
        agent: Agent

        async def person(parked: Parked) -> Parked:
            assert agent.cancel()
            await asyncio.Event().wait()
            return parked

        ask = ("question", {"question": "Which?", "options": ["this", "that"]})
        agent = Agent(rail, ScriptedModel([ScriptedReply(calls=(ask,)), ScriptedReply(text="Fine.")]), person=person)
        assert (await agent.run("go")).reason == "cancelled"
        check_ended(rail)
        assert (await agent.run("go on")).text == "Fine."

    asyncio.run(play())
    assert len(told(rail, ToolCallError)) == 1


def test_cancelled_again_and_again_it_still_ends_once(stage: Any) -> None:
    rail = stage.open(mode="full")

    async def play() -> None:
        agent = Agent(rail, ScriptedModel([ScriptedReply(calls=(SLEEP,)), ScriptedReply(text="Fine.")]))
        task = asyncio.create_task(agent.run("go"))
        begun = asyncio.Event()
        when(rail, ToolCallRunning, lambda: loop.call_soon_threadsafe(begun.set))
        await begun.wait()
        while not task.done():
            task.cancel()
            agent.cancel()
            await asyncio.wait({task}, timeout=0.01)
        assert task.cancelled()
        check_ended(rail)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(play())
    loop.close()


def test_without_a_turn_there_is_nothing_to_cancel(stage: Any) -> None:
    rail = stage.open()
    agent = Agent(rail, ScriptedModel([ScriptedReply(text="Fine.")]))
    assert not agent.cancel()
    assert asyncio.run(agent.run("go")).reason == "done"
    assert not agent.cancel()
    assert rail.rail.read("a.txt").ok


def test_a_turn_that_was_cancelled_is_over(stage: Any) -> None:
    rail = stage.open()

    async def play() -> None:
        agent = Agent(rail, Endless())
        when(rail, Text, agent.cancel)
        assert (await agent.run("go")).reason == "cancelled"
        assert (await agent.go_on()).reason == "cancelled"
        check_ended(rail)

    asyncio.run(play())


def test_a_session_that_somebody_else_cancelled_ends_its_turn(stage: Any, tmp_path: Path) -> None:
    rail = stage.open(mode="full")
    timer = threading.Event()
    when(rail, ToolCallRunning, lambda: (rail.cancel(), timer.set()))
    turn = stage.run(rail, [ScriptedReply(calls=(SLEEP,)), ScriptedReply(text="Fine.")])
    assert turn.reason == "cancelled"
    assert rail.conversation.cancelled
    rail.uncancel()
    check_ended(rail)


def test_at_the_last_moment_it_does_not_end_the_next_turn(stage: Any) -> None:
    rail = stage.open()

    async def play() -> None:
        second = ScriptedReply(text="Second.", waits=lambda _: asyncio.sleep(0))
        agent = Agent(rail, ScriptedModel([ScriptedReply(text="First."), second]))
        when(rail, End, agent.cancel)  # the turn is over, and nobody has been told so yet
        assert (await agent.run("go")).text == "First."
        turn = await agent.run("go on")
        assert (turn.reason, turn.text) == ("done", "Second.")

    asyncio.run(play())
    assert not rail.conversation.cancelled


def test_a_signal_that_interrupts_a_cancel_may_cancel_too(stage: Any) -> None:
    rail = stage.open()
    cancel, handled = rail.cancel, list[bool]()

    async def play() -> None:
        agent = Agent(rail, Endless())

        def interrupted() -> None:
            cancel()
            if not handled:
                handled.append(False)
                handled[0] = agent.cancel()  # as a handler does, which runs in the same thread

        rail.cancel = interrupted
        spoke = asyncio.Event()
        when(rail, Text, spoke.set)
        task = asyncio.create_task(agent.run("go"))
        await spoke.wait()
        assert agent.cancel()
        assert (await task).reason == "cancelled"

    asyncio.run(play())
    assert handled == [True]
