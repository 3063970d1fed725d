"""A confined program that runs beside this one, connected by its standard streams."""

import contextlib
import os
import select
import threading
import time
from collections import deque

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.kernel.files import DescriptorSet
from handrail.process.result import Ending
from handrail.process.run import build_start_error, open_pipes, start_tree
from handrail.process.tree import ProcessTree
from handrail.process.usage import UsageMonitor
from handrail.protocol.errors import ToolError
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits

_MAX_STDERR_BYTES = 64 * 1024
_READ_BYTES = 16 * 1024
_BREATH_SECONDS = 0.01
"""Pause after a read of stderr that was full, so that a program that floods it slows down only itself."""
_POLL_SECONDS = 1.0
"""Pause between looks at its usage. The program runs for hours."""
_GRACE_SECONDS = 0.5
"""Time for the program to end by itself once its input has ended."""


class StdioProcess:
    """One program. The owner reads `output`, writes `input`, and ends it. Neither descriptor blocks.

    The program ends with this process, whatever kills it. A single thread starts and follows the program: the kernel
    ends a child that is to die with its parent when the thread that started it ends.
    """

    def __init__(self, launch: Launch, limits: ResourceLimits) -> None:
        """Start the program. The launch is closed at the end, or if the start fails."""
        self.tier = launch.tier
        self.ending: Ending | None = None
        """Why the program is over. None: it runs."""
        self.exit_code: int | None = None
        self._limits = limits
        self._stderr: deque[bytes] = deque()
        self._stderr_bytes = 0
        self._start_error: ToolError | None = None
        self._has_begun = threading.Event()
        self._lock = threading.Lock()
        with contextlib.ExitStack() as opened:
            opened.callback(launch.close)
            pipes = opened.enter_context(DescriptorSet())
            try:
                self._stop, self._stop_writer = pipes.open_pipe()
                stdin, self.input = pipes.open_pipe()
            except OSError as error:
                raise build_start_error(error, launch) from None
            self._pipes = opened.enter_context(open_pipes(launch, 2))
            os.set_blocking(self.input, False)
            self.output, self._stderr_pipe = self._pipes.reading
            self._thread = threading.Thread(target=self._run, args=(launch, stdin), name="mcp-server", daemon=True)
            self._thread.start()
            self._has_begun.wait()
            if self._start_error is not None:
                self._thread.join()
                raise self._start_error
            os.close(stdin)
            opened.pop_all()
        self._open = [self.input, self._stop, self._stop_writer]

    @property
    def stderr_tail(self) -> bytes:
        with self._lock:
            return b"".join(self._stderr)

    def close_stdin(self) -> None:
        """End its input. A good server ends then. Can be repeated."""
        with self._lock:
            if self.input in self._open:
                self._open.remove(self.input)
                os.close(self.input)

    def end(self) -> None:
        """End the program with everything it started, and close the pipes. Can be repeated."""
        self.close_stdin()
        self._thread.join(_GRACE_SECONDS)
        with self._lock:
            if self._stop_writer in self._open:
                os.write(self._stop_writer, b".")
        self._thread.join()
        with self._lock:
            while self._open:
                os.close(self._open.pop())
        self._pipes.close()

    def _run(self, launch: Launch, stdin: int) -> None:
        limits = self._limits
        try:
            with launch, ControlGroup(find_parent_group(), memory=limits.memory, threads=limits.threads) as group:
                launch.argv = group.wrap_argv(launch.argv)
                with ProcessTree(launch) as tree:
                    start_tree(tree, launch, self._pipes, stdin)
                    self._has_begun.set()
                    ending = self._follow(launch, tree)
                    tree.end()
                    self._read_stderr()
                    self.exit_code = tree.exit_code() if ending == "exit" else None
                    is_failed = ending == "exit" and self.exit_code is None
                    is_out_of_memory = "memory" in group.list_fired_limits()
                    self.ending = "failed" if is_failed else "memory" if is_out_of_memory else ending
        except ToolError as error:
            self._start_error = error
        finally:
            self.ending = self.ending or "failed"
            self._has_begun.set()

    def _follow(self, launch: Launch, tree: ProcessTree) -> Ending:
        usage = UsageMonitor(self._limits, program=tree.process_id, own_processes=launch.own_processes)
        poller = select.poll()
        for descriptor in (tree.status.descriptor, tree.program_descriptor, self._stop, self._stderr_pipe):
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        try:
            while True:
                ready = [descriptor for descriptor, _ in poller.poll(_POLL_SECONDS * 1000)]
                if self._stderr_pipe in ready and not self._read_stderr():
                    poller.unregister(self._stderr_pipe)
                tree.read_status()
                if tree.status.over and tree.status.descriptor in ready:
                    poller.unregister(tree.status.descriptor)
                if tree.over or tree.command_is_over:
                    return "exit"
                if self._stop in ready:
                    return "cancelled"
                if time.monotonic() >= usage.next_look and (exceeded := usage.look(tree.status.child_pid)):
                    return exceeded
        finally:
            usage.close()

    def _read_stderr(self) -> bool:
        """Read once, and keep the end. False: stderr is closed."""
        try:
            data = os.read(self._stderr_pipe, _READ_BYTES)
        except BlockingIOError:
            return True
        if len(data) == _READ_BYTES:
            time.sleep(_BREATH_SECONDS)
        with self._lock:
            self._stderr.append(data)
            self._stderr_bytes += len(data)
            while self._stderr_bytes - len(self._stderr[0]) > _MAX_STDERR_BYTES:
                self._stderr_bytes -= len(self._stderr.popleft())
        return bool(data)
