"""A confined program that goes on beside this one, with a pipe to it and one from it, until either ends."""

import contextlib
import os
import select
import threading
import time
from collections import deque

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.process.output import Pipes
from handrail.process.result import Ending
from handrail.process.run import build_start_error, start
from handrail.process.tree import ProcessTree
from handrail.process.usage import UsageMonitor
from handrail.protocol.errors import ToolError
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits

_MAX_STDERR_BYTES = 64 * 1024
"""Bytes of stderr that are kept: the end of it, which says why something failed."""
_READ_BYTES = 16 * 1024
_BREATH_SECONDS = 0.01
"""Seconds between reads of one who says more than fits into one: it waits, and nobody else does."""
_PAUSE_SECONDS = 1.0
"""Seconds between looks at how much it uses: it goes on for hours."""
_GRACE_SECONDS = 0.5
"""Seconds for a program to end by itself once its input has ended."""


class StdioProcess:
    """One program. Who has it reads `output`, writes `input` (neither blocks), and ends it; it is ended with this
    process too, whatever this process dies of.

    All of it is done by one thread, which also starts the program: the kernel ends what was to die with its parent
    when the thread is gone that started it.
    """

    def __init__(self, launch: Launch, limits: ResourceLimits) -> None:
        """Starts it; ToolError where it cannot be. The launch is this one's from here on, and is closed by it."""
        self.tier = launch.tier
        self.ending: Ending | None = None
        """Why it is over; None as long as it runs."""
        self.exit_code: int | None = None
        self._limits = limits
        self._said: deque[bytes] = deque()
        self._kept = 0
        self._failed: ToolError | None = None
        self._begun = threading.Event()
        self._lock = threading.Lock()
        with contextlib.ExitStack() as made:
            made.callback(launch.close)
            try:
                self._stop, self._stopped = _pipe(made)
                given, self.input = _pipe(made)
                self._pipes = made.enter_context(Pipes(2))
            except OSError as error:
                raise build_start_error(error, launch) from None
            os.set_blocking(self.input, False)
            self.output = self._pipes.reading[0]
            self._thread = threading.Thread(target=self._live, args=(launch, given), name="mcp-server", daemon=True)
            self._thread.start()
            self._begun.wait()
            if self._failed is not None:
                self._thread.join()
                raise self._failed
            os.close(given)
            made.pop_all()
        self._open = [self.input, self._stop, self._stopped]

    @property
    def stderr_tail(self) -> bytes:
        """The last of what it said on stderr."""
        with self._lock:
            return b"".join(self._said)

    def close_stdin(self) -> None:
        """Ends its input, by which a good server ends. Can be repeated."""
        with self._lock:
            if self.input in self._open:
                self._open.remove(self.input)
                os.close(self.input)

    def end(self) -> None:
        """Ends it with everything it started, and lets go of the pipes: nobody may use them any more. Can be
        repeated."""
        self.close_stdin()
        self._thread.join(_GRACE_SECONDS)
        with self._lock:
            if self._stopped in self._open:
                os.write(self._stopped, b".")
        self._thread.join()
        with self._lock:
            while self._open:
                os.close(self._open.pop())
        self._pipes.close()

    def _live(self, launch: Launch, given: int) -> None:
        try:
            limits = self._limits
            with launch, ControlGroup(find_parent_group(), memory=limits.memory, threads=limits.threads) as group:
                launch.argv = group.wrap_argv(launch.argv)
                with ProcessTree(launch) as tree:
                    self._start(launch, tree, given)
                    if self._failed is None:
                        ending = self._follow(launch, tree)
                        tree.end()
                        self._take_said()
                        self._note(ending, tree, group.list_fired_limits())
        finally:
            self.ending = self.ending or "failed"
            self._begun.set()

    def _start(self, launch: Launch, tree: ProcessTree, given: int) -> None:
        try:
            tree.start(lambda launch: start(launch, self._pipes, given))
        except (OSError, ValueError) as error:
            self._failed = build_start_error(error, launch)
            return
        self._pipes.close_child_ends()
        self._begun.set()

    def _follow(self, launch: Launch, tree: ProcessTree) -> Ending:
        watch = UsageMonitor(self._limits, program=tree.process_id, own_processes=launch.own_processes)
        poller = select.poll()
        for descriptor in (tree.status.descriptor, tree.program_descriptor, self._stop, self._pipes.reading[1]):
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        try:
            while True:
                ready = [descriptor for descriptor, _ in poller.poll(_PAUSE_SECONDS * 1000)]
                if self._pipes.reading[1] in ready and not self._take_said():
                    poller.unregister(self._pipes.reading[1])
                tree.read_status()
                if tree.status.over and tree.status.descriptor in ready:
                    poller.unregister(tree.status.descriptor)
                if tree.over or tree.command_is_over:
                    return "exit"
                if self._stop in ready:
                    return "cancelled"
                if time.monotonic() >= watch.next_look and (over := watch.look(tree.status.child_pid)):
                    return over
        finally:
            watch.close()

    def _take_said(self) -> bool:
        """Takes what there is of stderr; whether more may come."""
        try:
            data = os.read(self._pipes.reading[1], _READ_BYTES)
        except BlockingIOError:
            return True
        if len(data) == _READ_BYTES:
            time.sleep(_BREATH_SECONDS)
        with self._lock:
            self._said.append(data)
            self._kept += len(data)
            while self._kept - len(self._said[0]) > _MAX_STDERR_BYTES:
                self._kept -= len(self._said.popleft())
        return bool(data)

    def _note(self, ending: Ending, tree: ProcessTree, held_to: list[str]) -> None:
        self.exit_code = tree.exit_code() if ending == "exit" else None
        if ending == "exit" and self.exit_code is None:
            self.ending = "failed"
        else:
            self.ending = "memory" if "memory" in held_to else ending


def _pipe(made: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        made.callback(os.close, end)
    return ends
