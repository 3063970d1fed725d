"""Runs a command that may go on after its call: at once, or when it takes longer than the call waits."""

import time
from typing import TYPE_CHECKING, Literal

from handrail.process.ran import Ending, Ran
from handrail.process.updates import Updates
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import Limits
from handrail.tools.contract import Background, Context
from handrail.tools.exec import ExecArguments
from handrail.tools.kept_output import printed_of

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession

Waited = Literal["ended", "timeout", "cancelled", "goes on"]
_STEP = 0.1
"""Seconds between two looks at what it prints."""
_BLOCK = 1 << 20


class Keeping:
    """How commands of a session are kept running: who knows of them, and where what they print is put aside."""

    def __init__(self, background: Background, limits: Limits, spill_folder: str, updates: Updates) -> None:
        self.background, self.limits, self.spill_folder = background, limits, spill_folder
        self._updates = updates

    def run(self, launch: Launch, context: Context, arguments: ExecArguments) -> "Ran | ProcessSession":
        """How it went, where it ended in time; else what goes on. Whatever goes wrong before that, nothing is left."""
        process = self._start(launch, context, arguments)
        try:
            if arguments.yield_ms is not None:
                self.background.awaited(process)
                ran = self._wait(process, context, arguments.yield_ms / 1000, arguments.timeout_ms)
                if ran is not None:
                    process.remove()
                    return ran
            self.background.told_begun(process)
        except BaseException:
            process.remove()
            raise
        return process

    def _start(self, launch: Launch, context: Context, arguments: ExecArguments) -> "ProcessSession":
        try:
            self.background.make_room()
            return self.background.sessions.start(
                launch,
                session_id=context.session_id,
                command=arguments.command,
                cwd=arguments.cwd,
                limits=self.limits,
                idle_seconds=self.background.idle_seconds,
            )
        except BaseException:
            launch.close()
            raise

    def _wait(self, process: "ProcessSession", context: Context, seconds: float, timeout_ms: int | None) -> Ran | None:
        """How it went; None where it goes on."""
        began, read = time.monotonic(), 0
        limit: float | None = None if timeout_ms is None else timeout_ms / 1000
        until = seconds if limit is None else min(seconds, limit)
        while not (ended := process.wait(max(0.0, min(_STEP, began + until - time.monotonic())), context.cancelled)):
            if context.cancelled() or time.monotonic() - began >= until:
                break
            start, data = process.log.read_from(read, _BLOCK)
            read = start + len(data)
            self._updates.feed(data)
        taken = time.monotonic() - began
        if ended:
            return self._ran(process, taken)
        if context.cancelled():
            process.stop()
            return self._ran(process, taken, "cancelled")
        if limit is None or limit > seconds:
            return None
        process.stop()
        return self._ran(process, taken, "timeout")

    def _ran(self, process: "ProcessSession", seconds: float, ending: Ending | None = None) -> Ran:
        record = process.record()
        found: Ending = (
            ending or _ENDINGS.get(record.reason or "") or ("exit" if record.exit_code is not None else "failed")
        )
        return Ran(
            ending=found,
            exit_code=record.exit_code if found == "exit" else None,
            seconds=seconds,
            output=printed_of(process.log, self.limits, self.spill_folder),
            limits=_LIMITS.get(found, ()),
        )


_ENDINGS: dict[str, Ending] = {"memory": "memory", "processes": "processes"}
_LIMITS: dict[Ending, tuple[str, ...]] = {"timeout": ("time",), "memory": ("memory",), "processes": ("processes",)}
