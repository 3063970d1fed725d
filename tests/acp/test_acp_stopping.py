"""handrail acp: whatever ends a prompt, nothing of it stays."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from editor import Opened, played

DONE = {"text": "Done."}


@contextmanager
def held(workspace: Path) -> Iterator[int]:
    """A FIFO that a command writes to: it ends when nobody of the command is left."""
    os.mkfifo(workspace / "alive")
    reader = os.open(workspace / "alive", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    try:
        yield reader
    finally:
        os.close(reader)


RUN = {"calls": [["exec", {"command": "exec 9> alive; echo begun >&9; echo begun; (sleep 1000 & sleep 1000)"}]]}


async def begin(opened: Opened, alive: int) -> tuple[str, asyncio.Task[object]]:
    session = await opened.new()
    saying = asyncio.create_task(opened.say(session, "go"))
    assert await asyncio.to_thread(os.read, alive, 6) == b"begun\n"
    return session, saying


async def nobody_is_left(alive: int) -> bool:
    return await asyncio.wait_for(asyncio.to_thread(os.read, alive, 1), 30) == b""


def test_a_cancel_ends_the_command_with_all_that_it_started(start, script, workspace: Path) -> None:
    async def scene(alive: int) -> None:
        async with start("--model", script(RUN, DONE), "--mode", "full") as opened:
            session, saying = await begin(opened, alive)
            await opened.editor.until(lambda: "begun" in str(opened.editor.cards()))
            await opened.agent.cancel(session_id=session)
            assert (await saying).stop_reason == "cancelled"
            assert await nobody_is_left(alive)
            [card] = opened.editor.cards().values()
            assert (card["status"], card["raw_output"]["code"]) == ("failed", "CANCELLED")
            assert (await opened.say(session, "and now?")).stop_reason == "end_turn"

    with held(workspace) as alive:
        played(lambda: scene(alive))


@pytest.mark.parametrize("how", ["closed", "terminated"])
def test_an_editor_that_goes_leaves_nothing_running_and_the_session_can_be_loaded(
    start, script, workspace: Path, how: str
) -> None:
    model = script(RUN, DONE)
    before: list[str] = []

    async def scene(alive: int) -> None:
        async with start("--model", model, "--mode", "full") as opened:
            session, saying = await begin(opened, alive)
            before.append(session)
            if how == "terminated":
                opened.process.send_signal(signal.SIGTERM)
                with pytest.raises(ConnectionError):
                    await saying
            else:
                saying.cancel()
        assert opened.process.returncode == 0
        assert await nobody_is_left(alive)
        async with start("--model", model, "--mode", "full") as opened:
            await opened.agent.load_session(cwd=str(workspace), session_id=before[0], mcp_servers=[])
            [card] = opened.editor.cards().values()
            assert card["status"] == "failed"
            assert (await opened.say(before[0], "and now?")).stop_reason == "end_turn"

    with held(workspace) as alive:
        played(lambda: scene(alive))


def test_what_waits_for_a_yes_still_waits_when_the_editor_comes_back(start, script, workspace: Path) -> None:
    from editor import chose

    edit = {"calls": [["edit", {"path": "a.txt", "oldText": "two", "newText": "2"}]]}
    model = script(edit, DONE)
    before: list[str] = []

    async def first() -> None:
        async with start("--model", model, "--mode", "ask") as opened:
            before.append(await opened.new())
            saying = asyncio.create_task(opened.say(before[0], "make it 2"))
            await opened.editor.until(lambda: opened.editor.asked)
            saying.cancel()

    async def second() -> None:
        async with start("--model", model, "--mode", "ask") as opened:
            await opened.agent.load_session(cwd=str(workspace), session_id=before[0], mcp_servers=[])
            assert opened.editor.cards()["edit `a.txt`"]["status"] == "pending"
            opened.editor.answers.append(chose("once"))
            assert (await opened.say(before[0], "/continue")).stop_reason == "end_turn"

    played(first)
    played(second)
    assert (workspace / "a.txt").read_text() == "one\n2\nthree\n"


def test_a_turn_that_uses_up_its_calls_says_so(start, script, environment: dict[str, str]) -> None:
    config = Path(environment["HOME"], ".config", "handrail", "config.toml")
    config.parent.mkdir(parents=True)
    config.write_text("[agent]\ncalls = 1\n")
    look = {"calls": [["ls", {"path": "."}]]}

    async def scene() -> None:
        async with start("--model", script(look, look, DONE)) as opened:
            session = await opened.new()
            assert (await opened.say(session, "go")).stop_reason == "max_turn_requests"
            assert "> The turn was ended: it may make 1 calls." in opened.editor.words()

    played(scene)


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_tokens"), ("filtered", "refusal")])
def test_an_answer_that_is_not_whole_is_told_by_the_stop_reason(start, script, finish: str, reason: str) -> None:
    cut = {"text": "So far", "finish": finish}

    async def scene() -> None:
        async with start("--model", script(cut, cut, cut, cut)) as opened:
            assert (await opened.say(await opened.new(), "go")).stop_reason == reason

    played(scene)
