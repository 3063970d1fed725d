"""A stage for agents: sessions over one workspace, and every event of every one of them checked at the end."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from checked_events import check_events

from handrail import Agent, AsyncHandrail, Turn
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import Event
from handrail.settings import Settings
from handrail.settings.model import Tools


class Stage:
    """Opens sessions over one workspace, all with one state folder."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.workspace = workspace
        self.state = folder / "state"
        self._opened: list[AsyncHandrail] = []

    def open(self, session: str = "talk", **options: Any) -> AsyncHandrail:
        """A session; all tools of a run are on."""
        tools = Tools(enable=("question",))
        chosen = {"mode": "auto", "settings": Settings(tools=tools), "state_dir": self.state, **options}
        rail = AsyncHandrail(chosen.pop("workspace", self.workspace), session=session, **chosen)
        self._opened.append(rail)
        return rail

    def close(self) -> None:
        """Closes all of them, and checks what they wrote."""
        for rail in self._opened:
            check_events(rail)
            asyncio.run(rail.close())

    def run(self, rail: AsyncHandrail, script: list[Any], prompt: str = "Do it.", **options: Any) -> Turn:
        """One turn with a scripted model."""
        return asyncio.run(Agent(rail, ScriptedModel(script), **options).run(prompt))


@pytest.fixture
def stage(tmp_path: Path, workspace: Path) -> Iterator[Stage]:
    """Sessions for agents; every event is validated when the test is over."""
    found = Stage(tmp_path, workspace)
    (workspace / "a.txt").write_text("one\n")
    yield found
    found.close()


@pytest.fixture
def told() -> Callable[[AsyncHandrail, type[Event]], list[Any]]:
    """The events of one kind."""
    return lambda rail, kind: [event for event in rail.events() if isinstance(event, kind)]


def edits(*texts: str) -> list[ScriptedReply]:
    """A script that changes a.txt step by step, and ends."""
    steps = [
        ScriptedReply(calls=(("edit", {"path": "a.txt", "oldText": old, "newText": new}),))
        for old, new in pairwise(texts)
    ]
    return [*steps, ScriptedReply(text="It is done.")]
