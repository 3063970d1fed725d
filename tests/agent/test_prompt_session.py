"""The system prompt of a session: made once, kept for the cache, made anew when tools or skills change."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import AsyncHandrail
from handrail.agent.prompt import prepare_system
from handrail.agent.transcript import Transcript
from handrail.protocol.events import Notice
from handrail.protocol.messages import SystemMessage
from handrail.settings import Settings
from handrail.settings.model import Tools

Play = Callable[..., list[str]]


@pytest.fixture
def prepared(tmp_path: Path, workspace: Path) -> Play:
    """Opens the same session, each time as a process of its own would, prepares the prompt; all prompts so far."""

    async def play(then: Callable[[AsyncHandrail], Awaitable[Any]] | None, **tools: Any) -> list[str]:
        options: dict[str, Any] = {"mode": "auto", "settings": Settings(tools=Tools(**tools)), "session": "one"}
        async with AsyncHandrail(workspace, state_dir=tmp_path / "state", **options) as rail:
            talk = Transcript(rail.conversation)
            await prepare_system(rail, talk)
            if then:
                await then(rail)
            return [one.message.text for one in talk.messages if isinstance(one.message, SystemMessage)]

    def run(then: Any = None, **tools: Any) -> list[str]:
        return asyncio.run(play(then, **tools))

    return run


def test_it_is_written_down_once_and_stays_in_a_later_process(prepared: Play, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("rule one")
    [text] = prepared()
    assert "rule one" in text
    (workspace / "AGENTS.md").write_text("rule two")
    assert prepared() == [text]


def test_with_other_tools_it_is_made_anew_and_changed_instructions_are_told(prepared: Play, workspace: Path) -> None:
    notices: list[str] = []

    async def gather(rail: AsyncHandrail) -> None:
        notices.extend(event.text for event in rail.events() if isinstance(event, Notice))

    (workspace / "AGENTS.md").write_text("rule one")
    prepared()
    first, other = prepared(then=gather, disable=("exec",))
    assert "exec" in first
    assert "exec" not in other
    assert notices == []
    (workspace / "AGENTS.md").write_text("rule two")
    assert "rule two" in prepared(then=gather)[-1]
    assert [text for text in notices if "AGENTS.md as it is now is part" in text]


def test_instructions_that_are_gone_are_told_too(prepared: Play, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("rule one")
    prepared()
    (workspace / "AGENTS.md").unlink()
    notices: list[str] = []

    async def gather(rail: AsyncHandrail) -> None:
        notices.extend(event.text for event in rail.events() if isinstance(event, Notice))

    assert "rule one" not in prepared(then=gather, disable=("exec",))[-1]
    assert any("no longer part" in text for text in notices)


def test_a_skill_that_becomes_active_makes_it_anew_and_one_that_is_only_there_does_not(
    prepared: Play, workspace: Path
) -> None:
    offered = ("skill_list", "skill_control")
    assert "# Skills" not in prepared(enable=offered)[-1]
    folder = workspace / ".claude" / "skills" / "release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: release\ndescription: How a release is made.\n---\nTag it.\n")
    assert len(prepared(enable=offered)) == 1

    async def activate(rail: AsyncHandrail) -> None:
        done = await rail.call("skill_control", {"name": "release", "action": "activate"})
        assert done.ok, done.content

    prepared(then=activate, enable=offered)
    first, other = prepared(enable=offered)
    assert "- release (active): How a release is made." in other
    assert "release" not in first
    assert len(prepared(enable=offered)) == 2


def test_notes_of_earlier_sessions_are_in_it_where_memory_is_offered(prepared: Play) -> None:
    async def remember(rail: AsyncHandrail) -> None:
        note = {"action": "create", "title": "tests", "content": "make slow runs the slow ones"}
        assert not (await rail.call("memory", note)).ok
        [request] = await rail.waiting()
        await rail.answer(request, "once")

    assert "make slow" not in prepared(then=remember, enable=("memory",))[-1]
    assert "make slow" not in prepared()[-1]
    assert "- tests: make slow runs the slow ones" in prepared(enable=("memory",))[-1]
