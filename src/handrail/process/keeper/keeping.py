"""Keeps a command that runs: takes what it prints, types what is written to it, holds it to its limits, ends it."""

import os
import time

from handrail.kernel.process import SignalQueue
from handrail.process.keeper.events import READ, EventPoller
from handrail.process.keeper.files import ASKED, RECORD
from handrail.process.keeper.input import InputQueue
from handrail.process.keeper.plan import KeeperPlan
from handrail.process.keeper.pressing import Keyboard
from handrail.process.keeper.serving import KeeperServer
from handrail.process.keeper.stopping import StopSequence
from handrail.process.keeper.terminal import Terminal
from handrail.process.keeper.writing_log import LogWriter
from handrail.process.tree import ProcessTree
from handrail.process.watching import UsageMonitor

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
