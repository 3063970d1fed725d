"""handrail acp: whatever ends a prompt, nothing of it stays."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest
from acp import RequestError
from acp.helpers import text_block
from editor import Opened, chose, played

from handrail.models.scripted import ScriptedModel, ScriptedReply

DONE = {"text": "Done."}
MARK = f"sleep {os.getpid()}.125"
"""Nobody else on this machine sleeps for so long."""
RUN = {"calls": [["exec", {"command": f"echo begun; ({MARK} & {MARK})", "timeoutMs": 600_000}]]}


async def begin(opened: Opened) -> tuple[str, asyncio.Task]:
    """A session with a command that has printed something."""
    session = await opened.new()
    saying = asyncio.create_task(opened.say(session, "go"))
    await opened.editor.until(lambda: "begun" in opened.editor.contents())
    assert sleepers()
    return session, saying


def sleepers() -> list[str]:
    return subprocess.run(["pgrep", "-f", MARK], capture_output=True, text=True, check=False).stdout.split()


def test_a_cancel_ends_the_command_with_all_that_it_started(start, script) -> None:
    async def scene() -> None:
        async with start("--model", script(RUN, DONE), "--mode", "full") as opened:
            session, saying = await begin(opened)
            await opened.agent.cancel(session_id=session)
            assert (await saying).stop_reason == "cancelled"
            assert not sleepers()
            [card] = opened.editor.cards().values()
            assert (card["kind"], card["status"], card["raw_output"]["code"]) == ("execute", "failed", "CANCELLED")
            assert (await opened.say(session, "and now?")).stop_reason == "end_turn"

    played(scene)


def test_who_says_something_right_after_a_cancel_is_heard_once_that_is_done(start, script) -> None:
    async def scene() -> None:
        async with start("--model", script(RUN, DONE), "--mode", "full") as opened:
            session, saying = await begin(opened)
            await opened.agent.cancel(session_id=session)
            more = asyncio.create_task(opened.say(session, "and now?"))
            assert (await saying).stop_reason == "cancelled"
            assert (await more).stop_reason == "end_turn"
            assert opened.editor.words() == "Done."

    played(scene)


def test_a_cancel_is_for_what_was_said_right_after_another_one_too(start, script) -> None:
    async def scene() -> None:
        async with start("--model", script(RUN, DONE), "--mode", "full") as opened:
            session, saying = await begin(opened)
            await opened.agent.cancel(session_id=session)
            more = asyncio.create_task(opened.agent.prompt(session_id=session, prompt=[text_block("and now?")]))
            await asyncio.sleep(0)  # it is sent
            await opened.agent.cancel(session_id=session)
            assert [(await one).stop_reason for one in (saying, more)] == ["cancelled", "cancelled"]
            assert opened.editor.words() == ""

    played(scene)


def test_a_cancel_while_the_model_speaks_keeps_what_it_said(start, workspace: Path) -> None:
    async def hold(piece: int) -> None:
        if piece == 2:
            await asyncio.Event().wait()

    model = ScriptedModel([ScriptedReply(text="So far and no further.", waits=hold)])

    async def scene() -> None:
        async with start("--model", "scripted:x", model=model) as opened, start(model=model) as another:
            session = await opened.new()
            saying = asyncio.create_task(opened.say(session, "go"))
            await opened.editor.until(lambda: opened.editor.words() == "So far ")
            await another.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            with pytest.raises(RequestError, match="is in use in this process"):
                await another.say(session, "me too")
            await opened.agent.cancel(session_id=session)
            assert (await saying).stop_reason == "cancelled"
            await another.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            assert another.editor.words().endswith("So far ")

    played(scene)


@pytest.mark.parametrize("how", ["closed", "terminated"])
def test_an_editor_that_goes_leaves_nothing_running_and_the_session_can_be_loaded(
    start_apart, script, workspace: Path, how: str
) -> None:
    model = script(RUN, DONE)

    async def scene() -> None:
        async with start_apart("--model", model, "--mode", "full") as opened:
            session, saying = await begin(opened)
            if how == "terminated":
                opened.process.send_signal(signal.SIGTERM)
                assert (await saying).stop_reason == "cancelled"
            saying.cancel()
        assert (opened.process.returncode, sleepers()) == (0, [])
        async with start_apart("--model", model, "--mode", "full") as opened:
            await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            [card] = opened.editor.cards().values()
            assert card["status"] == "failed"
            assert (await opened.say(session, "and now?")).stop_reason == "end_turn"

    played(scene)


def test_what_goes_on_in_the_background_ends_with_the_editor(start_apart, script) -> None:
    stays = {"calls": [["exec", {"command": MARK, "background": True}]]}

    async def scene() -> None:
        async with start_apart("--model", script(stays, DONE), "--mode", "full") as opened:
            await opened.say(await opened.new(), "go")
            assert sleepers()
        assert (opened.process.returncode, sleepers()) == (0, [])

    played(scene)


def test_who_only_looks_at_a_session_ends_nothing_of_it(start, script, workspace: Path) -> None:
    stays = {"calls": [["exec", {"command": MARK, "background": True}]]}
    model = script(stays, RUN, DONE)

    async def scene() -> None:
        async with start("--model", model, "--mode", "full") as opened:
            session, saying = await begin(opened)
            before = sleepers()
            async with start("--model", model, "--mode", "full") as another:
                await another.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
                assert another.editor.cards()[MARK]["status"] == "completed"
                with pytest.raises(RequestError, match="is in use in this process"):
                    await another.say(session, "me too")
            assert sleepers() == before
            await opened.agent.cancel(session_id=session)
            assert (await saying).stop_reason == "cancelled"
        assert not sleepers()

    played(scene)


def test_what_waits_for_a_yes_still_waits_when_the_editor_comes_back(start, script, workspace: Path) -> None:
    edit = {"calls": [["edit", {"path": "a.txt", "oldText": "two", "newText": "2"}]]}
    model = script(edit, DONE)

    async def scene() -> None:
        async with start("--model", model, "--mode", "ask") as opened:
            session = await opened.new()
            saying = asyncio.create_task(opened.say(session, "make it 2"))
            await opened.editor.until(lambda: opened.editor.asked)
            saying.cancel()
        async with start("--model", model, "--mode", "ask") as opened:
            await opened.agent.load_session(cwd=str(workspace), session_id=session, mcp_servers=[])
            assert opened.editor.cards()["edit a.txt"]["status"] == "pending"
            opened.editor.answers.append(chose("once"))
            assert (await opened.say(session, "/continue")).stop_reason == "end_turn"

    played(scene)
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
