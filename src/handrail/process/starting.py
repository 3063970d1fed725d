"""Starts a launch as a process of its own session."""

import errno
import os
import subprocess

from handrail.process.pipes import Pipes
from handrail.protocol.errors import ErrorCode, ToolError
from handrail.sandbox.launch import Launch

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
