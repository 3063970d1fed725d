"""The connection to a server: started, kept, restarted."""

import asyncio
import logging
import threading
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, Literal, Protocol

import httpx2
from mcp import Client, MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    LoggingMessageNotificationParams,
    ToolListChangedNotification,
)
from pydantic import TypeAdapter, ValidationError

from handrail import ForeignTool, Output, ServerProgram, ServerPrograms, ServerProgramSpec
from handrail.mcp.client.redaction import Redactor
from handrail.mcp.client.tools import ToolListing, build_output, convert_failure, list_tools
from handrail.mcp.client.transports import CloseReason, limit_rate, open_http, open_pipes
from handrail.mcp.protocol import is_modern
from handrail.protocol.errors import ToolError
from handrail.protocol.version import VERSION
from handrail.settings.mcp_json import ConfiguredServer

_START_SECONDS = 60.0
_PAUSES = (0.5, 2.0, 8.0)
"""Seconds before each restart of a server that ended soon after its start."""
_STABLE_SECONDS = 300.0
"""Seconds after which an end is no repeated failure."""
_LISTING_PAUSE_SECONDS = 1.0
_LISTING_SECONDS = 30.0
_MAX_ROUNDS = 10
_ROUND_PAUSE_SECONDS = 0.1
_LAST_LINES = 3
_ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)
Phase = Literal["idle", "starting", "up", "down", "off"]
"""`down`: it ended, and will be restarted. `off`: it will not."""

for _name in ("mcp", "client", "httpx2", "httpcore2"):  # otherwise their logs go to stderr
    logging.getLogger(_name).addHandler(logging.NullHandler())


class ServerObserver(Protocol):
    """Gets the state of a server, in the thread of the event loop."""

    reason: str
    """Why the server is not up."""

    def set_phase(self, phase: Phase, reason: str = "") -> None: ...

    def set_listing(self, listing: ToolListing) -> None: ...


class ServerSupervisor:
    """Starts a server, and restarts it when it ends. Coroutines run in one event loop."""

    def __init__(
        self, server: ConfiguredServer, programs: ServerPrograms, observer: ServerObserver, redactor: Redactor
    ) -> None:
        self._server, self._programs = server, programs
        self._observer, self._redactor = observer, redactor
        self._client: Client | None = None
        self._by_handshake = False
        """Whether the client begins with the old handshake. Some servers end when they get a modern request first."""
        self._stale = asyncio.Event()
        self._stopping = False
        self.program: ServerProgram | None = None
        self.last_log = ""
        """The last line that the server logged."""

    async def run(self) -> None:
        """Returns when the server is off."""
        failures = 0
        clock = asyncio.get_running_loop().time
        while not self._stopping:
            began, end = clock(), CloseReason()
            self._observer.set_phase("starting")
            reason = await self._live(end)
            if not end.was_up:
                self._by_handshake = not self._by_handshake
            failures = 1 if clock() - began >= _STABLE_SECONDS else failures + 1
            if self._stopping:
                return
            if end.final or failures > len(_PAUSES):
                again = "" if end.final else f" (it was started {failures} times, and is left off)"
                self._observer.set_phase("off", f"{reason}{again}")
                return
            self._observer.set_phase("down", reason)
            await asyncio.sleep(_PAUSES[failures - 1])

    def stop(self) -> None:
        """Called before `run` is cancelled: the cancellation may get lost among those of the SDK's own tasks."""
        self._stopping = True

    async def call(
        self, name: str, arguments: dict[str, Any], progress: ProgressFnT
    ) -> CallToolResult | InputRequiredResult:
        """Calls a tool. Raises MCPError among others."""
        client = self._client
        if client is None:
            raise ToolError("UNAVAILABLE", self._observer.reason or "it is not there")
        seconds, state = self._server.seconds, None
        async with asyncio.timeout(seconds + 1):
            for _ in range(_MAX_ROUNDS):
                params = CallToolRequestParams(name=name, arguments=arguments, request_state=state)
                # Not `call_tool`: it would check the result against the server's schema without bounds.
                answer = await client.session.send_request(
                    CallToolRequest(params=params), _ANSWER, seconds, progress_callback=progress
                )
                if isinstance(answer, CallToolResult) or answer.input_requests:
                    return answer
                state = answer.request_state  # without questions: it wants to be called again
                await asyncio.sleep(_ROUND_PAUSE_SECONDS)
        raise ToolError(
            "UNAVAILABLE", f"The server asked for too many repeats of the call ({_MAX_ROUNDS} times so far)."
        )

    def build_output(self, answer: CallToolResult | InputRequiredResult, tool: ForeignTool | None) -> Output:
        """The output of a call, in any thread."""
        if not isinstance(answer, CallToolResult):
            text = f"The server {self._server.name} wants to ask the user something before it continues"
            raise ToolError("UNAVAILABLE", f"{text}, which it cannot do here.")
        return build_output(answer, tool, self._redactor)

    def convert_failure(self, error: Exception, tool: str) -> ToolError | None:
        """The error of a call. None if the connection ended."""
        failure = convert_failure(error, self._server, tool, self._redactor)
        if failure is not None:
            self._stale.set()  # the tool may be gone
        return failure

    async def _live(self, end: CloseReason) -> str:
        """Runs the server once. Returns why it ended."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(_START_SECONDS):
                    client = await self._connect(stack, end)
                self._client, end.was_up = client, True
                self._observer.set_phase("up")
                await self._attend(client, end)
        except TimeoutError:
            end.note(f"it did not answer within {_START_SECONDS:.0f} seconds")
        except ToolError as error:
            end.note(error.message, final=True)
        except Exception as error:
            cause = _find_cause(error)
            is_vague = isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED
            end.note(describe_failure(cause, self._redactor), vague=is_vague)
        finally:
            self._client, program, self.program = None, self.program, None
            if program is not None:
                await asyncio.shield(asyncio.to_thread(program.end))
                end.final = end.final or program.never_ran
        return describe_close_reason(end, program, self._redactor)

    async def _connect(self, stack: AsyncExitStack, end: CloseReason) -> Client:
        self._stale = asyncio.Event()
        client = Client(
            limit_rate(await self._open_transport(end), end),
            mode="legacy" if self._by_handshake else "auto",
            cache=None,
            client_info=Implementation(name="handrail", version=VERSION),
            message_handler=self._handle_message,
            logging_callback=self._handle_log,
        )
        await stack.enter_async_context(client)
        self._observer.set_listing(await list_tools(client, self._redactor))
        return client

    async def _open_transport(self, end: CloseReason) -> AbstractAsyncContextManager[Any]:
        server = self._server
        if not server.words:
            return open_http(server.url, server.headers, server.seconds, end)
        spec = ServerProgramSpec(
            words=server.words,
            cwd=server.cwd,
            variables=server.variables,
            network=server.network,
            writable=server.writable,
        )
        start = _ProgramStart(self._programs, spec)
        try:
            await asyncio.to_thread(start.run)
        finally:  # also after a cancellation: `_live` ends the program
            self.program = program = start.take()
        if program is None:
            raise ToolError("UNAVAILABLE", "it was not started")
        return open_pipes(program, end)

    async def _attend(self, client: Client, end: CloseReason) -> None:
        tasks = [asyncio.ensure_future(self._list_again(client)), asyncio.ensure_future(self._listen(client))]
        try:
            await end.wait()
        finally:
            for task in tasks:
                task.cancel()

    async def _list_again(self, client: Client) -> None:
        """Lists the tools when they may have changed, at most once a second."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            with suppress(Exception):  # the former listing still holds
                async with asyncio.timeout(_LISTING_SECONDS):
                    self._observer.set_listing(await list_tools(client, self._redactor))
            await asyncio.sleep(_LISTING_PAUSE_SECONDS)

    async def _listen(self, client: Client) -> None:
        """Subscribes to changes of the listing, which a server without a handshake does not send otherwise."""
        if not is_modern(client.protocol_version):
            return
        with suppress(Exception):  # the server need not support it
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._stale.set()

    async def _handle_message(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._stale.set()

    async def _handle_log(self, params: LoggingMessageNotificationParams) -> None:
        self.last_log = self._redactor.redact_progress(str(params.data))


class _ProgramStart:
    """Starts a program in a thread, which cannot be cancelled. A program that starts too late is ended at once."""

    def __init__(self, programs: ServerPrograms, spec: ServerProgramSpec) -> None:
        self._programs, self._spec = programs, spec
        self._lock = threading.Lock()
        self._program: ServerProgram | None = None
        self._abandoned = False

    def run(self) -> None:
        program = self._programs.start(self._spec)
        with self._lock:
            self._program = program
            is_late = self._abandoned
        if is_late:
            program.end()

    def take(self) -> ServerProgram | None:
        """The program, which the caller has to end. None if there is none yet: the start is abandoned."""
        with self._lock:
            self._abandoned = self._program is None
            return self._program


def describe_failure(error: BaseException, redactor: Redactor) -> str:
    """Why a connection failed."""
    if isinstance(error, ValidationError):
        return "its answer does not follow the protocol"
    what = "cannot be reached" if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout) else "failed"
    return f"it {what} ({redactor.redact_line(str(error)) or type(error).__name__})"


def describe_close_reason(end: CloseReason, program: ServerProgram | None, redactor: Redactor) -> str:
    """Why a connection ended: how its program ended, if it did, with the end of its stderr."""
    how = program.how_it_ended if program is not None else None
    reason = (end.reason if end.sure else None) or how or end.reason or "it ended"
    tail = "; ".join(program.stderr_tail.splitlines()[-_LAST_LINES:]) if program is not None else ""
    return f"{reason}: {redactor.redact_line(tail)}" if tail else reason


def _find_cause(error: BaseException) -> BaseException:
    """The first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        errors: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        error = errors[0]
    return error
