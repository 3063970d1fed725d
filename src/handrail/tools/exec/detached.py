"""Commands that outlive their call."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.changes.recorder import Recorder
from handrail.policy.parse import ParsedCommand
from handrail.process.output import SpillFile, Updates
from handrail.process.result import CapturedOutput, CommandResult, Ending
from handrail.process.sessions.sessions import generate_id
from handrail.process.sessions.store import OverlayNote, build_note
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.launch import Launch
from handrail.sandbox.overlay.overlay import Overlay, assign_owner
from handrail.sandbox.profile import ResourceLimits, SandboxProfile
from handrail.tools.exec.environment import CommandEnvironment
from handrail.tools.exec.overlay import build_run_preview, judge_and_commit, open_overlay
from handrail.tools.exec.result import build_overlay_sandbox_used
from handrail.tools.exec.run import NetworkedRun, build_updates, check_ran, prepare_launch, watch_disk
from handrail.tools.exec.spec import ExecArguments, ExecData
from handrail.tools.process_output import take_new_output
from handrail.tools.tool import Background, CommandContext, Output

if TYPE_CHECKING:
    from handrail.process.sessions.keeper_client import ProxyPlan
    from handrail.process.sessions.sessions import ProcessSession
    from handrail.process.sessions.store import ProcessLog
    from handrail.tools.exec.run import ConnectionLog


# § [tools.kept_output] What a command printed that was to be handed over and ended before: as if its call had read
# § it itself.

_MAX_HEAD_BYTES = 1 << 16


def read_captured_output(log: "ProcessLog", limits: ResourceLimits, folder: str) -> CapturedOutput:
    """All of it, or its beginning and its end, with a file of the whole where that is kept."""
    total = log.size
    if total <= limits.output and not log.dropped:
        return CapturedOutput(head=b"".join(log.kept()), total=total)
    spill = None if log.dropped else SpillFile(folder, limits.spilled)
    head, tail = _both_ends(log.kept(), limits.output - _MAX_HEAD_BYTES, spill)
    if spill is None:
        return CapturedOutput(head=head, tail=tail, total=total, lost=total - len(head) - len(tail))
    spill.close()
    if spill.size <= len(head):
        spill.discard()
        return CapturedOutput(head=head, tail=tail, total=total, lost=max(0, total - len(head) - len(tail)))
    lost = max(0, total - len(tail) - spill.size)
    return CapturedOutput(head=head, tail=tail, total=total, spilled=spill.path, spilled_bytes=spill.size, lost=lost)


def _both_ends(pieces: Iterator[bytes], most: int, spill: SpillFile | None) -> tuple[bytes, bytes]:
    head, tail = b"", bytearray()
    for piece in pieces:
        if spill is not None:
            spill.add(memoryview(piece))
        missing = _MAX_HEAD_BYTES - len(head)
        head += piece[:missing]
        tail += piece[max(0, missing) :]
        del tail[: max(0, len(tail) - most)]
    return head, bytes(tail)


# § [tools.keeping] Runs a command that may go on after its call: at once, or when it takes longer than the call
# § waits.

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
        from handrail.process.sessions.keeper_client import ProxyPlan  # noqa: PLC0415  few commands have one
        from handrail.sandbox.proxy.handover import NAME, build_socket_folder  # noqa: PLC0415

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
        from handrail.tools.exec.run import ConnectionLog  # noqa: PLC0415  few commands have one

        self._tried = ConnectionLog(self._context)
        for attempt in process.attempts(0):
            self._tried.add(attempt)


_ENDINGS: dict[str, Ending] = {"memory": "memory", "processes": "processes", "disk": "disk"}
_LIMITS: dict[Ending, tuple[str, ...]] = {"timeout": ("time",), **{ending: (ending,) for ending in _ENDINGS.values()}}


# § [tools.hand_over] What exec answers where its command goes on: what it has printed so far, and how to look after
# § it.

_STATE_ROOM_CHARS = 600
"""Characters of the result that say what goes on, and what to do next."""

_CHANGES = {"read-only": "", "layer": "; what it changes is in its overlay, seen by nobody else, until it ends"}


def build_handover_output(
    context: CommandContext, process: "ProcessSession", sandbox: SandboxUsed, *, waited: bool
) -> Output:
    """What there is by now, where the call waited for it; the next poll goes on behind it."""
    news = take_new_output(process, max(1_000, context.limits.characters - _STATE_ROOM_CHARS) if waited else 0)
    record = process.record()
    taken = ((record.ended or datetime.now(UTC)) - record.started).total_seconds()
    text = news.text if not news.text or news.text.endswith("\n") else f"{news.text}\n"
    goes_on = "It goes on" if record.state == "running" else "It has ended by now"
    left = _CHANGES.get(sandbox.undo, "; what it changes is not covered by undo")
    more = f" {news.waiting:,} bytes more are there already." if news.waiting and waited else ""
    how = f'process {{"action": "poll", "sessionId": "{process.id}"}} gives what it prints next; kill ends it.'
    return Output(
        summary=f"goes on as {process.id}",
        content=f"{text}[{goes_on} as the process session {process.id}{left}.{more} Next: {how}]\n",
        data=ExecData(
            output=news.text, exit_code=None, duration_ms=round(max(0.0, taken) * 1000, 3), session_id=process.id
        ),
        truncated=waited and news.waiting > 0,
        meta={"sandbox": sandbox},
        commands_run=(context.facts.command.text if context.facts.command else "",),
    )


# § [tools.yielding] Runs a command that may outlive its call in an overlay: then the overlay lives on with it,
# § until it ends.


def execute_detachable(
    context: CommandContext,
    arguments: ExecArguments,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    background: Background,
    recorder: Recorder,
) -> Output:
    """How it went, judged and committed, if it ended in time; else what goes on: then that happens when it ends."""
    keeping = DetachedRun(context, arguments, background, commands.spill_folder)
    hosts = commands.hosts_open_to(context, todo)
    profile = keeping.confine(profile, hosts)
    used = build_overlay_sandbox_used(profile, commands, hosts)
    with open_overlay(context, profile, commands) as overlay:
        profile = watch_disk(context, profile, overlay)
        _give(overlay, keeping, context, background, used)
        launch = prepare_launch(context, todo, profile, commands, overlay)
        ran = keeping.run(launch, profile.limits, build_updates(context))
        if isinstance(ran, CommandResult):
            check_ran(ran, commands)
            preview = build_run_preview(context, keeping.to_networked_run(ran, profile), commands, overlay)
            return judge_and_commit(context, arguments, preview, commands, recorder, overlay)
        overlay.release()
    return build_handover_output(context, ran, used, waited=True)


def _give(
    overlay: Overlay, keeping: DetachedRun, context: CommandContext, background: Background, used: SandboxUsed
) -> None:
    """Whoever is killed from here on leaves no overlay without an owner."""
    keeping.name = generate_id()
    assign_owner(overlay, os.path.join(background.folder, keeping.name))
    keeping.layer = OverlayNote(overlay.folder, context.tool_call_id, used)
