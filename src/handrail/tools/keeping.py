"""Runs a command that may go on after its call: at once, or when it takes longer than the call waits."""

import os
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.process.ran import Ending, Ran
from handrail.process.sessions.layers import Yielded, note_of
from handrail.process.updates import Updates
from handrail.protocol.error import StoreError, ToolError
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import Limits
from handrail.tools.contract import Background, CommandContext
from handrail.tools.exec import ExecArguments
from handrail.tools.kept_output import printed_of
from handrail.tools.running import Went

if TYPE_CHECKING:
    from handrail.process.sessions.network import ProxyPlan
    from handrail.process.sessions.session import ProcessSession
    from handrail.tools.network import Tried

_STEP = 0.1
"""Seconds between two looks at what it prints."""
_BLOCK = 1 << 20


class Keeping:
    """One command that may go on: how it is started, waited for, and read back where it ended in time."""

    def __init__(
        self, context: CommandContext, arguments: ExecArguments, background: Background, spill_folder: str
    ) -> None:
        self._tried: Tried | None = None
        """What it tried to reach, where it has a network and ended in time."""
        self._context, self._arguments = context, arguments
        self._background, self._spill_folder = background, spill_folder
        self._proxy: ProxyPlan | None = None
        self.name: str | None = None
        """The id that it is to have, where somebody has to know it before."""
        self.layer: Yielded | None = None
        """What its folder notes of its layer, where it has one."""

    def confine(self, confinement: Confinement, hosts: tuple[str, ...]) -> Confinement:
        """The confinement with what is open to the command of the network: as long as it runs, by its keeper."""
        if not hosts:
            return confinement
        from handrail.process.sessions.network import ProxyPlan  # noqa: PLC0415  few commands have one
        from handrail.sandbox.proxy.place import NAME, new_place  # noqa: PLC0415

        self._proxy = ProxyPlan(new_place(self._background.folder), hosts)
        return replace(confinement, proxy=os.path.join(self._proxy.folder, NAME), listed=hosts)

    def run(self, launch: Launch, limits: Limits, updates: Updates) -> "Ran | ProcessSession":
        """How it went, where it ended in time; else what goes on. Whatever goes wrong before that, nothing is left."""
        process = self._start(launch, limits)
        try:
            if self._arguments.yield_ms is not None:
                return self._waited(process, limits, updates, self._arguments.yield_ms / 1000)
            self._background.told_begun(process)
        except BaseException:
            self._break_off(process)
            raise
        return process

    def went(self, ran: Ran, confinement: Confinement) -> Went:
        """The same for one that ended in time, with what it tried to reach."""
        tried = self._tried
        if tried is None:
            return Went(ran=ran, confinement=confinement)
        ran = replace(ran, warnings=(*ran.warnings, *tried.warnings))
        return Went(ran=ran, confinement=confinement, blocked=tried.told, reached=tried.reached)

    def _waited(
        self, process: "ProcessSession", limits: Limits, updates: Updates, seconds: float
    ) -> "Ran | ProcessSession":
        """As long as nobody knows of it, it ends with us."""
        with process.waited_for() as let_go:
            ran = self._wait(process, limits, updates, seconds)
            if ran is None:
                self._background.told_begun(process)
                let_go()
                return process
        self._tell_tried(process)
        process.remove()
        return ran

    def _start(self, launch: Launch, limits: Limits) -> "ProcessSession":
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
        return {**awaited, **(note_of(self.layer) if self.layer is not None else {})}

    def _wait(self, process: "ProcessSession", limits: Limits, updates: Updates, seconds: float) -> Ran | None:
        """How it went; None where it goes on."""
        cancelled, timeout_ms = self._context.cancelled, self._arguments.timeout_ms
        limit: float | None = None if timeout_ms is None else timeout_ms / 1000
        until = seconds if limit is None else min(seconds, limit)
        began, read = time.monotonic(), 0
        while not (ended := process.wait(max(0.0, min(_STEP, began + until - time.monotonic())), cancelled)):
            if cancelled() or time.monotonic() - began >= until:
                break
            start, data = process.log.read_from(read, _BLOCK)
            read = start + len(data)
            updates.feed(data)
        ending: Ending | None = None
        if not ended:
            if not cancelled() and (limit is None or limit > seconds):
                return None
            ending = "cancelled" if cancelled() else "timeout"
            process.stop()
        return self._ran(process, limits, time.monotonic() - began, ending)

    def _ran(self, process: "ProcessSession", limits: Limits, seconds: float, ended_by_us: Ending | None) -> Ran:
        try:
            record = process.record()
        except ToolError:
            raise self._interrupted("Somebody removed the command while the call waited for it; it is gone.") from None
        ending = ended_by_us or _ENDINGS.get(record.reason or "") or "exit"
        if ending == "exit" and record.exit_code is None:
            raise self._interrupted("What kept the command was killed while the call waited, and the command with it.")
        return Ran(
            ending=ending,
            exit_code=record.exit_code if ending == "exit" else None,
            seconds=seconds,
            output=printed_of(process.log, limits, self._spill_folder),
            limits=_LIMITS.get(ending, ()),
        )

    def _interrupted(self, how: str) -> ToolError:
        left = "stays done: look before you repeat it" if self.layer is None else "was dropped with its layer"
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
        from handrail.tools.network import Tried  # noqa: PLC0415  few commands have one

        self._tried = Tried(self._context)
        for attempt in process.attempts(0):
            self._tried.add(attempt)


_ENDINGS: dict[str, Ending] = {"memory": "memory", "processes": "processes", "disk": "disk"}
_LIMITS: dict[Ending, tuple[str, ...]] = {"timeout": ("time",), **{ending: (ending,) for ending in _ENDINGS.values()}}
