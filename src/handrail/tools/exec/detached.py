"""Commands that may outlive their call."""

import os
import time
from datetime import UTC, datetime

from msgspec.structs import replace

from handrail.process.output import OutputBuffer
from handrail.process.result import CapturedOutput, CommandResult, Ending
from handrail.process.sessions.keeper_client import ProxyPlan
from handrail.process.sessions.sessions import ProcessSession, generate_id
from handrail.process.sessions.store import OverlayNote, ProcessLog
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.launch import Launch
from handrail.sandbox.overlay.overlay import Overlay
from handrail.sandbox.profile import ResourceLimits, SandboxProfile
from handrail.sandbox.proxy.handover import NAME, build_socket_folder
from handrail.tools.exec.overlay import build_preview, judge_and_commit, open_overlay, watch_disk
from handrail.tools.exec.result import build_overlay_sandbox_used, build_real_tree_output, build_sandbox_used
from handrail.tools.exec.run import (
    CommandRun,
    ConnectionLog,
    FinishedRun,
    build_finished_run,
    build_updates,
    prepare_launch,
)
from handrail.tools.exec.spec import ExecData
from handrail.tools.process_output import poll
from handrail.tools.tool import Output

_POLL_SECONDS = 0.1
_BLOCK_BYTES = 1 << 20
_ENDINGS: dict[str, Ending] = {"memory": "memory", "processes": "processes", "disk": "disk"}
_LIMITS: dict[Ending, tuple[str, ...]] = {"timeout": ("time",), **{ending: (ending,) for ending in _ENDINGS.values()}}


def execute_detached(run: CommandRun) -> Output:
    """Runs a command that may go on after its call, on the real tree or in an overlay."""
    profile, proxy = replace(run.profile, joined=run.shares_network), None
    if run.hosts:
        proxy = ProxyPlan(build_socket_folder(run.background.folder), run.hosts)
        profile = replace(profile, proxy=os.path.join(proxy.folder, NAME), listed=run.hosts)
    if run.arguments.yield_ms is not None and run.fact.has_overlay and not run.is_proven:
        return _execute_in_overlay(run, profile, proxy)

    started = DetachedRun(run, profile, proxy).execute()
    if isinstance(started, FinishedRun):
        return build_real_tree_output(run, started)
    return _build_handover_output(run, started, build_sandbox_used(run, profile))


def _execute_in_overlay(run: CommandRun, profile: SandboxProfile, proxy: ProxyPlan | None) -> Output:
    """If the command ends in time, its changes are judged and committed. Otherwise that happens when it ends."""
    used = build_overlay_sandbox_used(run, profile, run.hosts)
    with open_overlay(run) as overlay:
        profile = watch_disk(run, profile, overlay)
        started = DetachedRun(run, profile, proxy, overlay, used).execute()
        if isinstance(started, FinishedRun):
            return judge_and_commit(run, build_preview(run, started, overlay), overlay)
        overlay.release()
    return _build_handover_output(run, started, used)


class DetachedRun:
    """One command that may go on. It is started as a process session, which is removed if it ends in time."""

    def __init__(
        self,
        run: CommandRun,
        profile: SandboxProfile,
        proxy: ProxyPlan | None,
        overlay: Overlay | None = None,
        used: SandboxUsed | None = None,
    ) -> None:
        self._run, self._profile, self._proxy, self._overlay = run, profile, proxy, overlay
        self._name: str | None = None
        self._files: dict[str, str] = {}
        """Files for the folder of the process session, by their names."""
        if run.arguments.yield_ms is not None:
            self._files |= run.background.awaited
        if overlay is not None and used is not None:
            # From here on the overlay has an owner, also if this process is killed.
            self._name = generate_id()
            overlay.assign_owner(os.path.join(run.background.folder, self._name))
            self._files |= OverlayNote(overlay.folder, run.context.tool_call_id, used).to_file()

    def execute(self) -> FinishedRun | ProcessSession:
        """The finished run, or the process session that goes on. After an error nothing is left."""
        process = self._start()
        try:
            if self._run.arguments.yield_ms is not None:
                return self._wait(process, self._run.arguments.yield_ms / 1000)
            self._run.background.announce_start(process)
        except BaseException:
            self._break_off(process)
            raise
        return process

    def _start(self) -> ProcessSession:
        run = self._run
        if not run.shares_network:
            return self._start_launch(prepare_launch(run, self._profile, self._overlay))
        with run.background.sessions.claim_network() as network:
            return self._start_launch(prepare_launch(run, self._profile, self._overlay, network))

    def _start_launch(self, launch: Launch) -> ProcessSession:
        run, background = self._run, self._run.background
        try:
            background.make_room()
            return background.sessions.start(
                launch,
                session_id=run.context.session_id,
                command=run.arguments.command,
                cwd=run.arguments.cwd,
                limits=self._profile.limits,
                idle_seconds=background.idle_seconds,
                proxy=self._proxy,
                files=self._files,
                name=self._name,
            )
        except BaseException:
            launch.close()
            raise

    def _wait(self, process: ProcessSession, seconds: float) -> FinishedRun | ProcessSession:
        """Until it is announced, the process session ends with this process."""
        with process.bind_lifetime() as let_go:
            result = self._follow(process, seconds)
            if result is None:
                self._run.background.announce_start(process)
                let_go()
                return process
        log = self._log_attempts(process)
        process.remove()
        return build_finished_run(result, self._profile, log)

    def _follow(self, process: ProcessSession, seconds: float) -> CommandResult | None:
        """Waits for the end of the command. None if it goes on."""
        cancelled, timeout_ms = self._run.context.cancelled, self._run.arguments.timeout_ms
        limit = None if timeout_ms is None else timeout_ms / 1000
        until = seconds if limit is None else min(seconds, limit)
        updates = build_updates(self._run.context)
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
        return self._build_result(process, time.monotonic() - began, ending)

    def _build_result(self, process: ProcessSession, seconds: float, stopped: Ending | None) -> CommandResult:
        try:
            record = process.record()
        except ToolError:
            raise self._build_interrupted("The command was removed while the call waited for it.") from None
        ending = stopped or _ENDINGS.get(record.reason or "") or "exit"
        if ending == "exit" and record.exit_code is None:
            raise self._build_interrupted("The keeper was killed while the call waited, and the command with it.")
        return CommandResult(
            ending=ending,
            exit_code=record.exit_code if ending == "exit" else None,
            seconds=seconds,
            output=read_captured_output(process.log, self._profile.limits, self._run.environment.spill_folder),
            limits=_LIMITS.get(ending, ()),
        )

    def _build_interrupted(self, cause: str) -> ToolError:
        fate = (
            ("they remain; check before you repeat it")
            if self._overlay is None
            else "they were dropped with its overlay"
        )
        return ToolError("INTERRUPTED", f"{cause} Its effects until then: {fate}.")

    def _break_off(self, process: ProcessSession) -> None:
        """Ends it, and logs its attempts to reach hosts if possible."""
        try:
            process.stop()
            self._log_attempts(process)
        except (StoreError, ToolError, OSError):
            pass
        finally:
            process.remove()

    def _log_attempts(self, process: ProcessSession) -> ConnectionLog | None:
        if self._proxy is None:
            return None
        log = ConnectionLog(self._run.context)
        for attempt in process.attempts(0):
            log.add(attempt)
        return log


# The output of a process session.

_MAX_HEAD_BYTES = 1 << 16
_STATE_ROOM_CHARS = 600
"""Characters of the result that say what goes on, and what to do next."""
_CHANGES = {"read-only": "", "layer": "; its changes stay in its overlay, invisible to others, until it ends"}


def _build_handover_output(run: CommandRun, process: ProcessSession, sandbox: SandboxUsed) -> Output:
    """The output so far, if the call waited, and how to look after the process session."""
    waited = run.arguments.yield_ms is not None
    room = max(1_000, run.context.limits.characters - _STATE_ROOM_CHARS) if waited else 0
    new = poll(process, room, seconds=0)
    record = process.record()
    seconds = ((record.ended or datetime.now(UTC)) - record.started).total_seconds()
    text = new.text if not new.text or new.text.endswith("\n") else f"{new.text}\n"
    state = "It goes on" if record.state == "running" else "It has ended by now"
    changes = _CHANGES.get(sandbox.undo, "; undo does not cover its changes")
    more = f" {new.waiting:,} more bytes are available." if new.waiting and waited else ""
    ports = "Other commands reach its ports on localhost" if sandbox.joined else "Other commands do not reach its ports"
    how = f'process {{"action": "poll", "sessionId": "{process.id}"}} gives its next output; kill stops it. {ports}.'
    return Output(
        summary=f"keeps running as {process.id}",
        content=f"{text}[{state} as the process session {process.id}{changes}.{more} Next: {how}]\n",
        data=ExecData(
            output=new.text, exit_code=None, duration_ms=round(max(0.0, seconds) * 1000, 3), session_id=process.id
        ),
        truncated=waited and new.waiting > 0,
        meta={"sandbox": sandbox},
        commands_run=(run.fact.text,),
    )


def read_captured_output(log: ProcessLog, limits: ResourceLimits, folder: str) -> CapturedOutput:
    """The output of an ended process session, as if its call had read it."""
    dropped = log.dropped
    # A file holds the first part of an output without a gap.
    buffer = OutputBuffer(-1, replace(limits, spilled=0) if dropped else limits, folder)
    for piece in log.kept():
        buffer.add(piece)
    output = buffer.finish()
    if not dropped:
        return output
    head, rest = output.head[:_MAX_HEAD_BYTES], output.head[_MAX_HEAD_BYTES:]
    return replace(output, head=head, tail=rest + output.tail, total=log.size, lost=output.lost + dropped)
