"""Runs a command that may go on after its call: at once, or when it takes longer than the call waits."""

import os
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.process.ran import CommandResult, Ending
from handrail.process.sessions.layers import OverlayNote, build_note
from handrail.process.updates import Updates
from handrail.protocol.errors import StoreError, ToolError
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import ResourceLimits
from handrail.tools.contract import Background, CommandContext
from handrail.tools.exec_spec import ExecArguments
from handrail.tools.kept_output import read_captured_output
from handrail.tools.running import NetworkedRun

if TYPE_CHECKING:
    from handrail.process.sessions.network import ProxyPlan
    from handrail.process.sessions.session import ProcessSession
    from handrail.tools.network import ConnectionLog

_POLL_SECONDS = 0.1
"""Seconds between two looks at what it prints."""
_BLOCK_BYTES = 1 << 20


class DetachedRun:
    """One command that may go on: how it is started, waited for, and read back where it ended in time."""

    def __init__(
        self, context: CommandContext, arguments: ExecArguments, background: Background, spill_folder: str
    ) -> None:
        self._tried: ConnectionLog | None = None
        """What it tried to reach, where it has a network and ended in time."""
        self._context, self._arguments = context, arguments
        self._background, self._spill_folder = background, spill_folder
        self._proxy: ProxyPlan | None = None
        self.name: str | None = None
        """The id that it is to have, where somebody has to know it before."""
        self.layer: OverlayNote | None = None
        """What its folder notes of its overlay, where it has one."""

    def confine(self, profile: SandboxProfile, hosts: tuple[str, ...]) -> SandboxProfile:
        """The profile with what is open to the command of the network: as long as it runs, by its keeper."""
        if not hosts:
            return profile
        from handrail.process.sessions.network import ProxyPlan  # noqa: PLC0415  few commands have one
        from handrail.sandbox.proxy.place import NAME, build_socket_folder  # noqa: PLC0415

        self._proxy = ProxyPlan(build_socket_folder(self._background.folder), hosts)
        return replace(profile, proxy=os.path.join(self._proxy.folder, NAME), listed=hosts)

    def run(self, launch: Launch, limits: ResourceLimits, updates: Updates) -> "CommandResult | ProcessSession":
        """How it went, where it ended in time; else what goes on. Whatever goes wrong before that, nothing is left."""
        process = self._start(launch, limits)
        try:
            if self._arguments.yield_ms is not None:
                return self._waited(process, limits, updates, self._arguments.yield_ms / 1000)
            self._background.announce_start(process)
        except BaseException:
            self._break_off(process)
            raise
        return process

    def to_networked_run(self, ran: CommandResult, profile: SandboxProfile) -> NetworkedRun:
        """The same for one that ended in time, with what it tried to reach."""
        tried = self._tried
        if tried is None:
            return NetworkedRun(ran=ran, profile=profile)
        ran = replace(ran, warnings=(*ran.warnings, *tried.warnings))
        return NetworkedRun(ran=ran, profile=profile, blocked=tried.blocked_messages, reached=tried.reached)

    def _waited(
        self, process: "ProcessSession", limits: ResourceLimits, updates: Updates, seconds: float
    ) -> "CommandResult | ProcessSession":
        """As long as nobody knows of it, it ends with us."""
        with process.bind_lifetime() as let_go:
            ran = self._wait(process, limits, updates, seconds)
            if ran is None:
                self._background.announce_start(process)
                let_go()
                return process
        self._tell_tried(process)
        process.remove()
        return ran

    def _start(self, launch: Launch, limits: ResourceLimits) -> "ProcessSession":
        try:
            self._background.make_room()
            return self._background.sessions.start(
                launch,
                session_id=self._context.session_id,
                command=self._arguments.command,
                cwd=self._arguments.cwd,
                limits=limits,
                idle_seconds=self._background.idle_seconds,
                proxy=self._proxy,
                files=self._notes(),
                name=self.name,
            )
        except BaseException:
            launch.close()
            raise

    def _notes(self) -> dict[str, str]:
        """Files for its folder, by their names."""
        awaited = self._background.awaited if self._arguments.yield_ms is not None else {}
        return {**awaited, **(build_note(self.layer) if self.layer is not None else {})}

    def _wait(
        self, process: "ProcessSession", limits: ResourceLimits, updates: Updates, seconds: float
    ) -> CommandResult | None:
        """How it went; None where it goes on."""
        cancelled, timeout_ms = self._context.cancelled, self._arguments.timeout_ms
        limit: float | None = None if timeout_ms is None else timeout_ms / 1000
        until = seconds if limit is None else min(seconds, limit)
        began, read = time.monotonic(), 0
        while not (ended := process.wait(max(0.0, min(_POLL_SECONDS, began + until - time.monotonic())), cancelled)):
            if cancelled() or time.monotonic() - began >= until:
                break
            start, data = process.log.read_from(read, _BLOCK_BYTES)
            read = start + len(data)
            updates.feed(data)
        ending: Ending | None = None
        if not ended:
            if not cancelled() and (limit is None or limit > seconds):
                return None
            ending = "cancelled" if cancelled() else "timeout"
            process.stop()
        return self._ran(process, limits, time.monotonic() - began, ending)

    def _ran(
        self, process: "ProcessSession", limits: ResourceLimits, seconds: float, ended_by_us: Ending | None
    ) -> CommandResult:
        try:
            record = process.record()
        except ToolError:
            raise self._interrupted("Somebody removed the command while the call waited for it; it is gone.") from None
        ending = ended_by_us or _ENDINGS.get(record.reason or "") or "exit"
        if ending == "exit" and record.exit_code is None:
            raise self._interrupted("What kept the command was killed while the call waited, and the command with it.")
        return CommandResult(
            ending=ending,
            exit_code=record.exit_code if ending == "exit" else None,
            seconds=seconds,
            output=read_captured_output(process.log, limits, self._spill_folder),
            limits=_LIMITS.get(ending, ()),
        )

    def _interrupted(self, how: str) -> ToolError:
        left = "stays done: look before you repeat it" if self.layer is None else "was dropped with its overlay"
        return ToolError("INTERRUPTED", f"{how} What it had done by then {left}.")

    def _break_off(self, process: "ProcessSession") -> None:
        """Ends it; what it tried to reach is told all the same, where that is possible."""
        try:
            process.stop()
            self._tell_tried(process)
        except (StoreError, ToolError, OSError):
            pass
        finally:
            process.remove()

    def _tell_tried(self, process: "ProcessSession") -> None:
        if self._proxy is None:
            return
        from handrail.tools.network import ConnectionLog  # noqa: PLC0415  few commands have one

        self._tried = ConnectionLog(self._context)
        for attempt in process.attempts(0):
            self._tried.add(attempt)


_ENDINGS: dict[str, Ending] = {"memory": "memory", "processes": "processes", "disk": "disk"}
_LIMITS: dict[Ending, tuple[str, ...]] = {"timeout": ("time",), **{ending: (ending,) for ending in _ENDINGS.values()}}
