"""The keeper: starts a background process and waits for its end."""

import contextlib
import json
import os
import select
import signal
import time

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.kernel.process import TERMINATE, SignalQueue, reset_signals
from handrail.kernel.procfs import find_process, read_entry
from handrail.process.keeper.log_writer import LogWriter
from handrail.process.keeper.server import KeeperServer
from handrail.process.keeper.spawn import StopSequence, spawn
from handrail.process.keeper.state import (
    ASKED,
    BOOT,
    RECORD,
    Json,
    KeeperPlan,
    remove,
    write_crash,
    write_end,
    write_record,
)
from handrail.process.keeper.terminal import READ, EventPoller, InputQueue, Keyboard, Terminal, list_live_descendants
from handrail.process.tree import ProcessTree
from handrail.process.usage import UsageMonitor
from handrail.sandbox.launch import Launch

# § [process.keeper.keeping] Keeps a command that runs: takes what it prints, types what is written to it, holds it
# § to its limits, ends it.

_STOPPING_PAUSE_SECONDS = 0.05
_MAX_PAUSE_SECONDS = 1.0
_PIECE_BYTES = 1 << 16
_MAX_ROUND_BYTES = 1 << 18
"""Bytes that are taken before anything else is looked at."""


class KeeperLoop:
    """One command from its start to the moment when it has ended or must end."""

    def __init__(
        self, plan: KeeperPlan, tree: ProcessTree, terminal: Terminal, log: LogWriter, signals: SignalQueue
    ) -> None:
        self.reason: str | None = None
        """Why it is ended, where it does not end by itself."""
        self._plan = plan
        self._tree = tree
        self._terminal = terminal
        self._log = log
        self._events = EventPoller()
        self._namespace = tree.status.child_pid if plan.own_processes else None
        keyboard = Keyboard(terminal, tree.process_id, self._namespace)
        self._input = InputQueue(terminal, keyboard, self._events)
        self._watch = UsageMonitor(plan, program=tree.process_id, own_processes=plan.own_processes)
        self._stopping: StopSequence | None = None
        self._active = time.monotonic()
        self._over = False
        self._server = KeeperServer(plan.folder, self._events, self._stop, self._input)
        self._events.on(terminal.master, READ, self._on_terminal)
        self._events.on(tree.status.descriptor, READ, self._on_status)
        self._events.on(signals.descriptor, READ, lambda _ready: self._stop("stopped"))
        if tree.program_descriptor >= 0:
            self._events.on(tree.program_descriptor, READ, self._on_end)

    def run(self) -> None:
        """Comes back when it has ended, or must not go on; what it started may still be there."""
        while not self._over:
            now = time.monotonic()
            self._look(now)
            if not self._over:
                self._events.wait(self._pause(now))
        self._watch.close()

    def _look(self, now: float) -> None:
        self._input.type_pending()
        self._server.drop_slow_clients(now)
        if self._tree.over or self._tree.command_is_over or (self._stopping and self._stopping.is_over()):
            self._over = True
        elif now >= self._watch.next_look:
            over = self._watch.look(self._tree.status.child_pid)
            if over:
                self.reason, self._over = self.reason or over, True
        if self._plan.idle and now >= self._idle_at() and self._is_idle(now):
            self._stop("idle")
        if not os.access(RECORD, os.F_OK, dir_fd=self._plan.folder):
            self._stop("removed")  # nobody could find it any more, nor end it

    def _pause(self, now: float) -> float:
        pauses = [self._watch.next_look - now, self._input.pause(), self._server.pause(now), _MAX_PAUSE_SECONDS]
        return min(*pauses, _STOPPING_PAUSE_SECONDS) if self._stopping else min(pauses)

    def _idle_at(self) -> float:
        return max(self._active, self._input.latest) + self._plan.idle

    def _is_idle(self, now: float) -> bool:
        try:
            age = time.time() - os.stat(ASKED, dir_fd=self._plan.folder).st_mtime
        except OSError:
            return True
        if age >= self._plan.idle:
            return True
        self._active = now - max(0.0, age)
        return False

    def _stop(self, reason: str) -> None:
        if self._stopping is None:
            self.reason = reason
            self._stopping = StopSequence(self._tree.process_id, self._namespace)

    def _on_terminal(self, ready: int) -> None:
        if ready & READ:
            take_printed(self._terminal, self._log)
            self._active = time.monotonic()

    def _on_status(self, _ready: int) -> None:
        self._tree.read_status()
        if self._tree.status.over:
            self._events.off(self._tree.status.descriptor)

    def _on_end(self, _ready: int) -> None:
        self._over = True


def take_printed(terminal: Terminal, log: LogWriter) -> int:
    """Writes down what the terminal has by now, up to some size; how much that was."""
    taken = bytearray()
    while len(taken) < _MAX_ROUND_BYTES:
        data = terminal.read(_PIECE_BYTES)
        if not data:
            break
        taken += data
    log.add(taken)
    return len(taken)


# § [process.keeper.program] The keeper: starts the command, says how that went, keeps it, and writes down how it
# § ended.

_SANDBOX_START_SECONDS = 20.0
"""Seconds for the sandbox to be made, on a machine that has much else to do."""
_MAX_REST_BYTES = 1 << 24


def run(descriptor: int) -> None:
    """Keeps what the plan behind the descriptor says, to its end."""
    plan = KeeperPlan.read(descriptor)
    for own in (plan.status, plan.lifeline, plan.folder, plan.ready_fd):
        os.set_inheritable(own, False)
    reset_signals()
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        _keep(plan, SignalQueue((TERMINATE,)))
    except BaseException as error:
        number = error.errno if isinstance(error, OSError) else None
        _tell(plan, {"errno": number or 0, "error": str(error)})
        write_crash(plan.folder)


def _keep(plan: KeeperPlan, signals: SignalQueue) -> None:
    with (
        _launch_of(plan) as launch,
        ControlGroup(find_parent_group(), memory=plan.memory, threads=plan.threads) as group,
        contextlib.ExitStack() as opened,
    ):
        launch.argv = group.wrap_argv(launch.argv)
        terminal = opened.enter_context(contextlib.closing(Terminal()))
        if plan.proxy is not None:
            from handrail.process.keeper.network import serve_network  # noqa: PLC0415  few have one

            opened.enter_context(serve_network(plan.folder, plan.proxy[0], plan.proxy[1:]))
        with ProcessTree(launch) as tree:
            tree.start(lambda launch: spawn(launch, terminal))
            if not _has_begun(tree, own_processes=plan.own_processes):
                tree.end()
                _tell(plan, {"said": _printed(terminal)})
                return
            _keep_on(plan, tree, terminal, signals, group)


def _keep_on(
    plan: KeeperPlan, tree: ProcessTree, terminal: Terminal, signals: SignalQueue, group: ControlGroup
) -> None:
    log = LogWriter(plan.folder, head=plan.head, kept=plan.kept, segment=plan.segment)
    keeping = KeeperLoop(plan, tree, terminal, log, signals)
    write_record(plan.folder, _record(plan, tree))
    if not _tell(plan, {"pid": os.getpid()}):  # nobody knows of it, and nobody ever will
        tree.end()
        remove(plan.folder, plan.record["id"])
        return
    keeping.run()
    gone = tree.end()
    terminal.hang_up()
    _take_rest(terminal, log)
    write_end(plan.folder, _end(keeping, tree, log, group.list_fired_limits(), gone=gone))


def _launch_of(plan: KeeperPlan) -> Launch:
    return Launch(
        tier=plan.tier,
        argv=tuple(map(os.fsdecode, plan.arguments)),
        environment={os.fsdecode(name): os.fsdecode(value) for name, value in plan.environment.items()},
        inherited=tuple(plan.inherited),
        status=plan.status,
        lifeline=plan.lifeline,
        own_processes=plan.own_processes,
    )


def _has_begun(tree: ProcessTree, *, own_processes: bool) -> bool:
    """Waits until the command's own program runs, or has run; whether it came to that."""
    poller = select.poll()
    poller.register(tree.status.descriptor, select.POLLIN)
    until = time.monotonic() + _SANDBOX_START_SECONDS
    while not tree.status.over and time.monotonic() < until:
        first = tree.status.child_pid
        if tree.status.exit_code is not None or (first and not (own_processes and _still_sets_up(tree, first))):
            return True
        poller.poll(1 if first else 100)
        tree.read_status()
    return tree.status.exit_code is not None


def _still_sets_up(tree: ProcessTree, first: int) -> bool:
    """Whether there is nobody in the namespace but bubblewrap, which may yet fail to make it."""
    names = (read_entry(f"/proc/{process.number}/comm") for process in list_live_descendants(tree.process_id, first))
    return all(name in {b"bwrap\n", b""} for name in names)


def _record(plan: KeeperPlan, tree: ProcessTree) -> Json:
    with open(BOOT, encoding="ascii") as file:
        boot = file.read().strip()
    first = tree.status.child_pid or 0
    return {
        **plan.record,
        "started": time.time(),
        "boot": boot,
        "keeper": _named(os.getpid()),
        "program": _named(tree.process_id),
        "first": _named(first),
        "own_processes": plan.own_processes,
        "proxy": plan.proxy[0] if plan.proxy else None,
    }


def _named(process: int) -> list[int]:
    """A process so that it cannot be taken for another: by its number and since when it runs."""
    found = find_process(process)
    return [process, found.started if found else 0]


def _end(keeping: KeeperLoop, tree: ProcessTree, log: LogWriter, held_to: list[str], *, gone: bool) -> Json:
    reason = keeping.reason or (held_to[0] if held_to else None)
    return {
        "ended": time.time(),
        "exit_code": tree.exit_code(),
        "reason": reason,
        "size": log.size,
        "trouble": log.trouble,
        "gone": gone,
    }


def _take_rest(terminal: Terminal, log: LogWriter) -> None:
    """What is still in the terminal; no more than that, somebody who got away may print for ever."""
    enough = log.size + _MAX_REST_BYTES
    while log.size < enough and take_printed(terminal, log):
        pass
    log.close()


def _printed(terminal: Terminal) -> str:
    terminal.hang_up()
    return terminal.read(4096).decode("utf-8", "replace")


def _tell(plan: KeeperPlan, document: Json) -> bool:
    """Says how the start went; whether somebody is there who listens."""
    told, plan.ready_fd = plan.ready_fd, -1
    if told < 0:
        return False
    try:
        return os.write(told, json.dumps(document).encode() + b"\n") > 0
    except OSError:
        return False
    finally:
        os.close(told)
