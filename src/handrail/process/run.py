"""Runs a launch to its end."""

import errno
import os
import select
import subprocess
import time
from collections.abc import Callable

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.process.output import OutputBuffer, Pipes, Tap
from handrail.process.result import CommandResult, Ending
from handrail.process.tree import ProcessTree
from handrail.process.usage import UsageMonitor
from handrail.protocol.errors import ErrorCode, ToolError
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits

# § [process.following] Follows a running command: takes what it prints, and sees why it is over.

_POLL_SECONDS = 0.05
"""Seconds within which a cancellation is seen, and the end of a process where the kernel does not tell."""


class RunLoop:
    """One command from its start to the moment when it has ended or must end."""

    def __init__(
        self, tree: ProcessTree, taps: list[Tap], watch: UsageMonitor, until: float, cancelled: Callable[[], bool]
    ) -> None:
        self._tree = tree
        self._taps = {tap.descriptor: tap for tap in taps}
        self._watch = watch
        self._until = until
        self._cancelled = cancelled
        self._next_question = 0.0
        self._poller = select.poll()
        for descriptor in (tree.status.descriptor, tree.program_descriptor, *self._taps):
            if descriptor >= 0:
                self._poller.register(descriptor, select.POLLIN)

    def run(self) -> Ending:
        """Why it is over; what it started may still be there."""
        while True:
            now = time.monotonic()
            ending = self._look(now)
            if ending:
                return ending
            ready = [descriptor for descriptor, _ in self._poller.poll(self._pause(now) * 1000)]
            # The status first: it names the process to end, whatever happens in what follows.
            if self._tree.status.descriptor in ready:
                self._take_status()
            for tap in [self._taps[descriptor] for descriptor in ready if descriptor in self._taps]:
                self._take(tap)
            if self._tree.program_descriptor in ready or self._tree.command_is_over:
                return "exit"

    def _look(self, now: float) -> Ending | None:
        if now >= self._next_question:
            self._next_question = now + _POLL_SECONDS
            if self._tree.over:
                return "exit"
            if self._cancelled():
                return "cancelled"
        if now >= self._until:
            return "timeout"
        return self._watch.look(self._tree.status.child_pid) if now >= self._watch.next_look else None

    def _pause(self, now: float) -> float:
        return max(0.0, min(self._next_question, self._until, self._watch.next_look) - now)

    def _take_status(self) -> None:
        self._tree.read_status()
        if self._tree.status.over:
            self._poller.unregister(self._tree.status.descriptor)

    def _take(self, tap: Tap) -> None:
        if not tap.take():
            self._poller.unregister(tap.descriptor)


# § [process.starting] Starts a launch as a process of its own session.

_NO_ROOM = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC}


def start(launch: Launch, pipes: Pipes, given: int | None = None) -> subprocess.Popen[bytes]:
    """Starts it, with nothing to read unless an end of a pipe is given; its descriptors and the pipes' ends are still
    open here. OSError and ValueError where it cannot be."""
    stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if given is None else given
    try:
        # Nothing here may need code to run between fork and exec: only so does the child borrow our memory (vfork)
        # instead of copying its page tables, which takes 20 ms in a large process and is unsafe with threads.
        return subprocess.Popen(  # noqa: S603  what is run was decided by policy, and is confined
            launch.argv,
            env=launch.environment,
            cwd="/",  # a folder of ours that is deleted meanwhile, or that nobody else may enter, is no matter
            stdin=stdin,
            stdout=pipes.writing[0],
            stderr=pipes.writing[-1],
            close_fds=True,
            pass_fds=launch.inherited,
            start_new_session=True,
        )
    finally:
        if given is None:
            os.close(stdin)


def build_start_error(error: OSError | ValueError, launch: Launch) -> ToolError:
    """The failure for the model: a program that is not there, a command that is too long, a machine that is full."""
    code, message = _reason(error, launch)
    return ToolError(code, message)


def _reason(error: OSError | ValueError, launch: Launch) -> tuple[ErrorCode, str]:
    if isinstance(error, ValueError):
        return (
            "INVALID_ARGUMENT",
            "The command cannot be started: it holds a character that no command can (such as NUL).",
        )
    if error.errno == errno.E2BIG:
        size = max(len(os.fsencode(word)) for word in launch.argv)
        return (
            "INVALID_ARGUMENT",
            f"The command is too long to be started ({size:,} bytes): write it to a file, run that.",
        )
    if error.errno in _NO_ROOM:
        return "LIMIT_EXCEEDED", f"The machine has no room for another process ({error.strerror}): try again later."
    program = os.path.basename(launch.argv[0])
    return (
        "SANDBOX_UNAVAILABLE",
        f"{program} could not be started ({error.strerror}): `handrail doctor` says what is missing.",
    )


# § [process.running] Runs a launch from its start to its end, and leaves nothing of it behind.

_NAMES: dict[Ending, str] = {"timeout": "time", "memory": "memory", "processes": "processes", "disk": "disk"}
"""The limits that end a command."""
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
    """Runs it to its end and closes it; ToolError when it cannot be started.

    `on_output` gets what is printed as it comes, and nothing (`b""`) now and then. What it or `cancelled` raises, and
    an interrupt, ends the command and goes on to the caller.
    """
    began = time.monotonic()
    with launch, ControlGroup(find_parent_group(), memory=limits.memory, threads=limits.threads) as group:
        launch.argv = group.wrap_argv(launch.argv)
        taps: list[Tap] = []
        try:
            with _pipes_of(launch, 1 + two_pipes) as pipes, ProcessTree(launch) as tree:
                taps += [Tap(pipe, OutputBuffer(limits, spill_folder), on_output) for pipe in pipes.reading]
                _start(launch, tree, pipes)
                ending = _follow(launch, tree, taps, limits, began + limits.seconds, _asked(cancelled, on_output))
                # Before the last of the output is taken: nobody is to print, or change a file, after the result.
                gone = tree.end()
                for tap in taps:
                    tap.take_rest()
                return _ran(ending, tree, taps, time.monotonic() - began, group.list_fired_limits(), gone=gone)
        except BaseException:
            for tap in taps:
                tap.collected.discard()
            raise


def _pipes_of(launch: Launch, count: int) -> Pipes:
    try:
        return Pipes(count)
    except OSError as error:
        raise build_start_error(error, launch) from None


def _start(launch: Launch, tree: ProcessTree, pipes: Pipes) -> None:
    try:
        tree.start(lambda launch: start(launch, pipes))
    except (OSError, ValueError) as error:
        raise build_start_error(error, launch) from None
    pipes.close_child_ends()


def _asked(cancelled: Callable[[], bool], on_output: Callable[[bytes], None] | None) -> Callable[[], bool]:
    def ask() -> bool:
        if on_output:
            on_output(b"")
        return cancelled()

    return ask


def _follow(
    launch: Launch,
    tree: ProcessTree,
    taps: list[Tap],
    limits: ResourceLimits,
    until: float,
    cancelled: Callable[[], bool],
) -> Ending:
    watch = UsageMonitor(limits, program=tree.process_id, own_processes=launch.own_processes)
    try:
        return RunLoop(tree, taps, watch, until, cancelled).run()
    finally:
        watch.close()


def _ran(
    ending: Ending, tree: ProcessTree, taps: list[Tap], seconds: float, held_to: list[str], *, gone: bool
) -> CommandResult:
    exit_code = tree.exit_code() if ending == "exit" else None
    fired = [
        *([_NAMES[ending]] if ending in _NAMES else []),
        *(["output"] if any(tap.collected.limited for tap in taps) else []),
        *(["file size"] if exit_code == _FILE_TOO_LARGE else []),
        *held_to,
    ]
    left = [] if gone else ["Something that the command started could not be ended; it may still be running."]
    return CommandResult(
        ending="failed" if ending == "exit" and exit_code is None else ending,
        exit_code=exit_code,
        seconds=seconds,
        output=taps[0].collected.printed(),
        errors=taps[1].collected.printed() if len(taps) > 1 else None,
        limits=tuple(dict.fromkeys(fired)),
        warnings=(*left, *(warning for tap in taps for warning in tap.collected.warnings)),
    )
