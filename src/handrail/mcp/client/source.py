"""One server as a source of tools."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from handrail.mcp.client.one_call import CallProgress, wait_for_result
from handrail.mcp.client.secrets import Secrets
from handrail.mcp.client.standing import ServerState
from handrail.mcp.client.words import render_short_line
from handrail.mcp.client.worker import Worker
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import Permission
from handrail.runtime.foreign.server_process import ServerPrograms
from handrail.runtime.foreign.source import ForeignTool
from handrail.settings.mcp_json import ConfiguredServer
from handrail.tools.tool import CommandContext, Output

if TYPE_CHECKING:
    from handrail.mcp.client.keeping import ServerSupervisor

_RESTART_WAIT_SECONDS = 20.0
"""Seconds that a call waits for a server which is being started, or started again."""
_END_REASON_WAIT_SECONDS = 3.0
"""Seconds that a call waits to hear why its server ended."""
_CLOSE_SECONDS = 5.0


class ServerSource:
    """A server that is started when somebody asks what it offers, or calls one of its tools."""

    def __init__(
        self,
        server: ConfiguredServer,
        worker: Worker,
        programs: ServerPrograms,
        begin: Callable[[], float],
        closed: Callable[[], None],
    ) -> None:
        """`begin`: starts this one and those beside it; how many seconds to wait for their first lists. `closed`: is
        called once, when it is."""
        self._server = server
        self._worker = worker
        self._programs = programs
        self._begin = begin
        self._on_close = closed
        self._standing = ServerState()
        self._secrets = Secrets(server)
        self._lock = threading.Lock()
        self._keeper: ServerSupervisor | None = None
        self._kept: Future[None] | None = None
        self._closed = False

    @property
    def server(self) -> str:
        """What the settings call it."""
        return self._server.name

    @property
    def reach(self) -> tuple[Permission, ...]:
        """What the settings open to it: `[tools] deny` takes its tools away by that."""
        return self._server.reach

    @property
    def revision(self) -> int:
        """Another number whenever `listed` gives something else."""
        return self._standing.revision

    def listed(self) -> tuple[ForeignTool, ...]:
        """What it offers, where it said so in time."""
        self._standing.wait(lambda phase: phase in {"up", "down", "off"}, self._begin())
        return self._standing.tools

    def call(self, context: CommandContext, name: str, arguments: dict[str, Any]) -> Output:
        """Has the server do it."""
        self._begin()
        if self._standing.wait(lambda phase: phase in {"up", "off"}, _RESTART_WAIT_SECONDS) != "up":
            raise self._unavailable("is not there", self._standing.reason or "it is still being started")
        keeper, progress = self._keeper, CallProgress(self._secrets)
        if keeper is None:
            raise self._unavailable("is not there", "it was ended")
        try:
            answer = wait_for_result(
                self._worker.do(keeper.call(name, arguments, progress.note)), context, progress, keeper
            )
        except ToolError:
            raise
        except Exception as error:
            raise self._failed(name, error, keeper) from None
        finally:
            _tell_attempts(keeper, context)
        return self._output(name, answer)

    def problems(self) -> tuple[str, ...]:
        """What is wrong with it now."""
        standing = self._standing
        told = [render_short_line(standing.reason)] if standing.reason else []
        if standing.phase == "starting":
            told.append("it is still being started")
        program = self._keeper.program if self._keeper is not None else None
        blocked = program.attempts.blocked() if program is not None else ()
        return tuple(self._secrets.redact(one) for one in (*told, *standing.remarks, *blocked[:3]))

    def start(self) -> None:
        """Begins to start it, where nobody did."""
        with self._lock:
            if self._kept is None and not self._closed:
                self._standing.set_phase("starting")
                self._kept = self._worker.do(self._keep())

    def close(self) -> None:
        """Ends it, and whatever it started. Can be repeated."""
        with self._lock:
            if self._closed:
                return
            kept, self._closed = self._kept, True
        keeper = self._keeper
        if keeper is None or kept is None:  # `_keep` sees that it is closed before it starts anything
            self._standing.set_phase("off", "it was ended")
        else:
            keeper.stopping = True
            if kept.cancel():
                self._standing.wait(lambda phase: phase == "off", _CLOSE_SECONDS)
        self._on_close()

    async def _keep(self) -> None:
        from handrail.mcp.client.keeping import ServerSupervisor  # noqa: PLC0415  the SDK: a second, and 70 MB

        self._keeper = ServerSupervisor(self._server, self._programs, self._standing, self._secrets)
        if self._closed:
            return
        try:
            await self._keeper.run()
        finally:
            if self._standing.phase != "off":
                self._standing.set_phase("off", "it was ended")

    def _output(self, name: str, answer: Any) -> Output:
        from mcp_types import CallToolResult  # noqa: PLC0415  as above

        from handrail.mcp.client.answers import build_output  # noqa: PLC0415

        if not isinstance(answer, CallToolResult):
            raise ToolError(
                "UNAVAILABLE",
                f"The server {self.server} wants to ask a person something before it goes on, which it cannot do here.",
            )
        schema = next((tool.output_schema for tool in self._standing.tools if tool.name == name), None)
        return build_output(answer, schema, self._secrets)

    def _failed(self, name: str, error: Exception, keeper: "ServerSupervisor") -> ToolError:
        from handrail.mcp.client.failures import convert_failure  # noqa: PLC0415  as above

        failure = convert_failure(error, self._server, name, self._secrets)
        if failure is not None:
            keeper.refresh()
            return failure
        self._standing.wait(lambda phase: phase != "up", _END_REASON_WAIT_SECONDS)
        why = self._standing.reason or "the connection was lost"
        return self._unavailable("ended before it answered", f"{why}. Whether it did anything is not known")

    def _unavailable(self, what: str, why: str) -> ToolError:
        return ToolError(
            "UNAVAILABLE", self._secrets.redact(f"The server {self.server} {what}: {render_short_line(why, 500)}.")
        )


def _tell_attempts(keeper: "ServerSupervisor", context: CommandContext) -> None:
    """What it reached, or wanted to, since somebody asked last: it is told with the call that it happened in."""
    if keeper.program is None:
        return
    with suppress(StoreError):
        for attempt in keeper.program.attempts.take():
            context.report_connection(*attempt)
