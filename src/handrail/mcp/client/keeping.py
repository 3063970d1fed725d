"""Keeps one server: starts it, listens to it, and starts it again where it ended."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any

from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    LoggingMessageNotificationParams,
    ToolListChangedNotification,
)
from pydantic import TypeAdapter

from handrail.mcp.client.ends import CloseReason
from handrail.mcp.client.listed_tools import list_tools
from handrail.mcp.client.pacing import limit_rate
from handrail.mcp.client.pipes import open_pipes
from handrail.mcp.client.reaching import open_http
from handrail.mcp.client.secrets import Secrets
from handrail.mcp.client.standing import ServerState
from handrail.mcp.client.starting import ProgramStart
from handrail.mcp.client.words import describe_close_reason, describe_failure, is_closed, render_progress_text
from handrail.mcp.protocol import is_modern
from handrail.protocol.errors import ToolError
from handrail.protocol.version import VERSION
from handrail.runtime.foreign.server_process import ServerProgram, ServerPrograms, ServerProgramSpec
from handrail.settings.mcp_json import ConfiguredServer

SECONDS_TO_START = 60.0
_PAUSES = (0.5, 2.0, 8.0)
"""Seconds before it is started again, each time it has ended soon after its start."""
_LASTED_SECONDS = 300.0
"""Seconds after which an end is not the same trouble again."""
_LISTING_PAUSE_SECONDS = 1.0
_SECONDS_TO_LIST = 30.0
_MAX_ROUNDS = 10
_ROUND_PAUSE_SECONDS = 0.1
_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)

for _name in ("mcp", "client", "httpx2", "httpcore2"):  # what they have to say is said by us; else it is on stderr
    logging.getLogger(_name).addHandler(logging.NullHandler())


class ServerSupervisor:
    """The side of a server that is in the event loop."""

    def __init__(
        self, server: ConfiguredServer, programs: ServerPrograms, standing: ServerState, secrets: Secrets
    ) -> None:
        self._server = server
        self._programs = programs
        self._standing = standing
        self._secrets = secrets
        self._client: Client | None = None
        self._by_handshake = False
        """Whether it is greeted the old way at once: there are some that a question before that is the end of."""
        self._stale: asyncio.Event | None = None
        self.program: ServerProgram | None = None
        self.stopping = False
        """Set before it is cancelled: a cancellation may be lost among those that the SDK's own tasks are ended by."""
        self.heard = ""
        """The last line that it logged."""

    async def run(self) -> None:
        """As long as it is not off, or this is cancelled."""
        failures = 0
        clock = asyncio.get_running_loop().time
        while not self.stopping:
            began, end = clock(), CloseReason()
            self._standing.set_phase("starting")
            words = await self._live(end)
            if not end.was_up:
                self._by_handshake = not self._by_handshake
            failures = 1 if clock() - began >= _LASTED_SECONDS else failures + 1
            if self.stopping:
                return
            if end.final or failures > len(_PAUSES):
                again = "" if end.final else f" (it was started {failures} times, and is left off)"
                self._standing.set_phase("off", f"{words}{again}")
                return
            self._standing.set_phase("down", words)
            await asyncio.sleep(_PAUSES[failures - 1])

    async def call(
        self, name: str, arguments: dict[str, Any], progress: ProgressFnT
    ) -> CallToolResult | InputRequiredResult:
        """Has the server do it. MCPError and others where it does not."""
        client = self._client
        if client is None:
            raise ToolError("UNAVAILABLE", self._standing.reason or "it is not there")
        seconds, state = self._server.seconds, None
        async with asyncio.timeout(seconds + 1):
            for _ in range(_MAX_ROUNDS):
                params = CallToolRequestParams(name=name, arguments=arguments, request_state=state)
                # Not `call_tool`: that would hold the result against the server's schema, whatever that takes.
                answer = await client.session.send_request(
                    CallToolRequest(params=params), _ANSWER, seconds, progress_callback=progress
                )
                if isinstance(answer, CallToolResult) or answer.input_requests:
                    return answer
                state = answer.request_state  # nothing is asked: it only wants to be called again
                await asyncio.sleep(_ROUND_PAUSE_SECONDS)
        raise ToolError("UNAVAILABLE", f"The server wants to be called again and again ({_MAX_ROUNDS} times so far).")

    def refresh(self) -> None:
        """What it lists may be another list by now."""
        if self._stale is not None:
            self._stale.set()

    async def _live(self, end: CloseReason) -> str:
        """One life of it, from its start to its end; why it ended, in words."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(SECONDS_TO_START):
                    client = await self._connected(stack, end)
                self._client, end.was_up = client, True
                self._standing.set_phase("up")
                await self._attend(client, end)
        except TimeoutError:
            end.note(f"it did not answer within {SECONDS_TO_START:.0f} seconds")
        except ToolError as error:
            end.note(error.message, final=True)
        except Exception as error:
            end.note(describe_failure(error, self._secrets), vague=is_closed(error))
        finally:
            self._client, program, self.program = None, self.program, None
            if program is not None:
                await asyncio.shield(asyncio.to_thread(program.end))
                end.final = end.final or program.never_ran
        return describe_close_reason(end, program, self._secrets)

    async def _connected(self, stack: AsyncExitStack, end: CloseReason) -> Client:
        self._stale = asyncio.Event()
        client = Client(
            limit_rate(await self._transport(end), end),
            mode="legacy" if self._by_handshake else "auto",
            cache=None,
            client_info=Implementation(name="handrail", version=VERSION),
            message_handler=self._hear,
            logging_callback=self._log,
        )
        await stack.enter_async_context(client)
        self._standing.set_listing(await list_tools(client, self._secrets))
        return client

    async def _transport(self, end: CloseReason) -> AbstractAsyncContextManager[Any]:
        server = self._server
        if not server.words:
            return open_http(server.url, server.headers, server.seconds, end)
        wanted = ServerProgramSpec(
            words=server.words,
            cwd=server.cwd,
            variables=server.variables,
            network=server.network,
            writable=server.writable,
        )
        start = ProgramStart(self._programs, wanted)
        try:
            await asyncio.to_thread(start.run)
        finally:  # also where this is cancelled meanwhile: whatever there is by then is ended with the rest
            self.program = program = start.take()
        if program is None:
            raise ToolError("UNAVAILABLE", "it was not started")
        return open_pipes(program, end)

    async def _attend(self, client: Client, end: CloseReason) -> None:
        listing = asyncio.ensure_future(self._list_again(client))
        listening = asyncio.ensure_future(self._listen(client))
        try:
            await end.wait()
        finally:
            listing.cancel()
            listening.cancel()

    async def _list_again(self, client: Client) -> None:
        """Whenever it says that its list is another; one who says so all the time is asked now and then."""
        while self._stale is not None:
            await self._stale.wait()
            self._stale.clear()
            with suppress(Exception):  # the list that it gave before still stands
                async with asyncio.timeout(_SECONDS_TO_LIST):
                    self._standing.set_listing(await list_tools(client, self._secrets))
            await asyncio.sleep(_LISTING_PAUSE_SECONDS)

    async def _listen(self, client: Client) -> None:
        """A server without a handshake has to be asked to say when its list is another."""
        if not is_modern(client.protocol_version):
            return
        with suppress(Exception):  # it need not
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self.refresh()

    async def _hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.refresh()

    async def _log(self, params: LoggingMessageNotificationParams) -> None:
        self.heard = render_progress_text(str(params.data), self._secrets)
