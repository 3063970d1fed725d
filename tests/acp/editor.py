"""An editor for tests: the client side of the official SDK, against the real `handrail acp`."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from acp import connect_to_agent, spawn_agent_process
from acp.client.connection import ClientSideConnection
from acp.helpers import text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from handrail.acp.agent import serve_in_loop
from handrail.cli.commands.acp import CommandHost
from handrail.cli.usage import parse_arguments
from handrail.models.base import Model
from handrail.settings import LoadedSettings, load

PATIENCE = 60.0
CANCELLED = RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class Asked(NamedTuple):
    """A permission request as the editor got it."""

    session: str
    card: ToolCallUpdate
    options: list[PermissionOption]

    @property
    def names(self) -> dict[str, str]:
        return {option.option_id: option.name for option in self.options}


def chose(option: str) -> RequestPermissionResponse:
    """The answer by which somebody chooses an option."""
    return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))


class Editor:
    """Remembers what it is told, and answers as a test says. What it has no answer for waits for ever."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.asked: list[Asked] = []
        self.answers: list[RequestPermissionResponse] = []
        self.forms: list[tuple[str, Any]] = []
        self.fill: Callable[[str, Any], Any] | None = None
        self._something = asyncio.Condition()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.told.append((session_id, update))
        await self._tell()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(Asked(session_id, tool_call, options))
        await self._tell()
        await self.until(lambda: bool(self.answers), None)
        return self.answers.pop(0)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode))
        await self._tell()
        assert self.fill is not None
        return self.fill(message, mode)

    async def answer(self, response: RequestPermissionResponse) -> None:
        self.answers.append(response)
        await self._tell()

    async def until(self, holds: Callable[[], Any], patience: float | None = PATIENCE) -> None:
        """Waits for what is told to make something true."""
        async with self._something:
            await asyncio.wait_for(self._something.wait_for(holds), patience)

    async def _tell(self) -> None:
        async with self._something:
            self._something.notify_all()

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str, session: str | None = None) -> list[Any]:
        """The updates of a kind."""
        return [one for owner, one in self.told if one.session_update == kind and session in {None, owner}]

    def words(self, session: str | None = None) -> str:
        """What was said to the person."""
        return "".join(one.content.text for one in self.of("agent_message_chunk", session))

    def cards(self, session: str | None = None) -> dict[str, dict[str, Any]]:
        """The cards as they are now, by their titles."""
        cards: dict[str, dict[str, Any]] = {}
        for owner, one in self.told:
            if one.session_update in {"tool_call", "tool_call_update"} and session in {None, owner}:
                given = {name: value for name, value in one.model_dump().items() if value is not None}
                cards.setdefault(one.tool_call_id, {}).update(given)
        return {card["title"]: card for card in cards.values()}

    def contents(self) -> str:
        """What the cards hold by now."""
        return "".join(str(card.get("content", "")) for card in self.cards().values())


class Opened(NamedTuple):
    """An editor with the agent that it started."""

    editor: Editor
    agent: ClientSideConnection
    process: asyncio.subprocess.Process | None
    workspace: Path

    async def new(self, cwd: Path | None = None) -> str:
        return (await self.agent.new_session(cwd=str(cwd or self.workspace), mcp_servers=[])).session_id

    async def say(self, session: str, text: str) -> PromptResponse:
        return await asyncio.wait_for(self.agent.prompt(session_id=session, prompt=[text_block(text)]), PATIENCE)


Open = Callable[..., Any]


class _TestHost(CommandHost):
    """The host of the command, with another model or another managed file."""

    def __init__(self, options: SimpleNamespace, model: Model | None, managed: Path | None) -> None:
        super().__init__(options)
        self._model, self._managed = model, managed

    def open_model(self, loaded: LoadedSettings, name: str | None) -> Model:
        return self._model or super().open_model(loaded, name)

    def load_settings(self, workspace: str) -> LoadedSettings:
        if self._managed is None:
            return super().load_settings(workspace)
        flags = {"mode": self._options.mode, "model": self._options.model[0]}
        return load(os.environ, flags, workspace, str(self._managed))


@asynccontextmanager
async def opened_here(
    workspace: Path,
    *words: str,
    capabilities: ClientCapabilities | None = None,
    model: Model | None = None,
    managed: Path | None = None,
) -> AsyncIterator[Opened]:
    """The same with the agent in this process and its real wire between: an interpreter takes most of a test's time.
    `managed`: the file of whoever manages the machine, in the place of the one in /etc."""
    options = parse_arguments("acp", list(words))
    assert options is not None
    editor, loop = Editor(), asyncio.get_running_loop()
    (to_agent, from_editor), (to_editor, from_agent) = os.pipe(), os.pipe()
    host = _TestHost(options, model, managed)
    serving = loop.create_task(serve_in_loop(host, to_agent, from_agent))
    reader = asyncio.StreamReader(limit=1 << 24)
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(to_editor, "rb"))
    sink, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(from_editor, "wb"))
    writer = asyncio.StreamWriter(sink, flow, None, loop)
    agent = connect_to_agent(editor, writer, reader, use_unstable_protocol=True)
    try:
        await agent.initialize(protocol_version=1, client_capabilities=capabilities)
        yield Opened(editor, agent, None, workspace)
    finally:
        sink.close()
        await asyncio.wait_for(serving, PATIENCE)
        await agent.close()
        source.close()
        for descriptor in (to_agent, from_agent):
            os.close(descriptor)


@asynccontextmanager
async def opened(
    workspace: Path, environment: dict[str, str], *words: str, capabilities: ClientCapabilities | None = None
) -> AsyncIterator[Opened]:
    """An editor that has started `handrail acp …`; when it is left, the agent's input is closed."""
    editor = Editor()
    command = [sys.executable, "-m", "handrail", "acp", *words]
    more = {"stderr": None, "shutdown_timeout": 30.0}
    async with spawn_agent_process(
        editor, *command, env=environment, cwd=workspace, transport_kwargs=more, use_unstable_protocol=True
    ) as (agent, process):
        await agent.initialize(protocol_version=1, client_capabilities=capabilities)
        yield Opened(editor, agent, process, workspace)


def handrail(environment: dict[str, str], workspace: Path, *words: str) -> str:
    """What a command of the person beside the editor says."""
    command = [sys.executable, "-m", "handrail", *words]
    done = subprocess.run(command, env=environment, cwd=workspace, capture_output=True, text=True, check=True)
    return done.stdout


def played(scene: Callable[[], Awaitable[None]]) -> None:
    """Plays a scene to its end."""

    async def whole() -> None:
        await asyncio.wait_for(scene(), 2 * PATIENCE)

    asyncio.run(whole())
