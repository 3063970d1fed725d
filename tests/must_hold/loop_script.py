"""A session of twelve calls, of every kind that the loop knows, as a process plays it: from its beginning, or from
wherever the one before it was killed."""

from pathlib import Path
from typing import Any

from handrail import Agent, AsyncHandrail, Done, Parked, Turn
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.settings import Settings
from handrail.settings.model import Search, Tools

CALLS = 12
PROMPT = "Do all of it."
SESSION = "talk"
SCRIPT = [
    ScriptedReply(reasoning="Hm.", text="First\n I\n look.\n", calls=(("read", {"path": "notes.txt"}),
         ("grep", {"pattern": "needle", "path": "hay"}))),
    ScriptedReply(text="Writing.", calls=(("write", {"path": "made/new.txt", "content": "made\n"}),)),
    ScriptedReply(calls=(("edit", {"path": "list.txt", "oldText": "end\n", "newText": "more\nend\n"}),)),
    ScriptedReply(calls=(("exec", {"command": "bash count.sh first"}),)),
    ScriptedReply(calls=(("question", {"question": "Which?", "options": ["this", "that"]}),)),
    ScriptedReply(calls=(("write", {"path": ".github/workflows/asked.yml", "content": "on: push\n"}),
         ("read", {"path": "hay/one.txt"}))),
    ScriptedReply(
        calls=(("display", {"content": "Nearly done."}), ("todo", {"items": [{"text": "end", "status": "active"}]}))
    ),
    ScriptedReply(calls=(("edit", {"path": "other.txt", "oldText": "end\n", "newText": "more\nend\n"}),
         ("exec", {"command": "bash count.sh second"}))),
    ScriptedReply(text="Done."),
]  # fmt: skip
"""Whatever is done twice shows in the files: edits and commands append."""
COUNT = """echo {mark} $1 >> $1.txt
while [ ! -e go ]; do sleep 0.01; done
cat $1.txt
"""


def prepare(workspace: Path, mark: str) -> None:
    """The tree that every play begins with; commands wait until there is a file `go`."""
    files = {
        "notes.txt": "one\ntwo\n", "hay/one.txt": "a needle\n", "hay/two.txt": "straw\n", "list.txt": "begin\nend\n",
        "other.txt": "begin\nend\n", "count.sh": COUNT.format(mark=mark), "go": "",
    }  # fmt: skip
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def opened(workspace: Path, state: Path) -> AsyncHandrail:
    """The session that is played in."""
    # ripgrep may be started, or not, for so few files: then the moments would not have the same numbers every time.
    search = Search(engine="python")
    settings = Settings(tools=Tools(enable=("question", "display", "todo")), search=search)
    return AsyncHandrail(workspace, state_dir=state, session=SESSION, mode="auto", settings=settings)


async def play(rail: AsyncHandrail, script: list[Any] | None = None) -> Turn:
    """Goes on with what the journal has, or begins; whatever is asked is answered with yes, or with `that`."""

    async def person(parked: Parked) -> Done | Parked:
        outcome: Done | Parked | None = None
        for request in parked.requests:
            outcome = await rail.answer(request, "once")
        for question in parked.questions:
            outcome = await rail.reply(question, "that")
        return outcome or parked

    agent = Agent(rail, ScriptedModel(script or SCRIPT), person=person)
    return await (agent.go_on() if rail.conversation.last_turn_event() else agent.run(PROMPT))
