"""Sessions with others: tools of another MCP server were called, and an MCP client left a call waiting."""

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

from handrail import Agent, AsyncHandrail, Context, Done, Handrail, Output, Parked, ToolError
from handrail.mcp.calls import ClientCalls
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.results import Attachment
from handrail.runtime.foreign.source import ForeignTool

FIND, CREATE = "mcp__tracker__find_issue", "mcp__tracker__create_issue"
KEPT = {"path": "kept.txt", "content": "kept\n"}
REFUSED = {"path": "refused.txt", "content": "x\n"}
OPEN = {"path": "open.txt", "content": "open\n"}
_PICTURE = Attachment(
    type="image", path="chart.png", mime="image/png", content=b64encode(b"\x89PNG\r\n\x1a\n").decode()
)
_TITLE = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


class Tracker:
    """A server in this process. What it says of a tool can be another after a while."""

    server, revision, reach = "tracker", 1, ()

    def __init__(self, finds: str = "Finds issues.", creates: str = "Creates one.") -> None:
        self.finds, self.creates = finds, creates
        self.called: list[str] = []

    def says(self, finds: str) -> None:
        self.finds, self.revision = finds, self.revision + 1

    def listed(self) -> tuple[ForeignTool, ...]:
        return (
            ForeignTool(name="find_issue", description=self.finds, input_schema={"type": "object"}),
            ForeignTool(name="create_issue", description=self.creates, input_schema=_TITLE),
        )

    def call(self, context: Context, name: str, arguments: dict[str, Any]) -> Output:
        self.called.append(name)
        if arguments.get("id") == "gone":
            raise ToolError("NOT_FOUND", "there is no such issue")
        return Output(summary="one", content="An issue.", data={"id": 7}, attachments=(_PICTURE,))

    def problems(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        pass


def servers(stage: Any) -> None:
    """An agent calls a server's tools: granted, refused, failed, described otherwise; the last waits."""
    tracker = Tracker()
    script = [
        ScriptedReply(text="I look.", calls=((FIND, {"id": "7"}),)),
        ScriptedReply(calls=((FIND, {"id": "gone"}), (CREATE, {"wrong": 1}))),
        ScriptedReply(calls=((CREATE, {"title": "refused"}),)),
        ScriptedReply(calls=((FIND, {"id": "8"}),)),
        ScriptedReply(text="May I?", calls=((CREATE, {"title": "later"}),)),
    ]

    async def turns() -> None:
        async with AsyncHandrail(stage.workspace, **stage.options(mode="ask", sources=[tracker])) as rail:

            async def person(parked: Parked) -> Done | Parked:
                outcome: Done | Parked = parked
                for request in parked.requests:
                    shown = str(request)
                    if "later" in shown:
                        return parked
                    outcome = await rail.answer(request, "deny" if "refused" in shown else "session")
                    if "refused" in shown:
                        tracker.says("Finds issues, and more.")
                return outcome

            await Agent(rail, ScriptedModel(script), person=person).run("See to the issues.")

    asyncio.run(turns())


def left(stage: Any) -> None:
    """A client that cannot ask left three calls: one was allowed since, one refused, one still waits."""
    with Handrail(stage.workspace, **stage.options(mode="ask", on_permission=lambda _: None)) as rail:
        calls = ClientCalls(rail)
        for arguments in (KEPT, REFUSED, OPEN):
            calls.leave(calls.begin("write", arguments))  # type: ignore[arg-type] # all of them ask
        for request in rail.waiting():
            name = Path(request.paths[0]).name
            if name != OPEN["path"]:
                rail.answer(request, "once" if name == KEPT["path"] else "deny")
