"""A fork: the same talk up to here, and another way from here."""

import asyncio
import sys
from typing import Any

import pytest

from handrail import Agent, UsageError
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import Notice

READ = ("read", {"path": "a.txt"})
WRITE = ("write", {"path": "b.txt", "content": "x\n"})


def talk(rail: Any) -> list[Any]:
    return [one.message for one in rail.conversation.messages()]


def test_a_fork_knows_what_was_said_and_goes_its_own_way(stage: Any, told: Any) -> None:
    rail = stage.open()
    script = [ScriptedReply(calls=(READ,)), ScriptedReply(text="First."), ScriptedReply(text="Second.")]
    stage.run(rail, script)
    fork = stage.open(asyncio.run(rail.fork_session("other")))
    assert talk(fork) == talk(rail)
    assert stage.run(fork, script, prompt="And now?").text == "Second."
    assert len(talk(fork)) == len(talk(rail)) + 2
    assert told(fork, Notice)[0].text.startswith("Forked from session talk behind its event ")


def test_a_turn_that_was_over_is_over_in_the_fork(stage: Any) -> None:
    rail = stage.open()
    stage.run(rail, [ScriptedReply(calls=(READ,)), ScriptedReply(text="First.")])
    fork = stage.open(asyncio.run(rail.fork_session()))
    turn = asyncio.run(Agent(fork, ScriptedModel([])).go_on())
    assert (turn.reason, turn.text) == ("done", "First.")


def test_what_waits_is_not_taken_along_and_not_run_twice(stage: Any) -> None:
    rail = stage.open(mode="ask")
    script = [ScriptedReply(calls=(WRITE,)), ScriptedReply(text="Done.")]
    (request,) = stage.run(rail, script).requests
    fork = stage.open(asyncio.run(rail.fork_session()), mode="ask")
    assert not asyncio.run(fork.waiting())
    assert asyncio.run(Agent(fork, ScriptedModel(script)).go_on()).reason == "done"
    assert "was not made" in talk(fork)[-2].results[0].content
    assert not (stage.workspace / "b.txt").exists()
    asyncio.run(rail.answer(request, "once"))
    assert asyncio.run(Agent(rail, ScriptedModel(script)).go_on()).files_changed == ("b.txt",)


def test_what_a_person_granted_is_not_taken_along(stage: Any) -> None:
    rail = stage.open(mode="ask")
    calls = (("exec", {"command": "touch b.txt"}),)
    (request,) = stage.run(rail, [ScriptedReply(calls=calls), ScriptedReply(text="Done.")]).requests
    asyncio.run(rail.answer(request, "session"))
    fork = stage.open(asyncio.run(rail.fork_session()), mode="ask")
    assert asyncio.run(rail.grants())
    assert not asyncio.run(fork.grants())


def test_a_file_that_was_read_before_and_changed_since_is_stale_in_the_fork_too(stage: Any) -> None:
    rail = stage.open()
    stage.run(rail, [ScriptedReply(calls=(READ,)), ScriptedReply(text="Read.")])
    fork = stage.open(asyncio.run(rail.fork_session()))
    (stage.workspace / "a.txt").write_text("one and more\n")
    result = asyncio.run(fork.edit("a.txt", "one", "two"))
    assert result.error is not None
    assert result.error.code == "STALE_FILE"


def test_a_large_output_can_be_read_in_the_fork(stage: Any) -> None:
    (stage.workspace / "large").mkdir()
    for number in range(900):
        (stage.workspace / "large" / f"{number:060}.txt").write_text("x")
    rail = stage.open()
    stage.run(
        rail, [ScriptedReply(calls=(("find", {"pattern": "*.txt", "maxResults": 1000}),)), ScriptedReply(text="Found.")]
    )
    (result,) = [one.results[0] for one in talk(rail) if hasattr(one, "results")]
    reference = f"@output/{result.tool_call_id}"
    assert reference in result.content
    fork = stage.open(asyncio.run(rail.fork_session()))
    assert asyncio.run(fork.read(reference)).ok


def test_a_session_that_there_is_is_not_written_over(stage: Any) -> None:
    rail = stage.open()
    stage.open("other")
    with pytest.raises(UsageError, match="there is a session other already"):
        asyncio.run(rail.fork_session("other"))
    with pytest.raises(UsageError, match="a session id is made of"):
        asyncio.run(rail.fork_session("../x"))


def test_a_fork_that_was_cut_off_is_no_session(stage: Any) -> None:
    rail = stage.open()
    stage.run(rail, [ScriptedReply(calls=(READ,)), ScriptedReply(text="First.")])

    def interrupt(frame: Any, event: str, _: object) -> None:
        if (event, frame.f_code.co_name) == ("call", "_close_calls"):
            sys.setprofile(None)
            raise KeyboardInterrupt

    def fork() -> None:
        sys.setprofile(interrupt)
        rail.rail.fork_session("other")

    with pytest.raises(KeyboardInterrupt):
        fork()
    assert asyncio.run(rail.fork_session("other")) == "other"
    assert talk(stage.open("other")) == talk(rail)
