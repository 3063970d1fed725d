"""Runs a launch to its end."""

import errno
import os
import select
import subprocess
import time
from collections.abc import Callable

from msgspec.structs import replace

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.process.output import OutputBuffer, Pipes
from handrail.process.result import CommandResult, Ending
from handrail.process.tree import ProcessTree
from handrail.process.usage import NetworkCounters, UsageMonitor
from handrail.protocol.errors import ToolError
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits

_POLL_SECONDS = 0.05
"""Time in which a cancellation is noticed, and the end of a process if the kernel has no pidfds."""
_NO_ROOM = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC}
_LIMIT_NAMES: dict[Ending, str] = {"timeout": "time", "memory": "memory", "processes": "processes", "disk": "disk"}
_FILE_TOO_LARGE = 128 + 25


def run_launch(
    launch: Launch,
    *,
    limits: ResourceLimits,
    cancelled: Callable[[], bool],
    on_output: Callable[[bytes], None] | None = None,
    spill_folder: str,
    two_pipes: bool = False,
) -> CommandResult:
    """Run a launch to its end, and close it. Nothing that it started is left.

    `on_output` gets output as it comes, and `b""` now and then. An interrupt, or an exception of `on_output` or
    `cancelled`, ends the command and goes on to the caller.
    """
    began = time.monotonic()
    with launch, ControlGroup(find_parent_group(), memory=limits.memory, threads=limits.threads) as group:
        launch.argv = group.wrap_argv(launch.argv)
        buffers: list[OutputBuffer] = []
        try:
            with open_pipes(launch, 1 + two_pipes) as pipes, ProcessTree(launch) as tree:
                buffers += [OutputBuffer(pipe, limits, spill_folder, on_output) for pipe in pipes.reading]
                start_tree(tree, launch, pipes)
                loop = _RunLoop(launch, tree, buffers, limits, began + limits.seconds)
                ending = loop.run(cancelled, on_output)
                # End the tree first: it must not print or change files after the result.
                gone = tree.end()
                for buffer in buffers:
                    buffer.read_rest()
                seconds, exit_code = time.monotonic() - began, tree.exit_code() if ending == "exit" else None
                result = _build_result(ending, exit_code, seconds, buffers, group.list_fired_limits(), gone=gone)
                return replace(result, tried_network=loop.tried_network)
        except BaseException:
            for buffer in buffers:
                buffer.discard()
            raise


def _build_result(
    ending: Ending,
    exit_code: int | None,
    seconds: float,
    buffers: list[OutputBuffer],
    fired: list[str],
    *,
    gone: bool,
) -> CommandResult:
    limits = [
        *([_LIMIT_NAMES[ending]] if ending in _LIMIT_NAMES else []),
        *(["output"] if any(buffer.is_limited for buffer in buffers) else []),
        *(["file size"] if exit_code == _FILE_TOO_LARGE else []),
        *fired,
    ]
    left = [] if gone else ["A process that the command started could not be stopped and may still be running."]
    return CommandResult(
        ending="failed" if ending == "exit" and exit_code is None else ending,
        exit_code=exit_code,
        seconds=seconds,
        output=buffers[0].finish(),
        errors=buffers[1].finish() if len(buffers) > 1 else None,
        limits=tuple(dict.fromkeys(limits)),
        warnings=(*left, *(warning for buffer in buffers for warning in buffer.warnings)),
    )


class _RunLoop:
    """Reads the output of a command until it has ended or must end."""

    def __init__(
        self, launch: Launch, tree: ProcessTree, buffers: list[OutputBuffer], limits: ResourceLimits, until: float
    ) -> None:
        self._tree = tree
        self._buffers = {buffer.pipe: buffer for buffer in buffers}
        self._usage = UsageMonitor(limits, program=tree.process_id, own_processes=launch.own_processes)
        self._until = until
        self._launch = launch
        self._counters = NetworkCounters()
        self.tried_network: bool | None = None
        """Whether the command tried a connection. Known after `run`."""
        self._next_poll = 0.0
        self._poller = select.poll()
        for descriptor in (tree.status.descriptor, tree.program_descriptor, *self._buffers):
            if descriptor >= 0:
                self._poller.register(descriptor, select.POLLIN)

    def run(self, cancelled: Callable[[], bool], on_output: Callable[[bytes], None] | None) -> Ending:
        """Why the command is over. Its processes may still run."""
        try:
            while True:
                now = time.monotonic()
                if now >= self._next_poll:
                    self._next_poll = now + _POLL_SECONDS
                    if self._tree.over:
                        return "exit"
                    if on_output:
                        on_output(b"")
                    if cancelled():
                        return "cancelled"
                if ending := self._check_limits(now) or self._read(now):
                    return ending
        finally:
            self._usage.close()
            self.tried_network = self._counters.close()

    def _check_limits(self, now: float) -> Ending | None:
        if now >= self._until:
            return "timeout"
        return self._usage.look(self._tree.status.child_pid) if now >= self._usage.next_look else None

    def _read(self, now: float) -> Ending | None:
        pause = max(0.0, min(self._next_poll, self._until, self._usage.next_look) - now)
        ready = [descriptor for descriptor, _ in self._poller.poll(pause * 1000)]
        # The status first: it names the process to end, whatever happens next.
        if self._tree.status.descriptor in ready:
            self._tree.read_status()
            if self._tree.status.child_pid is not None:
                if self._launch.own_network:
                    self._counters.open(self._tree.status.child_pid)
                self._launch.open_gate()
            if self._tree.status.over:
                self._poller.unregister(self._tree.status.descriptor)
        for buffer in [self._buffers[descriptor] for descriptor in ready if descriptor in self._buffers]:
            if not buffer.read():
                self._poller.unregister(buffer.pipe)
        return "exit" if self._tree.program_descriptor in ready or self._tree.command_is_over else None


def open_pipes(launch: Launch, count: int) -> Pipes:
    try:
        return Pipes(count)
    except OSError as error:
        raise build_start_error(error, launch) from None


def start_tree(tree: ProcessTree, launch: Launch, pipes: Pipes, stdin: int | None = None) -> None:
    """Start a launch as a new session that prints into the pipes. Its input is empty unless `stdin` is given."""
    try:
        tree.start(lambda launch: _start(launch, pipes, stdin))
    except (OSError, ValueError) as error:
        raise build_start_error(error, launch) from None
    pipes.close_child_ends()


def _start(launch: Launch, pipes: Pipes, stdin: int | None) -> subprocess.Popen[bytes]:
    empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Nothing may need code to run between fork and exec. Only then does the child borrow our memory (vfork) instead
        # of copying its page tables, which takes 20 ms in a large process and is unsafe with threads.
        return subprocess.Popen(  # noqa: S603  policy decided on the command, and it is confined
            launch.argv,
            env=launch.environment,
            cwd="/",  # our own folder may be deleted, or closed to the command
            stdin=empty if stdin is None else stdin,
            stdout=pipes.writing[0],
            stderr=pipes.writing[-1],
            pass_fds=launch.inherited,
            start_new_session=True,
        )
    finally:
        os.close(empty)


def build_start_error(error: OSError | ValueError, launch: Launch) -> ToolError:
    """The error for the model: a missing program, a command that is too long, a machine without room."""
    if isinstance(error, ValueError):
        text = "The command cannot be started: it has a character that is not allowed (such as NUL)."
        return ToolError("INVALID_ARGUMENT", text)
    if error.errno == errno.E2BIG:
        size = max(len(os.fsencode(word)) for word in launch.argv)
        text = f"The command is too long to be started ({size:,} bytes): write it to a file, run that."
        return ToolError("INVALID_ARGUMENT", text)
    if error.errno in _NO_ROOM:
        text = f"The machine cannot start another process ({error.strerror}): try again later."
        return ToolError("LIMIT_EXCEEDED", text)
    program = os.path.basename(launch.argv[0])
    text = f"{program} could not be started ({error.strerror}): `handrail doctor` names the missing part."
    return ToolError("SANDBOX_UNAVAILABLE", text)
