"""The loop with a model behind a real wire: the tools run, and every question that is put is valid."""

import asyncio
from pathlib import Path

from tests.models.asking import found
from tests.wires.server import WireServer

from handrail import AsyncHandrail
from handrail.agent.loop import Agent
from handrail.settings import Settings


def test_a_task_is_done_over_a_wire(wire: WireServer, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    wire.says("I look first.", reasoning="Where is it?", calls=[("c1", "read", '{"path": "a.txt"}')])
    change = '{"path": "a.txt", "oldText": "one", "newText": "two"}'
    wire.says(calls=[("c2", "edit", change), ("c3", "ls", '{"path": "a.txt'), ("c4", "nothing", "{}")])
    wire.says("It is done.")
    model = found(wire)

    async def work() -> str:
        async with AsyncHandrail(workspace, mode="auto", settings=Settings(), state_dir=tmp_path / "state") as rail:
            turn = await Agent(rail, model).run("Change one to two.")
        await model.close()
        return turn.text

    assert asyncio.run(work()) == "It is done."
    assert (workspace / "a.txt").read_text() == "two\n"
    assert len(wire.received) == 3


def test_one_session_goes_on_with_another_provider(
    openai_wire, anthropic_wire, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")

    async def work(wire: WireServer, prompt: str) -> str:
        model = found(wire)
        options = {"mode": "auto", "settings": Settings(), "state_dir": tmp_path / "state", "session": "s"}
        async with AsyncHandrail(workspace, **options) as rail:
            turn = await Agent(rail, model).run(prompt)
        await model.close()
        return turn.text

    for wire in (openai_wire, anthropic_wire, openai_wire):
        wire.says("Hm.", reasoning="Let me see.", calls=[("same", "read", '{"path": "a.txt"}')])
        wire.says("Read.")
        assert asyncio.run(work(wire, "Read a.txt.")) == "Read."
