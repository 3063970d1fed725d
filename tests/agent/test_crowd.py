"""Many sessions in one process, with one pool of threads between them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from checked_events import check_events

from handrail import Agent, Turn
from handrail.models.scripted import ScriptedModel, ScriptedReply


def test_sessions_side_by_side_do_not_disturb_each_other(stage: Any, count: Callable[[int], int]) -> None:
    crowd = count(100)

    async def play() -> list[Turn]:
        with ThreadPoolExecutor(4) as pool:
            agents: list[Agent] = []
            rails: list[Any] = []
            for number in range(crowd):
                rails.append(stage.open(f"s{number}", pool=pool))
                calls = tuple(("write", {"path": f"{number}-{step}.txt", "content": "x\n"}) for step in range(2))
                script = [
                    ScriptedReply(text=f"I am {number}.", calls=calls),
                    ScriptedReply(calls=(("ls", {"path": "."}),)),
                    ScriptedReply(text="Done."),
                ]
                agents.append(Agent(rails[-1], ScriptedModel(script)))
            turns = await asyncio.gather(*(agent.run("go") for agent in agents))
            for number, rail in enumerate(rails):
                texts = "".join(event.text for event in check_events(rail) if type(event).__name__ == "Text")
                assert texts == f"I am {number}.Done."
            return turns

    turns = asyncio.run(play())
    assert [turn.files_changed for turn in turns] == [(f"{n}-0.txt", f"{n}-1.txt") for n in range(crowd)]
    assert len(list(stage.workspace.iterdir())) == 2 * crowd + 1
