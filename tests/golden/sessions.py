"""The sessions that are recorded: each is played in an empty folder, with the real tools and a scripted model."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from server_sessions import left, servers

from handrail import Agent, AsyncHandrail, Context, Done, Handrail, Parked, Tool, TurnLimits, tool
from handrail.models.base import ModelError, TokenUsage
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import Event, ToolCallRunning
from handrail.settings import Settings
from handrail.settings.model import NetworkSettings, Tools

SESSION = "golden"
COMPANIONS = ("display", "question", "todo", "memory")
SETTINGS = Settings(
    tools=Tools(enable=(*COMPANIONS, "multi_edit", "apply_patch", "delete")),
    network=NetworkSettings(allow=("192.0.2.1:443",)),
)
LOOK = ("read", {"path": "a.txt"})
TWO = ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})
ASK = ("question", {"question": "Which one?", "options": ["the first", "the last"], "custom": True})
NEWS = ("display", {"content": "It **works**.", "level": "success", "title": "News", "evidence": ["a.txt:1"]})
COMMAND = ("exec", {"command": "sed -i s/one/two/ a.txt; echo made > made.txt"})
REACHING = ("exec", {"command": "curl -s -o /dev/null http://example.org/"})
SPENT = TokenUsage(input_tokens=900, output_tokens=30, cached_tokens=600, cost=0.002)


@tool(read_only=True, auto_execute=True)
def count_words(text: str, context: Context) -> int:
    """Count the words of a text."""
    context.metadata(title="Counting words", output="half of it", percent=50)
    return len(text.split())


TOOLS: tuple[Tool, ...] = (count_words,)


class Stage:
    """An empty workspace with a file in it, and its state folder."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.state = folder / "workspace", folder / "state"
        self.workspace.mkdir(parents=True)
        (self.workspace / "a.txt").write_text("one\nlast\n")

    def options(self, session: str = SESSION, **more: Any) -> dict[str, Any]:
        """For a rail."""
        return {"state_dir": self.state, "session": session, "settings": SETTINGS, "tools": TOOLS, **more}

    def talk(self, mode: str, *script: ScriptedReply, prompt: str = "Make it two.", **model: Any) -> None:
        """One turn."""

        async def turn() -> None:
            async with AsyncHandrail(self.workspace, **self.options(mode=mode)) as rail:
                await Agent(rail, ScriptedModel(script, **model)).run(prompt)

        asyncio.run(turn())


def calls(stage: Stage) -> None:
    """A program that calls tools, without a model: looks, changes, commands, refusals, an undo."""
    with Handrail(stage.workspace, **stage.options(mode="ask", on_permission=_mostly_yes)) as rail:
        for name, args in (
            LOOK,
            ("ls", {"path": "."}),
            ("find", {"pattern": "*.txt"}),
            ("grep", {"pattern": "last", "contextLines": 1}),
            TWO,
            ("write", {"path": "b/c.txt", "content": "new\n"}),
            ("multi_edit", {"path": "a.txt", "edits": [{"oldText": "last", "newText": "third"}]}),
            ("exec", {"command": "cat a.txt; exit 3"}),
            COMMAND,
            ("delete", {"path": "b/c.txt"}),
            ("write", {"path": "refused.txt", "content": "x"}),
            ("read", {"path": "missing.txt"}),
            ("read", {"path": "../outside.txt"}),
            ("read", {"paht": "a.txt"}),
            ("read_file", {"path": "a.txt"}),
        ):
            rail.call(name, args)
        rail.undo()
        rail.exec("cat a.txt")


def _mostly_yes(request: Any) -> Any:
    return "deny" if "refused.txt" in request.paths else "once"


def work(stage: Stage) -> None:
    """Turns of an agent with every kind of event: it is answered, refused, asks, reaches for a host, fails."""
    script = [
        ScriptedReply(reasoning="It says one.", text="I look first.", calls=(LOOK, NEWS), spent=SPENT),
        ScriptedReply(calls=(("todo", {"items": [{"text": "change it", "status": "active"}]}),), spent=SPENT),
        ScriptedReply(calls=(TWO, ("write", {"path": "refused.txt", "content": "x"})), spent=SPENT),
        ScriptedReply(calls=(ASK,), spent=SPENT),
        ScriptedReply(calls=(("count_words", {"text": "one two"}), REACHING), spent=SPENT),
        ScriptedReply(calls=(("exec", {"command": "cat", "background": True}),), spent=SPENT),
        ScriptedReply(calls=(("no_such_tool", {}), ("read", "no JSON")), spent=SPENT),
        ScriptedReply(text="It is two now.", spent=SPENT),
        ScriptedReply(fails=ModelError("UNAVAILABLE", "The provider is overloaded. Try again later.", retryable=True)),
    ]

    async def turns() -> None:
        options = stage.options(mode="ask")
        async with AsyncHandrail(stage.workspace, **options) as rail:

            async def person(parked: Parked) -> Done | Parked:
                outcome: Done | Parked = parked
                for request in parked.requests:
                    outcome = await rail.answer(request, _mostly_yes(request))
                return outcome

            agent = Agent(rail, ScriptedModel(script), person=person, limits=TurnLimits(attempts=1))
            await agent.run("Make it two.")
            await rail.reply((await rail.waiting_questions())[0], "the last")
            await agent.go_on()
            await agent.run("And now?")
            await rail.set_mode("auto")
            await rail.end_session()

    asyncio.run(turns())


def killed(stage: Stage) -> None:
    """Cut off by kill -9 inside a call, the first of two."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(_until_killed(stage))
        finally:
            os._exit(1)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        raise SystemExit("the session was not killed inside its call")


async def _until_killed(stage: Stage) -> None:
    rail = AsyncHandrail(stage.workspace, **stage.options(mode="auto"))
    rail.subscribe(_kill_inside)
    both = (("exec", {"command": "sleep 60; touch late.txt"}), TWO)
    await Agent(rail, ScriptedModel([ScriptedReply(text="I try.", calls=(LOOK,)), ScriptedReply(calls=both)])).run(
        "Make it two."
    )


def _kill_inside(event: Event) -> None:
    if isinstance(event, ToolCallRunning):
        os.kill(os.getpid(), signal.SIGKILL)


def parked(stage: Stage) -> None:
    """Waits for a yes to a command that was tried in a layer, and to an edit beside it."""
    stage.talk("ask", ScriptedReply(calls=(LOOK,)), ScriptedReply(text="May I?", calls=(COMMAND,)))


def waiting(stage: Stage) -> None:
    """Waits for the reply to a question."""
    stage.talk("auto", ScriptedReply(text="I ask.", calls=(ASK,)))


def compacted(stage: Stage) -> None:
    """The older part of the talk was summed up."""
    (stage.workspace / "long.txt").write_text("".join(f"line {number} of it\n" for number in range(400)))
    pages = [ScriptedReply(text="On.", calls=(("read", {"path": "long.txt", "offset": at}),)) for at in (1, 101, 201)]
    notes = ScriptedReply(text="It is a long file; nothing to see.")
    stage.talk("auto", *pages, ScriptedReply(calls=(TWO,)), ScriptedReply(text="Done."), window=9_000, summary=notes)


def forked(stage: Stage) -> None:
    """A session and its fork, which went on by itself."""
    script = [
        ScriptedReply(calls=(LOOK, TWO)),
        ScriptedReply(text="First."),
        ScriptedReply(calls=(LOOK,)),
        ScriptedReply(text="Second."),
    ]

    async def both() -> None:
        async with AsyncHandrail(stage.workspace, **stage.options("parent", mode="auto")) as rail:
            await Agent(rail, ScriptedModel(script)).run("Make it two.")
            await rail.fork_session(SESSION)
        async with AsyncHandrail(stage.workspace, **stage.options(mode="auto")) as rail:
            await Agent(rail, ScriptedModel(script)).run("And now?")

    asyncio.run(both())


SESSIONS: tuple[Callable[[Stage], None], ...] = (
    *(calls, work, killed, parked, waiting, compacted, forked),
    *(servers, left),
)
