"""The keeper's life: one background command from its start to its exit record."""

import contextlib
import json
import os
import select
import signal
import time

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.kernel.process import CONTINUE, STOP, TERMINATE, SignalQueue, reset_signals
from handrail.kernel.procfs import ProcessStat, find_process, read_entry, signal_process
from handrail.process.keeper.server import READ, WRITE, EventPoller, KeeperServer
from handrail.process.keeper.state import ASKED, RECORD, Json, KeeperFolder, KeeperPlan, LogWriter, read_boot_id
from handrail.process.keeper.terminal import InputQueue, Terminal, list_live_descendants, spawn
from handrail.process.tree import ProcessTree
from handrail.process.usage import UsageMonitor
from handrail.sandbox.launch import Launch

_SANDBOX_START_SECONDS = 20.0
_STOPPING_PAUSE_SECONDS = 0.05
_MAX_PAUSE_SECONDS = 1.0
_READ_BYTES = 1 << 16
_MAX_ROUND_BYTES = 1 << 18
"""Bytes of output that are read before the loop looks at anything else."""
_MAX_REST_BYTES = 1 << 24
_GRACE_SECONDS = 3.0
_SHELL_WAIT_SECONDS = 2.0
"""Part of the grace period in which the shell is held back. Once it ends, all its processes do."""


def run(descriptor: str) -> int:
    """Keep the command of the plan behind the descriptor, to its end.

    The caller waits only for the parent of the fork, so the keeper has no parent of ours.
    """
    if os.fork():
        return 0
    plan = KeeperPlan.read(int(descriptor))
    launch = Launch(**plan.launch)
    for own in (launch.status, launch.lifeline, plan.folder, plan.ready_fd):
        os.set_inheritable(own, False)
    reset_signals()
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    report = _StartReport(plan.ready_fd)
    try:
        _keep(plan, launch, report)
    except BaseException as error:
        number = error.errno if isinstance(error, OSError) else None
        report.send({"errno": number or 0, "error": str(error)})
        KeeperFolder(plan.folder).write_crash()
    return 0


class _StartReport:
    """Tells the runtime once how the start went."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, document: Json) -> bool:
        """False: the runtime is gone, or it has a report already."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return False
        try:
            return os.write(descriptor, json.dumps(document).encode() + b"\n") > 0
        except OSError:
            return False
        finally:
            os.close(descriptor)


def _keep(plan: KeeperPlan, launch: Launch, report: _StartReport) -> None:
    signals = SignalQueue((TERMINATE,))
    with (
        launch,
        ControlGroup(find_parent_group(), memory=plan.memory, threads=plan.threads) as group,
        contextlib.ExitStack() as opened,
    ):
        launch.argv = group.wrap_argv(launch.argv)
        terminal = opened.enter_context(contextlib.closing(Terminal()))
        if plan.proxy is not None:
            from handrail.process.keeper.network import serve_network  # noqa: PLC0415  few commands have a proxy

            opened.enter_context(serve_network(plan.folder, *plan.proxy))
        with ProcessTree(launch) as tree:
            tree.start(lambda launch: spawn(launch, terminal))
            if not _wait_for_command(tree, launch):
                tree.end()
                terminal.hang_up()
                report.send({"said": terminal.read(4096).decode("utf-8", "replace")})
                return
            loop = KeeperLoop(plan, launch, tree, terminal, signals)
            KeeperFolder(plan.folder).write_record(_build_record(plan, launch, tree))
            if not report.send({"pid": os.getpid()}):  # the call was killed, so no one knows this session
                tree.end()
                KeeperFolder(plan.folder).remove(plan.record["id"])
                return
            end = {**loop.run(), "reason": loop.reason or next(iter(group.list_fired_limits()), None)}
            KeeperFolder(plan.folder).write_end(end)


def _wait_for_command(tree: ProcessTree, launch: Launch) -> bool:
    """Wait until the command's own program runs or has run. False: the sandbox could not be made."""
    poller = select.poll()
    poller.register(tree.status.descriptor, select.POLLIN)
    until = time.monotonic() + _SANDBOX_START_SECONDS
    while not tree.status.over and time.monotonic() < until:
        first = tree.status.child_pid
        if tree.status.exit_code is not None or (first and not (launch.own_processes and _is_setting_up(tree, first))):
            return True
        poller.poll(1 if first else 100)
        tree.read_status()
    return tree.status.exit_code is not None


def _is_setting_up(tree: ProcessTree, first: int) -> bool:
    """Whether bubblewrap is alone in the namespace. It may still fail to complete it."""
    names = (read_entry(f"/proc/{process.number}/comm") for process in list_live_descendants(tree.process_id, first))
    return all(name in {b"bwrap\n", b""} for name in names)


def _build_record(plan: KeeperPlan, launch: Launch, tree: ProcessTree) -> Json:
    return {
        **plan.record,
        "started": time.time(),
        "boot": read_boot_id(),
        "keeper": _identify(os.getpid()),
        "program": _identify(tree.process_id),
        "first": _identify(tree.status.child_pid or 0),
        "own_processes": launch.own_processes,
        "proxy": plan.proxy[0] if plan.proxy else None,
    }


def _identify(process: int) -> list[int]:
    """Number and start time of a process. No other process has both."""
    found = find_process(process)
    return [process, found.started if found else 0]


class KeeperLoop:
    """Serves a running command: logs its output, types its input, enforces its limits, stops it."""

    def __init__(
        self, plan: KeeperPlan, launch: Launch, tree: ProcessTree, terminal: Terminal, signals: SignalQueue
    ) -> None:
        self.reason: str | None = None
        """Why the command was ended. None: it ended by itself."""
        self._plan = plan
        self._tree = tree
        self._terminal = terminal
        self._log = LogWriter(plan.folder, **plan.log)
        self._events = EventPoller()
        self._namespace = tree.status.child_pid if launch.own_processes else None
        self._input = InputQueue(terminal, tree.process_id, self._namespace)
        self._usage = UsageMonitor(plan, program=tree.process_id, own_processes=launch.own_processes)
        self._stopping: StopSequence | None = None
        self._active_at = time.monotonic()
        self._is_over = False
        self._server = KeeperServer(plan.folder, self._events, self._stop, self._input)
        self._events.on(terminal.master, READ, self._on_terminal)
        self._events.on(tree.status.descriptor, READ, self._on_status)
        self._events.on(signals.descriptor, READ, lambda _ready: self._stop("stopped"))
        if tree.program_descriptor >= 0:
            self._events.on(tree.program_descriptor, READ, lambda _ready: None)  # `_check` sees that it ended

    def run(self) -> Json:
        """Serve the command until it has ended or must end, end its processes, and give its exit record."""
        while not self._is_over:
            now = time.monotonic()
            self._check(now)
            if not self._is_over:
                pauses = [self._usage.next_look - now, self._input.pause(), self._server.pause(now), _MAX_PAUSE_SECONDS]
                self._events.wait(min(*pauses, _STOPPING_PAUSE_SECONDS) if self._stopping else min(pauses))
        self._usage.close()
        gone = self._tree.end()
        self._terminal.hang_up()
        enough = self._log.size + _MAX_REST_BYTES  # a process that escaped may print forever
        while self._log.size < enough and self._log_output():
            pass
        self._log.close()
        return {
            "ended": time.time(),
            "exit_code": self._tree.exit_code(),
            "size": self._log.size,
            "trouble": self._log.trouble,
            "gone": gone,
        }

    def _check(self, now: float) -> None:
        self._input.type_pending()
        self._events.change(self._terminal.master, READ | WRITE if self._input.untyped else READ)
        self._server.drop_slow_clients(now)
        if self._tree.over or self._tree.command_is_over or (self._stopping and self._stopping.is_over()):
            self._is_over = True
        elif now >= self._usage.next_look and (exceeded := self._usage.look(self._tree.status.child_pid)):
            self.reason, self._is_over = self.reason or exceeded, True
        if self._plan.idle and self._is_idle(now):
            self._stop("idle")
        if not os.access(RECORD, os.F_OK, dir_fd=self._plan.folder):
            self._stop("removed")  # no one can find or stop it any more

    def _is_idle(self, now: float) -> bool:
        if now < max(self._active_at, self._input.typed_at) + self._plan.idle:
            return False
        try:
            age = time.time() - os.stat(ASKED, dir_fd=self._plan.folder).st_mtime
        except OSError:
            return True
        if age >= self._plan.idle:
            return True
        self._active_at = now - max(0.0, age)
        return False

    def _stop(self, reason: str) -> None:
        if self._stopping is None:
            self.reason = reason
            self._stopping = StopSequence(self._tree.process_id, self._namespace)

    def _on_terminal(self, ready: int) -> None:
        if ready & READ:
            self._log_output()
            self._active_at = time.monotonic()

    def _on_status(self, _ready: int) -> None:
        self._tree.read_status()
        if self._tree.status.over:
            self._events.off(self._tree.status.descriptor)

    def _log_output(self) -> int:
        """Log what the terminal has, up to one round. The number of bytes."""
        output = bytearray()
        while len(output) < _MAX_ROUND_BYTES and (data := self._terminal.read(_READ_BYTES)):
            output += data
        self._log.add(output)
        return len(output)


class StopSequence:
    """Asks all processes of a command to end, its shell last."""

    def __init__(self, program: int, namespace: int | None) -> None:
        self._began = time.monotonic()
        self._program = program
        self._namespace = namespace
        tree = list_live_descendants(program, namespace)
        above = program if namespace is None else namespace
        self._shells = [process for process in tree if process.parent == above] if len(tree) > 1 else []
        for process in self._shells:
            signal_process(process, STOP)
        for process in tree:
            if process not in self._shells:
                _terminate(process)

    def is_over(self) -> bool:
        """Whether the grace period is over. Ends the shell when nothing else is left, or in time."""
        waited = time.monotonic() - self._began
        if self._shells and (waited > _SHELL_WAIT_SECONDS or not self._has_others()):
            for shell in self._shells:
                _terminate(shell)
            self._shells = []
        return waited > _GRACE_SECONDS

    def _has_others(self) -> bool:
        shells = {shell.number for shell in self._shells}
        return any(process.number not in shells for process in list_live_descendants(self._program, self._namespace))


def _terminate(process: ProcessStat) -> None:
    signal_process(process, TERMINATE)
    signal_process(process, CONTINUE)  # a stopped process handles no signal before
