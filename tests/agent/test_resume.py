"""A session goes on from its journal alone: after a kill, in another process, and only where something is left."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from victim import SCRIPT

from handrail import Agent, UsageError
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import End, ToolCallEnd, ToolCallStart
from handrail.protocol.messages import AssistantMessage, ResultsMessage

VICTIM = Path(__file__).with_name("victim.py")


def kill_behind(stage: Any, number: int) -> None:
    done = subprocess.run(
        [sys.executable, VICTIM, stage.workspace, stage.state, str(number)], capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


@pytest.mark.parametrize("number", [1, 3, 5, 8, 12, 17])
def test_killed_behind_any_event_it_goes_on_and_nothing_is_done_twice(stage: Any, told: Any, number: int) -> None:
    kill_behind(stage, number)
    rail = stage.open()
    turn = asyncio.run(Agent(rail, ScriptedModel(SCRIPT)).go_on())
    assert (turn.reason, turn.text, turn.calls) == ("done", "All is done.", 4)
    assert (stage.workspace / "a.txt").read_text() == "one\ntwo\n"
    assert (stage.workspace / "b.txt").read_text() == "b\n"
    assert turn.files_changed in {("a.txt", "b.txt"), ("b.txt",), ("a.txt",)}
    calls = [event.tool_call_id for event in told(rail, ToolCallStart)]
    assert len(calls) == len(set(calls)) == 4
    assert len(told(rail, End)) == 1


def test_a_turn_that_is_over_is_not_begun_again(stage: Any, told: Any) -> None:
    rail = stage.open()
    agent = Agent(
        rail, ScriptedModel([ScriptedReply(calls=(("read", {"path": "a.txt"}),)), ScriptedReply(text="Done.")])
    )
    first = asyncio.run(agent.run("go"))
    assert asyncio.run(agent.go_on()) == first
    assert asyncio.run(Agent(stage.open(), ScriptedModel([])).go_on()) == first
    assert len(told(rail, End)) == 1


def test_results_that_are_done_but_not_in_the_talk_are_taken_from_the_journal(stage: Any, told: Any) -> None:
    rail = stage.open()
    agent = Agent(
        rail,
        ScriptedModel(
            [ScriptedReply(calls=(("write", {"path": "b.txt", "content": "x"}),)), ScriptedReply(text="Done.")]
        ),
    )
    asyncio.run(agent.run("go"))
    database = rail.rail._session.journal.database
    database.run("DELETE FROM message WHERE kind = 'results' OR number > 3", ())
    database.run("DELETE FROM event WHERE kind = 'end'", ())
    (stage.workspace / "b.txt").write_text("mine")
    later = stage.open()
    assert (
        asyncio.run(Agent(later, ScriptedModel([ScriptedReply(), ScriptedReply(text="Done.")])).go_on()).reason
        == "done"
    )
    assert (stage.workspace / "b.txt").read_text() == "mine"
    assert len(told(later, ToolCallEnd)) == 1
    kinds = [type(one.message) for one in later.conversation.messages()]
    assert kinds[-3:] == [AssistantMessage, ResultsMessage, AssistantMessage]


def test_an_end_that_was_not_told_is_told_and_the_model_not_asked(stage: Any, told: Any) -> None:
    rail = stage.open()
    asyncio.run(Agent(rail, ScriptedModel([ScriptedReply(text="Done.")])).run("go"))
    rail.rail._session.journal.database.run("DELETE FROM event WHERE kind = 'end'", ())
    later = stage.open()
    assert asyncio.run(Agent(later, ScriptedModel([])).go_on()).text == "Done."
    assert len(told(later, End)) == 1


def test_a_second_agent_on_a_session_fails_at_once(stage: Any) -> None:
    async def play() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        class Slow:
            name, window = "test:slow", 100_000

            async def stream(self, request: Any) -> Any:
                begun.set()
                await ended.wait()
                async for piece in ScriptedModel([ScriptedReply(text="Done.")]).stream(request):
                    yield piece

        first = asyncio.create_task(Agent(stage.open(), Slow()).run("go"))
        await begun.wait()
        other = Agent(stage.open(), ScriptedModel([ScriptedReply(text="Mine.")]))
        with pytest.raises(UsageError, match="session talk is in use in this process; wait"):
            await other.run("me too")
        with pytest.raises(UsageError, match="fork the session"):
            await other.go_on()
        ended.set()
        assert (await first).text == "Done."
        assert (await other.run("and now?")).reason == "error"  # it read on: the script is over

    asyncio.run(play())


def test_another_process_at_work_is_named(stage: Any) -> None:
    holds = "with Lease(sys.argv[1], 'talk'): print(flush=True); input()"
    code = f"import sys; from handrail.store.runner import Lease\n{holds}"
    folder = stage.open().rail._session.folder
    with subprocess.Popen([sys.executable, "-c", code, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(UsageError, match=f"is in use in process {other.pid}"):
            stage.run(stage.open(), [ScriptedReply(text="Done.")])
        other.kill()
    assert stage.run(stage.open(), [ScriptedReply(text="Done.")]).reason == "done"
