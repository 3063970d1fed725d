"""The MCP servers of a session as sources of tools."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYetError
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from handrail import ForeignTool, Output, ServerPrograms, SourceContext, ToolSource
from handrail.mcp.client.redaction import Redactor, render_line
from handrail.protocol.errors import StoreError, ToolError, build_install_command
from handrail.protocol.permissions import Permission
from handrail.runtime.foreign.source import split_tool_name
from handrail.settings import LoadedSettings, resolve_state_folder
from handrail.settings.mcp_json import ConfiguredServer, resolve_servers
from handrail.settings.mcp_servers import is_server_name
from handrail.settings.units import parse_seconds

if TYPE_CHECKING:
    from handrail.mcp.client.supervisor import Phase, ServerSupervisor
    from handrail.mcp.client.tools import ToolListing

Result = TypeVar("Result")
_RESTART_WAIT_SECONDS = 20.0
"""Seconds that a call waits for a server that starts."""
_END_REASON_WAIT_SECONDS = 3.0
"""Seconds that a call waits for the reason why its server ended."""
_CLOSE_SECONDS = 5.0
_POLL_SECONDS = 0.05
_PROGRESS_PAUSE_SECONDS = 0.25
_ENDED = "it was stopped"


class ServerSources(msgspec.Struct, frozen=True):
    """The sources of a session."""

    sources: tuple[ToolSource, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences for a person."""
    fixes: Mapping[str, str] = {}
    """The commands that help, by the note."""
    unusable: frozenset[str] = frozenset()
    """The servers whose problem is a note."""


def list_sources(loaded: LoadedSettings, workspace: str, environ: Mapping[str, str]) -> tuple[ToolSource, ...]:
    """The sources of a session. No server is started before its tools are needed."""
    return find_sources(loaded, workspace, environ).sources


def find_sources(
    loaded: LoadedSettings, workspace: str, environ: Mapping[str, str], *, called: str | None = None
) -> ServerSources:
    """The same with notes for a person. `called`: the only tool that is called, so that no other server starts."""
    only = (split_tool_name(called) or (None,))[0] if called is not None else None
    servers = resolve_servers(loaded, workspace, environ)
    usable = [one for one in servers.usable if only in {None, one.name}]
    unusable = {name: why for name, why in servers.unusable.items() if only in {None, name}}
    reasons = {f"The MCP server {name} cannot be used: {why}.": why for name, why in unusable.items()}
    notes, fixes = (*servers.notes, *reasons), dict(servers.fixes)
    fixes |= {note: fixes[why] for note, why in reasons.items() if why in fixes}
    if not usable and not unusable:
        return ServerSources((), notes, fixes)
    if loaded.settings.profile == "restricted":
        return ServerSources((), (*notes, "The restricted profile does not use other MCP servers."), fixes)
    if usable and find_spec("mcp") is None:
        fix = build_install_command("mcp")
        note = f"Other MCP servers need a missing extra: {fix}"
        return ServerSources((), (*notes, note), {**fixes, note: fix})
    programs = ServerPrograms(loaded.settings, workspace, resolve_state_folder(environ), environ)
    group = _ServerGroup(usable, programs, parse_seconds(loaded.settings.mcp.wait))
    broken = [_UnusableSource(name, why) for name, why in unusable.items() if is_server_name(name)]
    return ServerSources((*group.sources, *broken), notes, fixes, frozenset(unusable))


class _ServerGroup:
    """Servers that start in parallel. Any thread may use it."""

    def __init__(self, servers: list[ConfiguredServer], programs: ServerPrograms, wait: float) -> None:
        self.programs = programs
        self.sources = tuple(_ServerSource(server, self) for server in servers)
        self._wait = wait
        self._deadline: float | None = None
        self._open = len(servers)
        self._lock = threading.Lock()

    def start(self) -> float:
        """Starts all servers. Returns how many seconds are left to wait for their listings."""
        with self._lock:
            if self._deadline is None:
                self._deadline = time.monotonic() + self._wait
        for source in self.sources:
            source.start()
        return max(0.0, self._deadline - time.monotonic())

    def leave(self) -> None:
        """Called once by each closed source. The last one ends the thread that serves all."""
        with self._lock:
            self._open -= 1
            is_last = not self._open
        if is_last:
            self.programs.close()


class _ServerSource:
    """A server that is started when its tools are needed."""

    def __init__(self, server: ConfiguredServer, group: _ServerGroup) -> None:
        self._server, self._group = server, group
        self._state = _ServerState()
        self._redactor = Redactor(server)
        self._lock = threading.Lock()
        self._supervisor: ServerSupervisor | None = None
        self._running: Future[None] | None = None
        self._closed = False

    @property
    def server(self) -> str:
        return self._server.name

    @property
    def reach(self) -> tuple[Permission, ...]:
        return self._server.reach

    @property
    def revision(self) -> int:
        return self._state.revision

    def listed(self) -> tuple[ForeignTool, ...]:
        self._state.wait(lambda phase: phase in {"up", "down", "off"}, self._group.start())
        return self._state.listed

    def call(self, context: SourceContext, name: str, arguments: dict[str, Any]) -> Output:
        self._group.start()
        if self._state.wait(lambda phase: phase in {"up", "off"}, _RESTART_WAIT_SECONDS) != "up":
            raise self._build_unavailable("is not there", self._state.reason or "it is still being started")
        supervisor, progress = self._supervisor, _CallProgress(self._redactor)
        if supervisor is None:
            raise self._build_unavailable("is not there", _ENDED)
        try:
            future = self._group.programs.loop.submit(supervisor.call(name, arguments, progress.note))
            answer = _wait_for_answer(future, context, progress, supervisor)
        except ToolError:
            raise
        except Exception as error:
            raise self._convert_failure(name, error, supervisor) from None
        finally:
            _report_attempts(supervisor, context)
        tool = next((tool for tool in self._state.listed if tool.name == name), None)
        return supervisor.build_output(answer, tool)

    def problems(self) -> tuple[str, ...]:
        state = self._state
        problems = [render_line(state.reason)] if state.reason else []
        if state.phase == "starting":
            problems.append("it is still being started")
        program = self._supervisor.program if self._supervisor is not None else None
        blocked = program.attempts.blocked() if program is not None else ()
        return tuple(self._redactor.redact(one) for one in (*problems, *state.problems, *blocked[:3]))

    def start(self) -> None:
        """Starts the server, unless it was started or closed before."""
        with self._lock:
            if self._running is None and not self._closed:
                self._state.set_phase("starting")
                self._running = self._group.programs.loop.submit(self._supervise())

    def close(self) -> None:
        """Can be repeated."""
        with self._lock:
            if self._closed:
                return
            running, self._closed = self._running, True
        supervisor = self._supervisor
        if supervisor is None or running is None:  # `_supervise` checks `_closed` before it starts anything
            self._state.set_phase("off", _ENDED)
        else:
            supervisor.stop()
            if running.cancel():
                self._state.wait(lambda phase: phase == "off", _CLOSE_SECONDS)
        self._group.leave()

    async def _supervise(self) -> None:
        from handrail.mcp.client.supervisor import ServerSupervisor  # noqa: PLC0415  the SDK: a second, and 70 MB

        self._supervisor = ServerSupervisor(self._server, self._group.programs, self._state, self._redactor)
        if self._closed:
            return
        try:
            await self._supervisor.run()
        finally:
            if self._state.phase != "off":
                self._state.set_phase("off", _ENDED)

    def _convert_failure(self, name: str, error: Exception, supervisor: "ServerSupervisor") -> ToolError:
        failure = supervisor.convert_failure(error, name)
        if failure is not None:
            return failure
        self._state.wait(lambda phase: phase != "up", _END_REASON_WAIT_SECONDS)
        why = self._state.reason or "the connection was lost"
        return self._build_unavailable("ended before it answered", f"{why}. Its effects are unknown")

    def _build_unavailable(self, what: str, why: str) -> ToolError:
        text = f"The server {self.server} {what}: {render_line(why, 500)}."
        return ToolError("UNAVAILABLE", self._redactor.redact(text))


class _ServerState:
    """The state of a server. The event loop sets it, any thread reads it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.phase: Phase = "idle"
        self.reason = ""
        """Why the server is not up."""
        self.revision = 0
        self.listed: tuple[ForeignTool, ...] = ()
        self.problems: tuple[str, ...] = ()
        """The problems of the listing."""

    def set_phase(self, phase: "Phase", reason: str = "") -> None:
        """The listing of a server that is down stays: it may be back soon."""
        with self._changed:
            self.phase, self.reason = phase, reason
            if phase == "off":
                self._set_tools((), ())
            self._changed.notify_all()

    def set_listing(self, listing: "ToolListing") -> None:
        with self._changed:
            self._set_tools(listing.tools, listing.problems)

    def wait(self, is_settled: "Callable[[Phase], bool]", seconds: float) -> "Phase":
        """Waits for a phase, at most so long. Returns the phase."""
        with self._changed:
            self._changed.wait_for(lambda: is_settled(self.phase), max(0.0, seconds))
            return self.phase

    def _set_tools(self, tools: tuple[ForeignTool, ...], problems: tuple[str, ...]) -> None:
        # Compared as JSON: to Python, true and 1 are equal.
        is_other = msgspec.json.encode(tools) != msgspec.json.encode(self.listed)
        self.listed, self.problems = tools, problems
        self.revision += is_other


class _CallProgress:
    """The last progress of a call."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._latest = self._shown = ""
        self._next = 0.0

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        """Gets the progress from the server, in the event loop."""
        done = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        self._latest = f"{done}: {self._redactor.redact_progress(message)}" if message else done

    def show(self, context: SourceContext, logged: str) -> None:
        """Updates live views now and then, if there is something new."""
        latest, now = self._latest or logged, time.monotonic()
        if latest and latest != self._shown and now >= self._next:
            self._shown, self._next = latest, now + _PROGRESS_PAUSE_SECONDS
            with suppress(StoreError):  # progress is optional
                context.metadata(output=latest)


def _wait_for_answer(
    future: "Future[Result]", context: SourceContext, progress: _CallProgress, supervisor: "ServerSupervisor"
) -> Result:
    """The answer of the server. ToolError CANCELLED if the call is cancelled, which the server gets to know."""
    logged = supervisor.last_log
    while True:
        try:
            return future.result(_POLL_SECONDS)
        except NotYetError:
            if future.done():
                raise  # the time limit of the call
        except CancelledError:
            raise ToolError("CANCELLED", "The call was cut off: the session ends.") from None
        if context.cancelled():
            future.cancel()
            raise ToolError("CANCELLED", "The call was cancelled, and the server told so.")
        progress.show(context, supervisor.last_log if supervisor.last_log != logged else "")


def _report_attempts(supervisor: "ServerSupervisor", context: SourceContext) -> None:
    """Logs the network attempts of the server with the call during which they happened."""
    if supervisor.program is None:
        return
    with suppress(StoreError):
        for attempt in supervisor.program.attempts.take():
            context.report_connection(*attempt)


class _UnusableSource:
    """A server that cannot be started as it is configured. It offers no tools, and says why."""

    revision, reach = 0, tuple[Permission]()

    def __init__(self, server: str, why: str) -> None:
        self.server = server
        self._why = why

    def listed(self) -> tuple[ForeignTool, ...]:
        return ()

    def call(self, context: SourceContext, name: str, arguments: dict[str, Any]) -> Output:  # noqa: ARG002  the protocol's
        raise ToolError("UNAVAILABLE", f"The server {self.server} cannot be used: {self._why}.")

    def problems(self) -> tuple[str, ...]:
        return (self._why,)

    def close(self) -> None:
        pass
