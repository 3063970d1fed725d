"""A talk that was made shorter, over the real wires: each server checks every question by its own rules."""

import asyncio
from pathlib import Path

import pytest
from tests.models.asking import found
from tests.wires.server import WireServer

from handrail import AsyncHandrail
from handrail.agent.loop import Agent
from handrail.agent.transcript import Transcript
from handrail.protocol.messages import SummaryMessage
from handrail.settings import Settings


@pytest.fixture
def long_file(workspace: Path) -> Path:
    (workspace / "long.txt").write_text("a line of the long file\n" * 1_000)
    return workspace


def reads(number: int) -> tuple[str, str, str]:
    return f"c{number}", "read", f'{{"path": "long.txt", "offset": {number + 1}}}'


async def worked(wire: WireServer, workspace: Path, state: Path) -> list[SummaryMessage]:
    model = found(wire)
    async with AsyncHandrail(workspace, mode="auto", settings=Settings(), state_dir=state) as rail:
        turn = await Agent(rail, model).run("Read it all.")
        assert turn.text == "It is done.", turn
        talk = Transcript(rail.conversation)
    await model.close()
    return [one.message for one in talk.messages if isinstance(one.message, SummaryMessage)]


def test_the_next_question_after_a_refusal_is_valid(wire: WireServer, long_file: Path, tmp_path: Path) -> None:
    for number in range(4):
        wire.says(calls=[reads(number)])
    wire.refuses(400, "prompt is too long: maximum context length exceeded")
    wire.says("Notes: it is long.")
    wire.says(calls=[reads(7)])
    wire.says("It is done.")
    [summary] = asyncio.run(worked(wire, long_file, tmp_path / "state"))
    assert "Notes: it is long." in summary.text
    assert "Read it all." in summary.text
    asked = wire.received[-2].body
    assert "Notes: it is long." in str(asked["messages"])
    assert not wire.received[-3].body.get("tools")
