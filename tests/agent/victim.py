"""Plays a session and kills its own process behind the event of a given number. Arguments: workspace, state, number."""

import asyncio
import os
import signal
import sys

from handrail import Agent, AsyncHandrail
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.settings import Settings

EDIT = ("edit", {"path": "a.txt", "oldText": "one\n", "newText": "one\ntwo\n"})
SCRIPT = [
    ScriptedReply(text="I look first.", calls=(("read", {"path": "a.txt"}), ("ls", {"path": "."}))),
    ScriptedReply(calls=(EDIT, ("write", {"path": "b.txt", "content": "b\n"}))),
    ScriptedReply(text="All is done."),
]


async def main(workspace: str, state: str, last: int) -> None:
    rail = AsyncHandrail(workspace, state_dir=state, session="talk", mode="auto", settings=Settings())
    rail.subscribe(lambda event: event.seq >= last and os.kill(os.getpid(), signal.SIGKILL))
    await Agent(rail, ScriptedModel(SCRIPT)).run("Do it.")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
